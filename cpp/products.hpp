// Blocked float32 products of rows with points, for whatever vector unit the CPU has.
#pragma once

#include <cstdint>

namespace isokern {

constexpr std::int64_t kPanel = 16;    // points side by side in a panel
constexpr std::int64_t kPadding = 32;  // columns that lower_bounds_at takes together
constexpr std::int64_t kByteGroup = 8; // rows that byte_distances takes together

// No sum of n products has more roundings in a row than this, so that it is off by at most this many times 2^-24 times
// the sum of the products' magnitudes: lower_bounds adds sums of 64 products each, lower_bounds_at at least 16 sums.
constexpr std::int64_t n_roundings(std::int64_t n) {
    const std::int64_t one_by_one = (n < 64 ? n : 64) + n / 64 + 1, side_by_side = n / 16 + 9;
    return one_by_one > side_by_side ? one_by_one : side_by_side;
}

// A point's place in a nested sample, in few bytes, since memory is what walks wait for.
struct NestedMember {
    std::uint16_t sample, place;
};

// What a row has met on its walk (nested_walk.hpp).
struct Met {
    std::int64_t n_samples, n_open; // sizes that some sample has met no point of; the largest is done first
    const std::int32_t *sizes;
    std::int32_t *fronts;    // by sample: the lowest place it has met
    std::int32_t *found;     // [size][sample]: the place of the first point it has met
    std::int64_t *n_missing; // by size: the samples that have not met any
};

// Panels hold kPanel points each, [n_panels][n_columns][kPanel]; rows come in groups of `group` rows,
// [n_groups][n_columns][group]. Numbers may differ in the last bits from one CPU to the next, so they only ever choose
// candidates.
struct Products {
    std::int64_t group;

    //  bounds[r, p] = offsets[p] - 2 sum_j rows[r, j] points[p, j]
    //  in: rows, panels, offsets      out: bounds, n_groups * group rows, `stride` apart
    void (*lower_bounds)(const float *rows, std::int64_t n_groups, std::int64_t n_columns, const float *panels,
                         std::int64_t n_panels, const float *offsets, float *bounds, std::int64_t stride);

    //  bounds[k] = offsets[places[k]] - 2 sum_j row[j] points[places[k], j]
    //  in: row and points, n_columns apart, a multiple of kPadding
    void (*lower_bounds_at)(const float *row, std::int64_t n_columns, const float *points, const float *offsets,
                            const std::int32_t *places, std::int64_t n, float *bounds);

    //  distances[r, p] = row_offsets[r] + offsets[p] - 2 sum_j rows[r, j] points[p, j], in int32, then rounded
    //  in: rows and panels of bytes, four columns side by side: [n_groups][n_quads][group][4],
    //  [n_panels][n_quads][kPanel][4] Null where the CPU has no instruction for it.
    void (*byte_distances)(const std::int8_t *rows, const std::int32_t *row_offsets, std::int64_t n_groups,
                           std::int64_t n_quads, const std::uint8_t *panels, std::int64_t n_panels,
                           const std::int32_t *offsets, float *distances, std::int64_t stride);

    // Writes the places k < n with bounds[k] <= limit, ascending; returns how many.
    std::int64_t (*places_within)(const float *bounds, std::int64_t n, float limit, std::int32_t *places);

    // Goes on with the minima of kPanel samples from the begin-th to the end-th of their points.
    //  in: bounds, numbers [end][kPanel]      out: least, second, the smallest two, and at, the place of the first
    //  least
    void (*running_minima)(const float *bounds, const std::int32_t *numbers, std::int64_t begin, std::int64_t end,
                           float *least, float *second, std::int32_t *at);

    // Meets one point, or several as one.
    //  in: members, of different samples, their places ascending or all within the sizes that are open
    void (*meet)(const NestedMember *members, std::int64_t n, const Met &met);
};

// The widest that this CPU runs.
const Products &best_products();

} // namespace isokern
