// Online gradient descent on cells: what its three evaluations (primal, naive, dual) share.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "losses.hpp"

namespace isokern {

// The cells of rows, (n_rows x t) of any unsigned type, and where each partitioning's cells start among all cells.
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

enum class Schedule { constant, decaying, adagrad };

// Which rows are support vectors: those that change a column that counts, from the row on from which it does.
using CountedFrom = std::vector<std::int64_t>; // by column

struct Step {
    Schedule schedule;
    double rate;      // eta
    double shrinkage; // lambda: each round multiplies the weights by 1 - eta lambda
    CountedFrom counted_from;

    double rate_in(std::int64_t round) const {
        return schedule == Schedule::decaying ? rate / std::sqrt(static_cast<double>(round)) : rate;
    }
};

// Time as the weights know it. They are kept as w = scale v, so that shrinking all is one multiplication; the sum of w
// over the rounds is scale_sum v - a, where a gathers what each step delta v missed: delta v times scale_sum before it.
struct Clock {
    std::int64_t rounds = 0;
    std::int64_t n_support = 0; // rows that changed the weights
    double scale = 1.0;
    double scale_sum = 0.0;
};

// What a row is to teach the score in column k: +1 in its class's column and -1 in the others, or the value itself.
struct ClassTarget {
    const std::int32_t *column; // by row; -1: none of the columns
    double operator()(std::int64_t r, std::int64_t k) const { return column[r] == k ? 1.0 : -1.0; }
};
struct ValueTarget {
    const double *value;
    double operator()(std::int64_t r, std::int64_t) const { return value[r]; }
};

using AnyLoss = std::variant<Hinge, SquaredHinge, Logistic, Squared, Huber, EpsilonInsensitive>;
using AnyTarget = std::variant<ClassTarget, ValueTarget>;

AnyLoss loss_by_name(std::string_view name, double epsilon);
Schedule schedule_by_name(std::string_view name);

} // namespace isokern
