// Matrix products of rows with points, and the scans of their results, for each SIMD instruction set.
//
// In: rows and points packed into groups and panels. Out: lower bounds on squared distances, in float32 (GEMM with
// register blocking) or from int8 dot products (VNNI); candidates and running minima of such bounds. The functions are
// compiled once per instruction set (products_kernel.cpp) and chosen at run time. Their results may differ in the last
// bits between CPUs, so callers use them only to choose candidates.
#pragma once

#include <cstdint>

namespace isokern {

constexpr std::int64_t kPanel = 16;    // points of a panel, interleaved column by column
constexpr std::int64_t kPadding = 32;  // lower_bounds_at needs a multiple of this many columns
constexpr std::int64_t kByteGroup = 8; // rows of a group for byte_distances

// The largest number of consecutive roundings in a dot product of length n below. Its error is at most this number
// times 2^-24 times the sum of the products' magnitudes. lower_bounds adds up sums of 64 products each (one_by_one);
// lower_bounds_at keeps at least 16 partial sums (side_by_side).
constexpr std::int64_t n_roundings(std::int64_t n) {
    const std::int64_t one_by_one = (n < 64 ? n : 64) + n / 64 + 1, side_by_side = n / 16 + 9;
    return one_by_one > side_by_side ? one_by_one : side_by_side;
}

constexpr std::int64_t kTogether = 32;     // samples processed together by first_places and walk
constexpr std::uint16_t kNowhere = 0xffff; // the place of a point that is not in a sample

// Panels hold kPanel points each, [n_panels][n_columns][kPanel]; rows come in groups of `group` rows,
// [n_groups][n_columns][group].
struct Products {
    std::int64_t group;

    //  bounds[r, p] = offsets[p] - 2 sum_j rows[r, j] points[p, j]
    //  in: rows, panels, offsets      out: bounds, n_groups * group rows, `stride` apart
    void (*lower_bounds)(const float *rows, std::int64_t n_groups, std::int64_t n_columns, const float *panels,
                         std::int64_t n_panels, const float *offsets, float *bounds, std::int64_t stride);

    //  bounds[k] = offsets[places[k]] - 2 sum_j row[j] points[places[k], j] for k < n
    //  in: row; points, not packed: [point][n_columns], n_columns a multiple of kPadding
    void (*lower_bounds_at)(const float *row, std::int64_t n_columns, const float *points, const float *offsets,
                            const std::int32_t *places, std::int64_t n, float *bounds);

    //  distances[r, p] = row_offsets[r] + offsets[p] - 2 sum_j rows[r, j] points[p, j], in int32, then as float32
    //  in: rows [n_groups][n_quads][kByteGroup][4] and panels [n_panels][n_quads][kPanel][4], quads of four columns
    // Null if the CPU has no int8 dot product (VNNI).
    void (*byte_distances)(const std::int8_t *rows, const std::int32_t *row_offsets, std::int64_t n_groups,
                           std::int64_t n_quads, const std::uint8_t *panels, std::int64_t n_panels,
                           const std::int32_t *offsets, float *distances, std::int64_t stride);

    // Writes the indices k < n with bounds[k] <= limit, ascending; returns their number.
    std::int64_t (*places_within)(const float *bounds, std::int64_t n, float limit, std::int32_t *places);

    // Continues the running minima of kPanel samples over their places begin .. end - 1. For sample l, with the bounds
    // b[k] = bounds[numbers[k, l]]:
    //  least[l], second[l] = the smallest two b[k] so far,   at[l] = the first place k with b[k] = least[l]
    //  in: bounds, numbers [end][kPanel]      changed: least, second, at
    void (*running_minima)(const float *bounds, const std::int32_t *numbers, std::int64_t begin, std::int64_t end,
                           float *least, float *second, std::int32_t *at);

    //  first[i] = min_k points[k][i]: the first place, in each sample, of any of n points      in: places as in walk
    void (*first_places)(const std::uint16_t *const *points, std::int64_t n, std::int64_t n_samples,
                         std::uint16_t *first);

    // Continues a walk (nested_walk.hpp): for each sample i with nothing found so far,
    //  found[i] = steps[k][i] for the first k with steps[k][i] < size
    //  in: steps, each the places of a point in n_samples (a multiple of kTogether), kNowhere if it is not in a sample
    //  changed: found, kNowhere where nothing has been found; returns whether there is such a sample
    bool (*walk)(const std::uint16_t *const *steps, std::int64_t n_steps, std::uint16_t size, std::int64_t n_samples,
                 std::uint16_t *found);
};

// The implementation for the widest instruction set that this CPU supports.
const Products &best_products();

} // namespace isokern
