// Linear support vector machines on the one-hot feature map of cells and on a linear term, by dual coordinate descent
// (as in LIBLINEAR).
//
// In: cells of rows at one or several scales, rows of a linear term, classes, row weights, C. Out: one weight per cell
// and linear column and an intercept for each column (one-vs-rest). Dual variables and weights are changed in place, so
// that one solution can be the start of the next.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "online/scale_scores.hpp"

namespace isokern {

struct SvmRule {
    bool is_squared;       // the loss of a margin m = y f(x): max(0, 1 - m)^2, else max(0, 1 - m)
    double cost;           // C
    double intercept;      // s^2, where s is the value of the constant feature; 0: no intercept
    double tolerance;      // stop if the range of projected gradients is at most this
    double gain;           // or if a pass raises the dual objective by less than this share of it
    std::int64_t max_iter; // passes over the rows, at most
    std::uint64_t seed;    // of the random orders in which rows are visited
};

// Features of rows: a_l / sqrt(t) in the cell of each partitioning at scale l, and the columns z of a linear term.
struct SvmRows {
    std::int64_t n_rows;
    std::optional<AnyCells> cells;    // t L of each row, partitioning by partitioning
    std::span<const float> shares;    // a_l, by scale
    std::optional<LinearRows> linear; // its constant is left out, the intercept takes its place

    std::int64_t n_cells() const {
        return cells ? std::visit([](const auto &rows) { return rows.n_cells(); }, *cells) : 0;
    }
    std::int64_t n_weights() const { return n_cells() + (linear ? linear->n_columns() : 0); }
};

// A solution, and the start of another: zeros, or what a solve for another C or for fewer rows has left.
// Weight: double, or float for large tables of weights, whose random accesses wait for memory.
template <class Weight> struct SvmSolution {
    Weight *weights;      // n_columns x n_weights: those of cells are u = a_l w sqrt(t), so that scoring adds them
    double *intercepts;   // n_columns
    double *alpha;        // n_columns x n_rows, dual variables; null: start at 0 and forget them
    std::int64_t *n_iter; // n_columns, out: passes made
};

// Solves for each column k, with y_r = +1 for rows of class k, else -1,
//     min_{w, b}  |w|^2 / 2 + b^2 / (2 s^2) + sum_r C_r L(y_r f(x_r)),    f(x) = <w, phi(x)> + b
// in its dual, where U_r = C_r, D_r = 0 for the hinge loss, U_r = infinity, D_r = 1 / (2 C_r) for its square,
//     min_a  a'(Q + D)a / 2 - sum_r a_r,  0 <= a_r <= U_r,    Q_rq = y_r y_q (K(x_r, x_q) + s^2).
//   in: rows; which: rows that take part; classes: by row; row_weights: C_r / C by row, or null; threads: columns that
//   are solved in parallel
template <class Weight>
void solve_svm(const SvmRows &rows, std::span<const std::int32_t> which, const ClassTarget &classes,
               const double *row_weights, const SvmRule &rule, std::int64_t n_columns,
               const SvmSolution<Weight> &solution, int threads);

} // namespace isokern
