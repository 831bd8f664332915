// What the bindings of all learners share.
#pragma once

#include <optional>

#include <nanobind/stl/optional.h>

#include "../online.hpp"
#include "arrays.hpp"

namespace isokern::bindings {

using TargetArgument = std::variant<Vector<std::int32_t>, Vector<double>>;
using OptionalVector = std::optional<Vector<double>>;
using OptionalOutput = std::optional<Output<double>>;
using OptionalTable = std::optional<Table<double>>;

// Far more rows than any stream has, and so few that counting on does not overflow.
constexpr std::int64_t kLargestRound = std::int64_t{1} << 61;

// How to learn: a loss and its steps.
struct Rule {
    AnyLoss loss;
    Step step;
};

inline void check_columns(const Rule &rule, std::int64_t n_columns) {
    if (static_cast<std::int64_t>(rule.step.counted_from.size()) != n_columns)
        throw std::invalid_argument("counted_from must have an entry for each column.");
}

inline AnyTarget view(const TargetArgument &targets, std::int64_t n_rows) {
    return std::visit(
        [&]<class T>(const Vector<T> &array) -> AnyTarget {
            if (static_cast<std::int64_t>(array.size()) != n_rows)
                throw std::invalid_argument("there must be a target for each row.");
            if constexpr (std::is_same_v<T, double>)
                return ValueTarget{array.data()};
            else
                return ClassTarget{array.data()};
        },
        targets);
}

inline const double *view(const OptionalVector &row_weights, std::int64_t n_rows) {
    if (row_weights && static_cast<std::int64_t>(row_weights->size()) != n_rows)
        throw std::invalid_argument("there must be a weight for each row.");
    return row_weights ? row_weights->data() : nullptr;
}

} // namespace isokern::bindings
