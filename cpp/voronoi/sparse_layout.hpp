// Nearest points of each sample, for sparse points of many columns: bounds by an inverted index.
//
// In: CSR points and their pool; then rows. Out: cells. An inverted index gives a row's dot products with all points at
// the cost of the columns that they share; with the squared lengths they become lower and upper bounds on distances
// (rounding errors as in voronoi/dense_layout.hpp, in float64). Search keeps the candidates, and exact distances
// decide.
#pragma once

#include <utility>

#include "common/threads.hpp"
#include "voronoi/inverted_index.hpp"
#include "voronoi/pool_search.hpp"

namespace isokern {

template <class Value> class SparseLayout {
  public:
    SparseLayout(const CsrRows<Value> &points, Pool pool)
        : points_(points), pool_(std::move(pool)), index_(points, pool_.points) {}

    template <class Rows, class Cell>
    void apply(const Rows &rows, std::int64_t n_partitionings, Cell *cells, int threads) const {
        parallel_tiles(rows.n_rows, 16, threads,
                       [&] { return Worker<Rows, Cell>(*this, rows, n_partitionings, cells); });
    }

  private:
    template <class Rows, class Cell> class Worker;

    CsrRows<Value> points_;
    Pool pool_;
    InvertedIndex index_;
};

template <class Value> template <class Rows, class Cell> class SparseLayout<Value>::Worker {
  public:
    Worker(const SparseLayout &layout, const Rows &rows, std::int64_t n_partitionings, Cell *cells)
        : layout_(layout), rows_(rows), n_partitionings_(n_partitionings), cells_(cells),
          search_(layout.pool_, n_partitionings), distances_(layout.pool_) {}

    // Maps rows begin to end. A row whose magnitude makes bounds meaningless is compared with all points exactly.
    void operator()(std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
            load_entries(rows_, r, row_);
            search_.begin();
            const double square = square_of(row_);
            if (layout_.index_.can_multiply(square))
                enter_points(square);
            else
                search_.enter_all();
            search_.settle(
                distances_, [&](std::int32_t point) { return distance(row_, layout_.points_, point); },
                cells_ + r * n_partitionings_);
        }
    }

  private:
    static constexpr std::int64_t kStretch = 512; // points between two updates of the threshold

    //  lower[p] = (1 - kappa) |z_p|^2 - 2 x.z_p,   upper[p] = lower[p] + 2 kappa (|x|^2 + |z_p|^2)
    //  in: row_, its squared length      changed: search_
    void enter_points(double square) {
        layout_.index_.multiply(row_, products_);
        const double kappa = layout_.index_.kappa(row_);
        const std::vector<double> &squares = layout_.index_.squares();
        const auto n_points = static_cast<std::int64_t>(squares.size());
        for (std::int64_t begin = 0; begin < n_points; begin += kStretch) {
            const std::int64_t end = std::min(begin + kStretch, n_points);
            for (std::int64_t p = begin; p < end; ++p) {
                const double lower = (1.0 - kappa) * squares[p] - 2.0 * products_[p];
                if (lower <= search_.threshold())
                    // The small constant covers underflow.
                    search_.enter(static_cast<std::int32_t>(p), lower,
                                  lower + 2.0 * kappa * (square + squares[p]) + 1e-300);
            }
            search_.lower_threshold();
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
