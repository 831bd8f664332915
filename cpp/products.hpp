// Blocked float32 products of rows with points, for whatever vector unit the CPU has.
#pragma once

#include <cstdint>

namespace isokern {

constexpr std::int64_t kPanel = 16; // points side by side in a panel

// Panels hold kPanel points each, [n_panels][n_columns][kPanel]; rows come in groups of `group` rows,
// [n_groups][n_columns][group]. Numbers may differ in the last bits from one CPU to the next, so they only ever choose
// candidates.
struct Products {
    std::int64_t group;

    //  bounds[r, p] = offsets[p] - 2 sum_j rows[r, j] points[p, j]
    //  in: rows, panels, offsets      out: bounds, n_groups * group rows, `stride` apart
    void (*lower_bounds)(const float *rows, std::int64_t n_groups, std::int64_t n_columns, const float *panels,
                         std::int64_t n_panels, const float *offsets, float *bounds, std::int64_t stride);

    //  bounds[k] = offsets[places[k]] - 2 sum_j row[j] points[places[k], j]      in: points, n_columns apart
    void (*lower_bounds_at)(const float *row, std::int64_t n_columns, const float *points, const float *offsets,
                            const std::int32_t *places, std::int64_t n, float *bounds);

    // Writes the places k < n with bounds[k] <= limit, ascending; returns how many.
    std::int64_t (*places_within)(const float *bounds, std::int64_t n, float limit, std::int32_t *places);
};

// The widest that this CPU runs.
const Products &best_products();

} // namespace isokern
