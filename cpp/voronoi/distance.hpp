// The distance that decides: exact, and the same for dense and sparse rows on every CPU.
//
// In: a row, loaded as doubles in the format of the points; a point. Out: the squared distance, the float64 sum of
// (x_j - z_j)^2 over the columns in ascending order, without fused multiply-add. Columns in which both are 0 add 0, so
// a merge of two sparse rows adds the same numbers in the same order. Every fast path of this folder only chooses
// candidates for it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/rows.hpp"

namespace isokern {

struct Entry {
    std::int32_t column;
    double value;
    bool operator==(const Entry &) const = default;
};

// Copies row r to values, zeros included.
template <class Rows> void load(const Rows &rows, std::int64_t r, std::vector<double> &values) {
    values.assign(static_cast<std::size_t>(rows.n_columns), 0.0);
    for_each_nonzero(rows, r, [&](std::int32_t column, double value) { values[column] = value; });
}

template <class Value> void load(const DenseRows<Value> &rows, std::int64_t r, std::vector<double> &values) {
    values.assign(rows.row(r), rows.row(r) + rows.n_columns);
}

// Lists the non-zero values of row r, columns ascending.
template <class Rows> void load(const Rows &rows, std::int64_t r, std::vector<Entry> &entries) {
    entries.clear();
    for_each_nonzero(rows, r, [&](std::int32_t column, double value) { entries.push_back({column, value}); });
}

// The squared length of a row.
inline double square_of(const std::vector<Entry> &row) {
    double square = 0.0;
    for (const Entry &entry : row)
        square += entry.value * entry.value;
    return square;
}

// How a row is loaded for its distances to points of this format.
template <class Points> struct LoadedFor {
    using Row = std::vector<double>;
};
template <class Value> struct LoadedFor<CsrRows<Value>> {
    using Row = std::vector<Entry>;
};
template <class Points> using LoadedRow = typename LoadedFor<Points>::Row;

template <class Value>
double distance(const std::vector<double> &row, const DenseRows<Value> &points, std::int32_t point) {
    const Value *z = points.row(point);
    double sum = 0.0;
    for (std::size_t j = 0; j < row.size(); ++j) {
        const double difference = row[j] - static_cast<double>(z[j]);
        sum += difference * difference;
    }
    return sum;
}

template <class Value>
double distance(const std::vector<Entry> &row, const CsrRows<Value> &points, std::int32_t point) {
    double sum = 0.0;
    auto entry = row.begin();
    for_each_nonzero(points, point, [&](std::int32_t column, double value) {
        for (; entry != row.end() && entry->column < column; ++entry)
            sum += entry->value * entry->value;
        double difference = -value;
        if (entry != row.end() && entry->column == column)
            difference = (entry++)->value - value;
        sum += difference * difference;
    });
    for (; entry != row.end(); ++entry)
        sum += entry->value * entry->value;
    return sum;
}

// The exact distances of one row at a time, each computed at most once, because a point is often a candidate in several
// samples. The row is loaded when the first distance is asked for.
template <class Rows, class Points> class Distances {
  public:
    //   numbers: the row numbers of the pool's points
    Distances(const Rows &rows, const Points &points, const std::vector<std::int32_t> &numbers)
        : rows_(rows), points_(points), numbers_(numbers), known_(numbers.size()), asked_(numbers.size(), -1) {}

    void begin_row(std::int64_t r) {
        row_ = r;
        is_loaded_ = false;
        ++turn_;
    }

    // The distance of the row to a point of the pool.
    double to(std::int32_t point) {
        if (asked_[point] != turn_) {
            if (!is_loaded_)
                load(rows_, row_, values_);
            is_loaded_ = true;
            asked_[point] = turn_;
            known_[point] = distance(values_, points_, numbers_[point]);
        }
        return known_[point];
    }

  private:
    const Rows &rows_;
    const Points &points_;
    const std::vector<std::int32_t> &numbers_;
    LoadedRow<Points> values_;
    std::int64_t row_ = 0, turn_ = -1;
    bool is_loaded_ = false;
    std::vector<double> known_;
    std::vector<std::int64_t> asked_; // point -> the turn, one per call of begin_row, in which known_ was computed
};

} // namespace isokern
