// An inverted index of sparse points, as in information retrieval: dot products of a row with all points at once.
//
// In: CSR points; then a row's non-zero entries. Out: the dot product with every point, and the points' squared
// lengths. For each column, a posting list holds the points that store it. A row reads the lists of its own columns
// only, so the cost is the number of stored values that it shares with the points.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "common/column_numbers.hpp"
#include "common/rows.hpp"
#include "voronoi/distance.hpp"
#include "voronoi/rounding.hpp"

namespace isokern {

class InvertedIndex {
  public:
    // Indexes the points with these numbers.
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
            most_stored_ = std::max(most_stored_, n_stored);
            is_usable_ = is_usable_ && squares_[p] < kTooLarge * kTooLarge;
        }
        flatten(by_column);
    }

    const std::vector<double> &squares() const { return squares_; }

    // Whether the products of a row of this squared length cannot overflow.
    bool can_multiply(double square) const { return is_usable_ && square < kTooLarge * kTooLarge; }

    // The number of non-zero values of the point that has most of them.
    std::int64_t most_stored() const { return most_stored_; }

    //  products[p] = sum_j row[j] points[p, j]      in: row      out: products
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

    // Concatenates the posting lists.
    void flatten(std::vector<std::vector<Posting>> &by_column) {
        posting_starts_.push_back(0);
        for (auto &list : by_column) {
            postings_.insert(postings_.end(), list.begin(), list.end());
            posting_starts_.push_back(static_cast<std::int64_t>(postings_.size()));
            list = {};
        }
    }

    std::vector<double> squares_; // by point: |z|^2
    std::int64_t most_stored_ = 0;
    bool is_usable_ = true;                    // no squared length is too large
    ColumnNumbers columns_;                    // column -> its posting list
    std::vector<std::int64_t> posting_starts_; // posting list -> its first posting
    std::vector<Posting> postings_;
};

} // namespace isokern
