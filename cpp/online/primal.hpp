// Online gradient descent in the primal, on the one-hot feature map: one weight per cell and score.
//
//  f_k(x) = (1/t) sum_i w[i, phi_i(x), k]
// In: cells phi_i(x) of rows in order, targets. Out: changed weights, scores. A row has t active features out of t psi,
// so scoring and learning a row touch t weights per score, whatever the number of support vectors.
#pragma once

#include <cstdint>

#include "online/online_loop.hpp"

namespace isokern {

// One pass over the rows in order. With g = row weight * dL/df at the current score, a row with g != 0 does, for all i,
//     w[i, phi_i(x), k] -= eta g                                          (constant, decaying)
//     w[i, phi_i(x), k] -= eta g / sqrt(sum of the cell's g^2 so far)     (AdaGrad)
//   in: cells, targets, row_weights (or null); naive: compute scores by all n_cells products
//   changed: weights, clock
//   out: scores (n_rows x n_columns, or null) before each row's step, as score_primal would give them
template <class Cell>
void learn_primal(const CellRows<Cell> &rows, const AnyTarget &targets, const double *row_weights, const AnyLoss &loss,
                  const Step &step, bool naive, Weights weights, Clock &clock, double *scores);

//  scores[r, k] = (1/t) sum_i w[i, phi_i(r), k]      of averaged weights if there are sums, else of the last ones
template <class Cell>
void score_primal(const CellRows<Cell> &rows, WeightView weights, const Clock &clock, bool naive, double *scores,
                  int threads);

//  sums[c, k] = sum of values[r, k] over the rows r that fall into cell c
// The transpose of scoring, as needed for gradients.
template <class Cell>
void sum_by_cell(const CellRows<Cell> &rows, const double *values, std::int64_t n_columns, double *sums);

} // namespace isokern
