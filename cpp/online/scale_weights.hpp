// Online gradient descent on the cells of several scales of each partitioning, and on a linear term.
//
//  f_k(x) = (1/t) sum_i sum_l u[i, l, phi_il(x), k]  +  sum_j z_j v[j, k]
// In: cells phi_il(x) of rows in order, t partitionings with L scales each, coarse to fine; rows z of the linear term;
// targets. Out: changed weights, scores. The feature of a cell of scale l is a_l (its share), so the kernel is
// sum_l a_l^2 (share of equal cells at scale l) + <z, z'>. Stored are u = a_l w, so that scoring adds without factors.
// Weights are floats, sums of them doubles.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "common/rows.hpp"
#include "online/online_loop.hpp"

namespace isokern {

using AnyCells = std::variant<CellRows<std::uint8_t>, CellRows<std::uint16_t>, CellRows<std::uint32_t>>;

// Rows z of the linear term. The last weight, of row n_columns, is that of a column of constants.
struct LinearRows {
    std::variant<DenseRows<float>, CsrRows<float>> rows;
    float constant;

    std::int64_t n_columns() const {
        return std::visit([](const auto &any) { return any.n_columns; }, rows);
    }
};

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

// Weights for scoring: of floats, or of doubles where the scales have been folded into the finest one.
template <class Value> struct ScaleView {
    const Value *values; // null without cells
    std::int64_t stride, n_scales;
    const float *linear_values; // null without a linear term
    std::int64_t linear_stride, n_columns;
};

template <class Value>
void score_scales(const std::optional<AnyCells> &cells, const std::optional<LinearRows> &linear, std::int64_t n_rows,
                  const ScaleView<Value> &weights, double *scores, int threads);

//  folded[i, c, k] = sum_l values[i, l, paths[i, c, l], k]      for the finest cells c of partitioning i
// Scores of the folded table are the same bytes: both add the scales first, coarse to fine.
//   in: paths (t x n_finest x L), starts (t L + 1) of the cells of each partitioning and scale
template <class Cell>
void fold_scales(const Cell *paths, std::int64_t t, std::int64_t n_finest, const std::int64_t *starts,
                 const ScaleView<float> &weights, double *folded, int threads);

// From which row on each class has been seen; a class that has not is never predicted. Of two classes, both share one
// column, which speaks for the second if positive; the first is target -1. Of more, each has a column.
using SeenFrom = std::vector<std::int64_t>; // by class

// Errors of rows: in `before`, the faded error before each row; in `now`, the row's own error without its weight.
//  before[r] = error,  error <- fade error + weight [the class with the largest score is not the row's], for each row
double faded_error(double error, double fade, const double *scores, std::int64_t n_rows, std::int64_t n_columns,
                   const SeenFrom &seen_from, const std::int32_t *targets, const double *row_weights, double *before,
                   double *now);

//  before[r] = error,  error <- fade error + weight mean_k error of loss(f_k / unit_k, y_k / unit_k), for each row
double faded_error(double error, double fade, const double *scores, std::int64_t n_rows, std::int64_t n_columns,
                   const ValueTarget &targets, const double *row_weights, const AnyLoss &loss, double *before,
                   double *now);

//  total <- fade total + weight, for each row
double faded_total(double total, double fade, std::int64_t n_rows, const double *row_weights);

} // namespace isokern
