// Online gradient descent on the cells of several scales of each partitioning, and on a linear term.
//
// In: cells and linear rows, in order, as in scale_scores.hpp; targets. Out: changed weights, scores. The feature of a
// cell of scale l is a_l (its share), so the kernel is sum_l a_l^2 (share of equal cells at scale l) + <z, z'>. Stored
// are u = a_l w, so that scoring adds without factors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "online/online_loop.hpp"
#include "online/scale_scores.hpp"

namespace isokern {

// Weights of a model: tables with a row for each cell or linear column, and n_columns columns. Squares are the sums of
// squared gradients for AdaGrad, null for other schedules. Values and squares may take turns row by row in one array:
// then a cell's weight and its square are in one cache line.
struct ScaleWeights {
    float *values, *squares;               // null without cells
    std::int64_t stride;                   // from a row of these tables to the next
    const float *shares;                   // a_l, by scale
    std::int64_t n_scales;                 // L
    float *linear_values, *linear_squares; // null without a linear term
    std::int64_t linear_stride;
    std::int64_t n_columns;

    ScaleWeights columns(std::int64_t begin, std::int64_t end) const {
        const auto from = [&](float *table) { return table ? table + begin : nullptr; };
        return {from(values),        from(squares),        stride,        shares,     n_scales,
                from(linear_values), from(linear_squares), linear_stride, end - begin};
    }
};

// A tree is renewed: after `row` rows, all weights of its cells are forgotten, and learned anew from rows of the past,
// as if the tree were a model of its own. Against the score of all trees it would learn nothing, because the others
// explain these rows already. Rows after that have cells of the new tree.
struct Renewal {
    std::int64_t row;
    std::int64_t first; // the tree's first column of cells; in rows of the past, it is column 0
    AnyCells cells;     // of rows of the past
    AnyTarget targets;
    const double *row_weights; // or null
    float square;              // what sums of squared gradients begin with
};

// One pass over the rows in order. With g = row weight * dL/df at the current score, a row with g != 0 does
//     u[i, l, phi_il(x), k] -= eta g a_l^2                                    for all i, l    (constant, decaying)
//     u[i, l, phi_il(x), k] -= eta g a_l / sqrt(sum of the cell's g^2 so far)                  (AdaGrad)
// and the like for v. The step of v moves the row's own score past the minimum of its loss by at most eta.
// Columns are independent of each other, so that several threads may learn some of them each.
//   in: cells and linear rows, either or both; targets, row_weights (or null); renewals, their rows ascend; clock
//   changed: the weights of columns begin to end
//   out: scores (n_rows x n_columns) of these columns before each row's step, as score_scales would give them, or null
void learn_scales(const std::optional<AnyCells> &cells, const std::optional<LinearRows> &linear, std::int64_t n_rows,
                  const AnyTarget &targets, const double *row_weights, const AnyLoss &loss, const Step &step,
                  const ScaleWeights &weights, std::int64_t begin, std::int64_t end, std::span<const Renewal> renewals,
                  const Clock &clock, double *scores);

// Advances the clock of a model whose columns have all learned the rows; scores are those before each row's step.
void count_rows(const double *scores, std::int64_t n_rows, std::int64_t n_columns, const AnyTarget &targets,
                const double *row_weights, const AnyLoss &loss, const Step &step, Clock &clock);

} // namespace isokern
