// Voronoi cells of sparse points: bounds by an inverted index.
#pragma once

#include <utility>

#include "column_numbers.hpp"
#include "threads.hpp"
#include "voronoi_search.hpp"

namespace isokern {

// Sparse points by an inverted index: a row's products with all points come from the columns that they share. Sums are
// float64, so that with u = 2^-53 and m stored values in row and point together, kappa = (3 m + 32) u covers the
// rounding of the products as well as that of the distance itself; bounds as above.
template <class Value> class SparseLayout {
  public:
    SparseLayout(const CsrRows<Value> &points, Pool pool)
        : points_(points), pool_(std::move(pool)), squares_(pool_.points.size()) {
        std::vector<std::vector<Posting>> by_column;
        for (std::int32_t p = 0; p < pool_.size(); ++p) {
            std::int64_t n_stored = 0;
            for_each_nonzero(points, pool_.points[p], [&](std::int32_t column, double value) {
                const std::int32_t number = columns_.number(column);
                ++n_stored;
                squares_[p] += value * value;
                if (number == static_cast<std::int32_t>(by_column.size()))
                    by_column.emplace_back();
                by_column[number].push_back({p, value});
            });
            longest_ = std::max(longest_, n_stored);
            is_usable_ = is_usable_ && squares_[p] < kTooLarge * kTooLarge;
        }
        flatten(by_column);
    }

    template <class Rows, class Cell>
    void apply(const Rows &rows, std::int64_t n_partitionings, Cell *cells, int threads) const {
        parallel_tiles(rows.n_rows, 16, threads,
                       [&] { return Worker<Rows, Cell>(*this, rows, n_partitionings, cells); });
    }

  private:
    template <class Rows, class Cell> class Worker;

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

    // Columns that neither stores add nothing, so the sum over the others, in ascending order, is the sum over all.
    double distance(const std::vector<Entry> &row, std::int32_t point) const {
        double sum = 0.0;
        auto entry = row.begin();
        for_each_nonzero(points_, point, [&](std::int32_t column, double value) {
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

    CsrRows<Value> points_;
    Pool pool_;
    std::vector<double> squares_;
    std::int64_t longest_ = 0;
    bool is_usable_ = true;
    ColumnNumbers columns_;
    std::vector<std::int64_t> posting_starts_;
    std::vector<Posting> postings_;
};

template <class Value> template <class Rows, class Cell> class SparseLayout<Value>::Worker {
  public:
    Worker(const SparseLayout &layout, const Rows &rows, std::int64_t n_partitionings, Cell *cells)
        : layout_(layout), rows_(rows), n_partitionings_(n_partitionings), cells_(cells),
          search_(layout.pool_, n_partitionings), distances_(layout.pool_), products_(layout.squares_.size()) {}

    void operator()(std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
            load_entries(rows_, r, row_);
            search_.begin();
            double square = 0.0;
            for (const Entry &entry : row_)
                square += entry.value * entry.value;
            if (layout_.is_usable_ && square < kTooLarge * kTooLarge)
                enter_points(square);
            else
                search_.enter_all();
            search_.settle(
                distances_, [&](std::int32_t point) { return layout_.distance(row_, point); },
                cells_ + r * n_partitionings_);
        }
    }

  private:
    void enter_points(double square) {
        multiply();
        const double kappa = (3.0 * static_cast<double>(row_.size() + layout_.longest_) + 32.0) * 0x1p-53;
        const auto n_points = static_cast<std::int64_t>(products_.size());
        for (std::int64_t begin = 0; begin < n_points; begin += kChunk) {
            const std::int64_t end = std::min(begin + kChunk, n_points);
            for (std::int64_t p = begin; p < end; ++p) {
                const double lower = (1.0 - kappa) * layout_.squares_[p] - 2.0 * products_[p];
                if (lower <= search_.threshold())
                    // The small constant covers what underflows.
                    search_.enter(static_cast<std::int32_t>(p), lower,
                                  lower + 2.0 * kappa * (square + layout_.squares_[p]) + 1e-300);
            }
            search_.lower_threshold();
        }
    }

    //  products[p] = sum_j row[j] points[p, j]
    void multiply() {
        std::fill(products_.begin(), products_.end(), 0.0);
        for (const Entry &entry : row_) {
            const std::int32_t number = layout_.columns_.find(entry.column);
            if (number < 0)
                continue;
            for (std::int64_t k = layout_.posting_starts_[number]; k < layout_.posting_starts_[number + 1]; ++k)
                products_[layout_.postings_[k].point] += entry.value * layout_.postings_[k].value;
        }
    }

    const SparseLayout &layout_;
    const Rows &rows_;
    std::int64_t n_partitionings_;
    Cell *cells_;
    std::vector<Entry> row_;
    Search<double> search_;
    Distances distances_;
    std::vector<double> products_;
};

} // namespace isokern
