// Online gradient descent on dense features, such as random Fourier features or a Nystroem map (FOGD and NOGD).
//
//  f_k(z) = sum_j w[j, k] z_j
// In: features of rows in order, targets. Out: weights, and optionally their sum for averaging. Shrinkage and AdaGrad
// are not supported. Also projects rows onto random directions, for random Fourier features.
#pragma once

#include <cstdint>

#include "common/rows.hpp"
#include "online/online.hpp"

namespace isokern {

struct LinearWeights {
    double *values;          // w, n_features x n_columns
    double *sums;            // of w over the updates of each column, or null if there is no averaging
    std::int64_t *n_updates; // by column
    std::int64_t n_columns;
};

// One pass over the rows of features in order: if g = dL/df_k is not 0, w[:, k] -= eta g z.
//   in: features, targets, row_weights (or null)      changed: weights, clock
//   out: scores of each row before its step, of the mean weights if there are sums; or null
void learn_linear(const DenseRows<double> &features, const AnyTarget &targets, const double *row_weights,
                  const AnyLoss &loss, const Step &step, const LinearWeights &weights, Clock &clock, double *scores);

//  projected[r, m] = sum_j rows[r, j] matrix[j, m]
// Each row is computed by itself, so the result does not depend on the others, as it may in a BLAS.
template <class Rows>
void project(const Rows &rows, const double *matrix, std::int64_t n_features, double *projected, int threads);

} // namespace isokern
