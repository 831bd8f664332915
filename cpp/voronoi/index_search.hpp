// Nearest points of each sample, for sparse points of many columns: bounds by an inverted index.
//
// In: CSR points and their pool; then rows. Out: cells. An inverted index gives a row's dot products with all points at
// the cost of the columns that they share; with the squared lengths they become lower and upper bounds on distances, in
// float64 (rounding.hpp). Search keeps the candidates, and exact distances decide.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "common/threads.hpp"
#include "voronoi/engine.hpp"
#include "voronoi/inverted_index.hpp"
#include "voronoi/rounding.hpp"
#include "voronoi/search.hpp"

namespace isokern {

template <class Value> class IndexSearch final : public Engine {
  public:
    IndexSearch(const CsrRows<Value> &points, const Samples &samples)
        : points_(points), pool_(points, samples), index_(points, pool_.points) {}

    void apply(const AnyRows &rows, std::span<const CellsOut> cells, int threads) const override {
        std::visit(
            [&]<class Rows>(const Rows &table) {
                parallel_tiles(table.n_rows, 16, threads, [&] { return Worker<Rows>(*this, table, cells.front()); });
            },
            rows);
    }

  private:
    template <class Rows> class Worker;

    CsrRows<Value> points_;
    Pool pool_;
    InvertedIndex index_;
};

template <class Value> template <class Rows> class IndexSearch<Value>::Worker {
  public:
    Worker(const IndexSearch &engine, const Rows &rows, CellsOut cells)
        : index_(engine.index_), rows_(rows), cells_(cells), search_(engine.pool_),
          distances_(rows, engine.points_, engine.pool_.points) {}

    // Maps rows begin to end. A row whose magnitude makes bounds meaningless is compared with all points exactly.
    void operator()(std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
            load(rows_, r, row_);
            search_.begin();
            const double square = square_of(row_);
            if (index_.can_multiply(square))
                enter_points(square);
            else
                search_.enter_all();
            distances_.begin_row(r);
            search_.settle(distances_, found_);
            write_cells(cells_, r, std::span(std::as_const(found_)));
        }
    }

  private:
    static constexpr std::int64_t kStretch = 512; // points between two updates of the threshold

    //  lower[p] = (1 - kappa) |z_p|^2 - 2 x.z_p,   upper[p] = lower[p] + 2 kappa (|x|^2 + |z_p|^2)
    //  in: row_, its squared length      changed: search_
    void enter_points(double square) {
        index_.multiply(row_, products_);
        const double kappa = index_error(std::ssize(row_) + index_.most_stored());
        const std::vector<double> &squares = index_.squares();
        const std::int64_t n_points = std::ssize(squares);
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

    const InvertedIndex &index_;
    const Rows &rows_;
    CellsOut cells_;
    std::vector<Entry> row_;
    Search<double> search_;
    Distances<Rows, CsrRows<Value>> distances_;
    std::vector<double> products_;
    std::vector<std::int32_t> found_;
};

} // namespace isokern
