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

// A point's places in nested samples come side by side, kTogether of them at least.
constexpr std::int64_t kTogether = 32;
constexpr std::uint16_t kNowhere = 0xffff;

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

    // The first of several points' places in each sample, as in walk.
    void (*first_places)(const std::uint16_t *const *points, std::int64_t n, std::int64_t n_samples,
                         std::uint16_t *first);

    // Goes on with a walk (nested_walk.hpp): the first place below `size` that each sample meets.
    //  in: steps, each a point's places in n_samples, a multiple of kTogether; kNowhere where it is not in a sample
    //  out: found, kNowhere where there has been none so far; returns whether there is such a sample
    bool (*walk)(const std::uint16_t *const *steps, std::int64_t n_steps, std::uint16_t size, std::int64_t n_samples,
                 std::uint16_t *found);
};

// The widest that this CPU runs.
const Products &best_products();

} // namespace isokern
