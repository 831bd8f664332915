// Sparse points by the columns that they store: a row's products with all of them cost only what it shares with each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "column_numbers.hpp"
#include "frame.hpp"
#include "rows.hpp"

namespace isokern {

struct Entry {
    std::int32_t column;
    double value;
    bool operator==(const Entry &) const = default;
};

template <class Rows> void load_entries(const Rows &rows, std::int64_t r, std::vector<Entry> &entries) {
    entries.clear();
    for_each_nonzero(rows, r, [&](std::int32_t column, double value) { entries.push_back({column, value}); });
}

inline double square_of(const std::vector<Entry> &row) {
    double square = 0.0;
    for (const Entry &entry : row)
        square += entry.value * entry.value;
    return square;
}

// Sums are float64, so that with u = 2^-53 and m stored values in row and point together, kappa = (3 m + 32) u covers
// the rounding of the products as well as that of the distance itself.
class InvertedIndex {
  public:
    // The points with these numbers.
    template <class Value>
    InvertedIndex(const CsrRows<Value> &points, std::span<const std::int32_t> numbers) : squares_(numbers.size()) {
        std::vector<std::vector<Posting>> by_column;
        for (std::size_t p = 0; p < numbers.size(); ++p) {
            std::int64_t n_stored = 0;
            for_each_nonzero(points, numbers[p], [&](std::int32_t column, double value) {
                const std::int32_t number = columns_.number(column);
                ++n_stored;
                squares_[p] += value * value;
                if (number == static_cast<std::int32_t>(by_column.size()))
                    by_column.emplace_back();
                by_column[number].push_back({static_cast<std::int32_t>(p), value});
            });
            longest_ = std::max(longest_, n_stored);
            is_usable_ = is_usable_ && squares_[p] < kTooLarge * kTooLarge;
        }
        flatten(by_column);
    }

    const std::vector<double> &squares() const { return squares_; }

    // Whether sums neither overflow nor lose their meaning, for a row of this squared length.
    bool can_multiply(double square) const { return is_usable_ && square < kTooLarge * kTooLarge; }

    double kappa(const std::vector<Entry> &row) const {
        return (3.0 * static_cast<double>(static_cast<std::int64_t>(row.size()) + longest_) + 32.0) * 0x1p-53;
    }

    //  products[p] = sum_j row[j] points[p, j]
    void multiply(const std::vector<Entry> &row, std::vector<double> &products) const {
        products.assign(squares_.size(), 0.0);
        for (const Entry &entry : row) {
            const std::int32_t number = columns_.find(entry.column);
            if (number < 0)
                continue;
            for (std::int64_t k = posting_starts_[number]; k < posting_starts_[number + 1]; ++k)
                products[postings_[k].point] += entry.value * postings_[k].value;
        }
    }

  private:
    struct Posting {
        std::int32_t point;
        double value;
    };

    void flatten(std::vector<std::vector<Posting>> &by_column) {
        posting_starts_.push_back(0);
        for (auto &list : by_column) {
            postings_.insert(postings_.end(), list.begin(), list.end());
            posting_starts_.push_back(static_cast<std::int64_t>(postings_.size()));
            list = {};
        }
    }

    std::vector<double> squares_;
    std::int64_t longest_ = 0;
    bool is_usable_ = true;
    ColumnNumbers columns_;
    std::vector<std::int64_t> posting_starts_;
    std::vector<Posting> postings_;
};

// The squared distance as it is defined. Columns that neither stores add nothing, so the sum over the others, in
// ascending order, is the sum over all.
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

} // namespace isokern
