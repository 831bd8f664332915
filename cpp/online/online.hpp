// Types shared by the online learners: cells, steps, targets and the clock of lazily scaled and averaged weights.
//
// Online gradient descent (Zinkevich, 2003) on the one-hot feature map of cells: score a row, take the derivative of
// the loss, move the weights against it. primal.hpp keeps one weight per cell, dual.hpp the support vectors; linear.hpp
// and kernel_machine.hpp use the same loop (online_loop.hpp) on other features.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "online/losses.hpp"
#include "online/model_lock.hpp"

namespace isokern {

// The cells of rows, n_rows x t of any unsigned type. starts[i] is the index of partitioning i's first cell among all
// cells.
template <class Cell> struct CellRows {
    const Cell *cells;
    std::int64_t n_rows;
    std::int64_t t;
    const std::int64_t *starts; // t + 1

    const Cell *row(std::int64_t r) const { return cells + r * t; }
    std::int64_t n_cells() const { return starts[t]; }
};

// Whether every cell number is below its partitioning's number of cells.
template <class Cell> bool are_cells(const CellRows<Cell> &rows);

// Learning rates: eta, eta / sqrt(round), or AdaGrad's rate per cell (Duchi, Hazan and Singer, 2011).
enum class Schedule { constant, decaying, adagrad };

// A row counts as a support vector if it changes some column k and its number in the call is at least counted_from[k].
// The columns of classes that appear later in a stream do not count before that.
using CountedFrom = std::vector<std::int64_t>; // by column

struct Step {
    Schedule schedule;
    double rate;      // eta
    double shrinkage; // lambda: each round multiplies the weights by 1 - eta lambda
    CountedFrom counted_from;
    bool is_new = true; // whether the rows are learned for the first time, not in a further pass

    double rate_in(std::int64_t round) const {
        return schedule == Schedule::decaying ? rate / std::sqrt(static_cast<double>(round)) : rate;
    }
};

// The state of lazy updates, which touch only the cells of the current row.
// Scaling: weights are stored as w = scale v, so that shrinking all of them is one multiplication (as in Pegasos).
// Averaging: the sum of w over the rounds is scale_sum v - a. A step delta v misses the rounds before it, so it adds
// delta v times the scale_sum so far to a.
struct Clock {
    std::int64_t rounds = 0;
    std::int64_t n_support = 0; // support vectors: rows that changed the weights
    double scale = 1.0;
    double scale_sum = 0.0;      // of scale over the rounds
    std::int64_t n_rows = 0;     // rows; further passes over them are only rounds
    mutable ModelLock lock = {}; // of the model that the clock belongs to, if it is changed in place
};

// The target of row r for the score in column k: +1 in the column of its class and -1 in the others (one-vs-rest), or
// the value itself (regression). The loss is that of scores and values divided by their unit.
struct ClassTarget {
    const std::int32_t *column; // by row: the column of its class, or -1 if the class has none
    std::int64_t first = 0;     // column of the first score
    double operator()(std::int64_t r, std::int64_t k) const { return column[r] == k + first ? 1.0 : -1.0; }
    static constexpr double unit(std::int64_t, std::int64_t) { return 1.0; }
    ClassTarget columns(std::int64_t begin) const { return {column, first + begin}; }
};
struct ValueTarget {
    const double *value;    // n_rows x n_columns
    const double *units;    // of the same shape, or null for 1
    std::int64_t n_columns; // of these arrays
    double operator()(std::int64_t r, std::int64_t k) const { return value[r * n_columns + k] / unit(r, k); }
    double unit(std::int64_t r, std::int64_t k) const { return units ? units[r * n_columns + k] : 1.0; }
    ValueTarget columns(std::int64_t begin) const {
        return {value + begin, units ? units + begin : nullptr, n_columns};
    }
};

using AnyLoss = std::variant<Hinge, SquaredHinge, Logistic, Squared, Huber, EpsilonInsensitive, Quantiles>;
using AnyTarget = std::variant<ClassTarget, ValueTarget>;

// The loss or schedule of this name. They throw if the name is unknown.
AnyLoss loss_by_name(std::string_view name, double epsilon, const std::vector<double> &quantiles);
Schedule schedule_by_name(std::string_view name);

} // namespace isokern
