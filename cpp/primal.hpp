// Learning and scoring with one weight for each cell and column: f_k(x) = (1/t) sum_i w[i, phi_i(x), k].
#pragma once

#include <cstdint>

#include "online_loop.hpp"

namespace isokern {

// One pass over the rows in order. With g = dL/df at the current score, each violated row does, for all i,
//     w[i, phi_i(x), k] -= eta g                                        (constant, decaying)
//     w[i, phi_i(x), k] -= eta g / sqrt(sum of this cell's g^2 so far)  (AdaGrad)
//   in: cells, targets, row_weights (factors of g, or null), naive: compute scores by all n_cells products
//   changed: weights, clock      out: scores (n_rows x n_columns) before each row's step, as score_primal gives them;
//   or null
template <class Cell>
void learn_primal(const CellRows<Cell> &rows, const AnyTarget &targets, const double *row_weights, const AnyLoss &loss,
                  const Step &step, bool naive, Weights weights, Clock &clock, double *scores);

// scores[r, k] = (1/t) sum_i w[i, phi_i(r), k], of the averaged weights if there are sums, else of the last ones.
template <class Cell>
void score_primal(const CellRows<Cell> &rows, WeightView weights, const Clock &clock, bool naive, double *scores,
                  int threads);

// What scoring does, turned round: sums[c, k] = sum of values[r, k] over the rows r that fall into cell c.
template <class Cell>
void sum_by_cell(const CellRows<Cell> &rows, const double *values, std::int64_t n_columns, double *sums);

} // namespace isokern
