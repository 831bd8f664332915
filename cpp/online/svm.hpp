// Linear support vector machines on the one-hot feature map of cells, by dual coordinate descent (as in LIBLINEAR).
//
// In: cells of rows, classes, row weights, C. Out: one weight per cell and an intercept for each column (one-vs-rest).
#pragma once

#include <cstdint>

#include "online/online.hpp"

namespace isokern {

struct SvmRule {
    bool is_squared;       // the loss of a margin m = y f(x): max(0, 1 - m)^2, else max(0, 1 - m)
    double cost;           // C
    double intercept;      // s^2, where s is the value of the constant feature; 0: no intercept
    double tolerance;      // stop if the range of projected gradients is at most this
    std::int64_t max_iter; // passes over the rows, at most
    std::uint64_t seed;    // of the random orders in which rows are visited
};

// Solves for each column k, with y_r = +1 for rows of class k, else -1,
//     min_{w, b}  |w|^2 / (2t) + b^2 / (2 s^2) + sum_r C_r L(y_r f(x_r)),    f(x) = (1/t) sum_i w[i, phi_i(x)] + b
// in its dual, where U_r = C_r, D_r = 0 for the hinge loss, U_r = infinity, D_r = 1 / (2 C_r) for its square,
//     min_a  a'(Q + D)a / 2 - sum_r a_r,  0 <= a_r <= U_r,    Q_rq = y_r y_q (K(x_r, x_q) + s^2).
//   in: rows; classes: by row; row_weights: C_r / C by row, or null; threads: columns that are solved in parallel
//   out: weights: n_columns x n_cells; intercepts, n_iter (passes made): n_columns each
template <class Cell>
void solve_svm(const CellRows<Cell> &rows, const ClassTarget &classes, const double *row_weights, const SvmRule &rule,
               std::int64_t n_columns, double *weights, double *intercepts, std::int64_t *n_iter, int threads);

} // namespace isokern
