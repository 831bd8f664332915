// Learning and scoring with support vectors: f_k(x) = sum_j alpha[j, k] K(x_j, x), at a cost that grows with their
// number.
#pragma once

#include <cstdint>

#include "online_loop.hpp"

namespace isokern {

// n support vectors: their cells, (n x t), and coefficients alpha.
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

// As learn_primal, but each violated row is added to the support vectors with alpha = -eta g. Needs room for all rows.
template <class Cell>
void learn_dual(const CellRows<Cell> &rows, const AnyTarget &targets, const double *row_weights, const AnyLoss &loss,
                const Step &step, SupportVectors<Cell> &support, Clock &clock, double *scores);

// scores[r, k] = sum_j alpha[j, k] K(x_j, x_r), averaged if there are sums.
template <class Cell>
void score_dual(const CellRows<Cell> &rows, const SupportView<Cell> &support, const Clock &clock, double *scores,
                int threads);

} // namespace isokern
