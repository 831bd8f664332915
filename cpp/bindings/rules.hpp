// Argument types and checks shared by the bindings of all learners (online.cpp, rivals.cpp).
//
// In: optional and alternative NumPy arrays. Out: targets, row weights and rules as the core takes them. Lengths are
// checked here, because the core trusts its arguments.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include "bindings/arrays.hpp"
#include "online/online.hpp"

namespace isokern::bindings {

using OptionalOutput = std::optional<Output<double>>;
using OptionalTable = std::optional<Table<double>>;
// Columns of classes; or values with a column per score, and their units (None for 1).
using TargetArgument = std::variant<Vector<std::int32_t>, std::pair<Table<double>, OptionalTable>>;

// Arrays to copy, (to, from), in the same step in which rows are learned or scored.
using Copies = std::vector<
    std::pair<nb::ndarray<nb::c_contig, nb::device::cpu>, nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>>>;

inline void check(const Copies &copies) {
    for (const auto &[to, from] : copies)
        if (to.dtype() != from.dtype() || to.nbytes() != from.nbytes())
            throw std::invalid_argument("copies must be pairs of arrays of the same dtype and size.");
}

// Call check() first, with the GIL; these need none.
inline void copy(const Copies::value_type &pair) {
    if (pair.second.nbytes() > 0)
        std::memcpy(pair.first.data(), pair.second.data(), pair.second.nbytes());
}
inline void copy_all(const Copies &copies) {
    for (const auto &pair : copies)
        copy(pair);
}

// More rounds than any stream has, yet few enough that counting further does not overflow.
constexpr std::int64_t kLargestRound = std::int64_t{1} << 61;

// How to learn: a loss and a step size.
struct Rule {
    AnyLoss loss;
    Step step;
};

inline void check_columns(const Rule &rule, std::int64_t n_columns) {
    if (static_cast<std::int64_t>(rule.step.counted_from.size()) != n_columns)
        throw std::invalid_argument("counted_from must have one entry per column.");
    const auto *quantiles = std::get_if<Quantiles>(&rule.loss);
    if (quantiles && static_cast<std::int64_t>(quantiles->quantiles.size()) != n_columns)
        throw std::invalid_argument("quantiles must have one entry per column.");
}

constexpr std::int64_t kRowsPerLock = 8192; // scored before a writer may go on

template <class Cell> CellRows<Cell> view(const Table<Cell> &cells, const Vector<std::int64_t> &starts) {
    if (starts.size() < 2 || starts.size() != cells.shape(1) + 1)
        throw std::invalid_argument("cells must have a column for each partitioning.");
    const auto *first = starts.data(), *end = first + starts.size();
    if (*first != 0 || std::adjacent_find(first, end, std::greater_equal<>()) != end)
        throw std::invalid_argument("the starts of the partitionings must ascend from 0.");
    return {cells.data(), static_cast<std::int64_t>(cells.shape(0)), static_cast<std::int64_t>(cells.shape(1)),
            starts.data()};
}

inline double *view(const OptionalOutput &scores, std::int64_t n_rows, std::int64_t n_columns) {
    if (scores && (static_cast<std::int64_t>(scores->shape(0)) != n_rows ||
                   static_cast<std::int64_t>(scores->shape(1)) != n_columns))
        throw std::invalid_argument("scores must have a row per row (sums: per cell) and a column per weight column.");
    return scores ? scores->data() : nullptr;
}

inline AnyTarget view(const TargetArgument &targets, std::int64_t n_rows, std::int64_t n_columns) {
    if (const auto *classes = std::get_if<Vector<std::int32_t>>(&targets)) {
        if (static_cast<std::int64_t>(classes->size()) != n_rows)
            throw std::invalid_argument("targets must have one entry per row.");
        return ClassTarget{classes->data()};
    }
    const auto &[values, units] = std::get<1>(targets);
    for (const Table<double> *table : {&values, units ? &*units : nullptr})
        if (table && (static_cast<std::int64_t>(table->shape(0)) != n_rows ||
                      static_cast<std::int64_t>(table->shape(1)) != n_columns))
            throw std::invalid_argument("targets and units must have a row per row and a column per score.");
    return ValueTarget{values.data(), units ? units->data() : nullptr, n_columns};
}

inline const double *view(const OptionalVector &row_weights, std::int64_t n_rows) {
    if (row_weights && static_cast<std::int64_t>(row_weights->size()) != n_rows)
        throw std::invalid_argument("row_weights must have one entry per row.");
    return row_weights ? row_weights->data() : nullptr;
}

} // namespace isokern::bindings
