// Matrix products of rows with points, for each SIMD instruction set.
//
// In: rows and points packed into groups and panels. Out: lower bounds on squared distances, in float32 (GEMM with
// register blocking). The functions are compiled once per instruction set (products_kernel.cpp) and chosen at run time.
// Their results may differ in the last bits between CPUs, so callers use them only to choose candidates.
#pragma once

#include <cstddef>
#include <cstdint>

namespace isokern {

constexpr std::int64_t kPanel = 16;   // points of a panel, interleaved column by column
constexpr std::int64_t kPadding = 32; // lower_bounds_at needs a multiple of this many columns
constexpr std::int64_t kSummed = 64;  // products that lower_bounds adds to one partial sum

// The largest number of consecutive roundings in a dot product of length n below. Its error is at most this number
// times 2^-24 times the sum of the products' magnitudes. lower_bounds adds up sums of kSummed products each
// (one_by_one); lower_bounds_at keeps at least 16 partial sums (side_by_side).
constexpr std::int64_t n_roundings(std::int64_t n) {
    const std::int64_t one_by_one = (n < kSummed ? n : kSummed) + n / kSummed + 1, side_by_side = n / 16 + 9;
    return one_by_one > side_by_side ? one_by_one : side_by_side;
}

// The number of panels of n points.
constexpr std::int64_t n_panels(std::int64_t n) { return (n + kPanel - 1) / kPanel; }

// Where value j of point p stands in panels of n_columns columns.
constexpr std::size_t panel_index(std::int64_t p, std::int64_t j, std::int64_t n_columns) {
    return static_cast<std::size_t>(p / kPanel * kPanel * n_columns + j * kPanel + p % kPanel);
}

// Panels hold kPanel points each, [n_panels][n_columns][kPanel]; rows come in groups of `group` rows,
// [n_groups][n_columns][group].
struct Products {
    std::int64_t group;

    //  bounds[r, p] = offsets[p] - 2 sum_j rows[r, j] points[p, j]
    //  in: rows, panels, offsets      out: bounds, n_groups * group rows, `stride` apart
    void (*lower_bounds)(const float *rows, std::int64_t n_groups, std::int64_t n_columns, const float *panels,
                         std::int64_t n_panels, const float *offsets, float *bounds, std::int64_t stride);

    //  bounds[k] = offsets[indices[k]] - 2 sum_j row[j] points[indices[k], j] for k < n
    //  in: row; points, not packed: [point][n_columns], n_columns a multiple of kPadding
    void (*lower_bounds_at)(const float *row, std::int64_t n_columns, const float *points, const float *offsets,
                            const std::int32_t *indices, std::int64_t n, float *bounds);
};

// The implementation for the widest instruction set that this CPU supports.
const Products &best_products();

} // namespace isokern
