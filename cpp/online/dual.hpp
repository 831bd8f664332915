// Kernel online gradient descent in the dual, with the Isolation Kernel: support vectors instead of weights per cell.
//
//  f_k(x) = sum_j alpha[j, k] K(x_j, x),   K(x, y) = (1/t) #{i : phi_i(x) = phi_i(y)}
// In: cells of rows in order, targets. Out: support vectors with coefficients, scores. Scores equal those of primal.hpp
// up to rounding, but the cost of a row grows with the number of support vectors. AdaGrad is not supported.
#pragma once

#include <cstdint>

#include "online/online_loop.hpp"

namespace isokern {

// n support vectors: their cells (n x t) and coefficients alpha.
template <class Cell> struct SupportView {
    const Cell *cells;
    WeightView weights;
    std::int64_t n;
};

// The same with room for more.
template <class Cell> struct SupportVectors {
    Cell *cells;
    Weights weights; // squares is null
    std::int64_t n;

    SupportView<Cell> view() const { return {cells, weights.view(), n}; }
};

// As learn_primal, but a row with g != 0 becomes a support vector with alpha = -eta g. Needs room for all rows.
template <class Cell>
void learn_dual(const CellRows<Cell> &rows, const AnyTarget &targets, const double *row_weights, const AnyLoss &loss,
                const Step &step, SupportVectors<Cell> &support, Clock &clock, double *scores);

//  scores[r, k] = sum_j alpha[j, k] K(x_j, x_r)      of averaged coefficients if there are sums, else of the last ones
template <class Cell>
void score_dual(const CellRows<Cell> &rows, const SupportView<Cell> &support, const Clock &clock, double *scores,
                int threads);

} // namespace isokern
