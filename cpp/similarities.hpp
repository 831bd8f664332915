// Sums over columns that kernels are functions of, and exponentials of them, for whatever vector unit the CPU has.
#pragma once

#include <cstdint>

namespace isokern {

constexpr std::int64_t kLane = 8; // points side by side

enum class Measure { l1, squared_l2, dot, chi_squared, intersection };

// Points lie in panels of kLane, [n_panels][n_columns][kLane]. Each point's sum is computed by itself and in the order
// of the columns, without fused multiply-add, so it depends neither on its neighbours nor on the CPU.
struct Similarities {
    // sums[l] = totals[l] + what the row's non-zero values, given by column, change of it for point l of a panel, where
    // totals are the points' sums with the all-zero row.
    void (*sparse_sums)(Measure measure, const std::int32_t *columns, const double *values, std::int64_t n,
                        const double *panel, const double *totals, double *sums);

    // The same with all columns of a row, for measures where differences of large totals would lose digits.
    void (*dense_sums)(Measure measure, const double *row, std::int64_t n_columns, const double *panel, double *sums);

    // values[k] = exp(-factor * values[k]), n a multiple of kLane; negative sums count as 0.
    void (*decay)(double factor, double *values, std::int64_t n);
};

const Similarities &best_similarities();

} // namespace isokern
