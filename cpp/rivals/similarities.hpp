// Distances and dot products of a row with many points, and exponentials of them, for each SIMD instruction set.
//
// In: a row, dense or sparse; points packed into panels. Out: for each point a sum over columns, of which the classic
// kernels are functions (kernel_points.hpp). The functions are compiled once per instruction set
// (similarities_kernel.cpp) and chosen at run time. Unlike products.hpp, results are the same on all CPUs: each point's
// sum adds the columns in order, without fused multiply-add.
#pragma once

#include <cstdint>

namespace isokern {

constexpr std::int64_t kLane = 8; // points of a panel, interleaved column by column

// The sum over columns j of |x - z|, (x - z)^2, x z, 2 x z / (x + z) or min(x, z).
enum class Measure { l1, squared_l2, dot, chi_squared, intersection };

// Points are packed in panels of kLane, [n_panels][n_columns][kLane]; the functions take one panel.
struct Similarities {
    //  sums[l] = totals[l] + sum_k (term(values[k], z_kl) - term(0, z_kl)),   z_kl = panel[columns[k], l]
    // For sparse rows. totals[l] = sum_j term(0, panel[j, l]): the sum of point l with the all-zero row.
    void (*sparse_sums)(Measure measure, const std::int32_t *columns, const double *values, std::int64_t n,
                        const double *panel, const double *totals, double *sums);

    //  sums[l] = sum_j term(row[j], panel[j, l])
    // For dense rows, where totals and corrections would be large and their difference would lose digits.
    void (*dense_sums)(Measure measure, const double *row, std::int64_t n_columns, const double *panel, double *sums);

    //  values[k] = exp(-factor max(values[k], 0)) for k < n, n a multiple of kLane
    void (*decay)(double factor, double *values, std::int64_t n);
};

// The implementation for the widest instruction set that this CPU supports.
const Similarities &best_similarities();

} // namespace isokern
