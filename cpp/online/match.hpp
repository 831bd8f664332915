// The Isolation Kernel of two rows: the share of partitionings in which they fall into the same cell, at one or more
// scales.
//
// In: tables of cells, n x n_scales x t, and a weight for each scale. Out: the kernel matrix, the weighted share of
// equal cells for each pair of rows. That is the dot product of their feature maps, computed by comparing cell numbers
// with SIMD.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace isokern {

//  #{i < t : a[i] = b[i]}
// Counts in the cells' own type, runs of 192 at a time, so that even a byte cannot overflow and the loop vectorises
// with the narrowest lanes.
template <class Cell> std::int64_t count_equal(const Cell *a, const Cell *b, std::int64_t t) {
    std::int64_t total = 0;
    for (std::int64_t begin = 0; begin < t; begin += 192) {
        Cell equal = 0;
        const std::int64_t end = std::min(begin + 192, t);
        for (std::int64_t i = begin; i < end; ++i)
            equal = static_cast<Cell>(equal + (a[i] == b[i]));
        total += equal;
    }
    return total;
}

//  shares[a, b] = sum_l weights[l] #{i : first[a, l, i] = second[b, l, i]} / sum_l weights[l] t
//  in: first (n_first x n_scales x t), second (n_second x n_scales x t)      out: shares, n_first x n_second
// Both sums are rounded alike, so equal rows have a share of exactly 1.
template <class Cell, class Real>
void match_cells(const Cell *first, std::int64_t n_first, const Cell *second, std::int64_t n_second, std::int64_t t,
                 std::span<const double> weights, Real *shares, int threads);

} // namespace isokern
