// Voronoi cells: the nearest of each partitioning's sampled points.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "rows.hpp"

namespace isokern {

using AnyRows = std::variant<DenseRows<float>, DenseRows<double>, CsrRows<float>, CsrRows<double>>;

// t samples of psi points each, all out of one pool.
//
// The distance of a row x to a point z is the float64 sum of (x_j - z_j)^2 over the columns in ascending order, without
// fused multiply-add; the nearest point wins, of equally near ones the first in the sample. Everything else here only
// saves work: it may rule points out by a bound on its own rounding error, but it never decides between two that are
// close.
class VoronoiMap {
  public:
    // points: the pool, which must outlive the map.      samples: n_partitionings x n_cells numbers of points
    // axes: n_columns x n orthonormal directions in which the points vary most, or none; they make the search faster
    VoronoiMap(const AnyRows &points, std::span<const std::int32_t> samples, std::int64_t n_partitionings,
               std::span<const double> axes);
    ~VoronoiMap();

    std::int64_t n_partitionings() const { return n_partitionings_; }

    // cells[r, i] = the place in sample i of the point nearest to row r.      out: cells, n_rows x n_partitionings
    template <class Rows, class Cell> void apply(const Rows &rows, Cell *cells, int threads) const;

  private:
    struct Layout;
    template <class Rows>
    void lay_out(const Rows &points, std::span<const std::int32_t> samples, std::span<const double> axes);
    template <class Value>
    void lay_out(const CsrRows<Value> &points, std::span<const std::int32_t> samples, std::span<const double> axes);

    std::int64_t n_partitionings_, n_columns_ = 0;
    std::variant<std::vector<float>, std::vector<double>> written_out_; // sparse points of few columns, made dense
    std::unique_ptr<const Layout> layout_;
};

} // namespace isokern
