// Counts of equal cells between a row and 64 stored rows, for each SIMD instruction set.
//
// In: a panel of 64 stored rows, partitioning by partitioning; the cells of a row. Out: for each stored row, in how
// many partitionings it shares the row's cell. The functions are compiled once per instruction set
// (equal_counts_kernel.cpp) and chosen at run time.
#pragma once

#include <cstdint>

namespace isokern {

constexpr std::int64_t kPanelRows = 64;

struct EqualCounts {
    //  counts[r] = #{i < t : panel[i, r] = row[i]}
    //   in: panel, t x kPanelRows cells; row, t cells. By log2 of the bytes of a cell: uint8, uint16, uint32.
    void (*count[3])(const void *panel, const void *row, std::int64_t t, std::int32_t *counts);

    //  sums[r] = sum_l weights[l] counts[l, r], added in this order
    // Returns whether one of them is above a limit.
    bool (*add_scales)(const std::int32_t *counts, const double *weights, std::int64_t n_scales, double limit,
                       double *sums);
};

// The implementation for the widest instruction set that this CPU supports.
const EqualCounts &best_equal_counts();

} // namespace isokern
