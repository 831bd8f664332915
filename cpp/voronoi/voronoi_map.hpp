// Voronoi partitionings: a row's cell is the nearest of the partitioning's sampled points (aNNE in the paper).
//
// In: points (the pool), t samples of psi of their numbers; then rows. Out: for each row and partitioning, the place of
// the nearest point in the sample. This is t nearest-neighbour searches per row, done as one exact search of the pool
// by filter and refine: cheap bounds on distances rule out most points, exact distances decide among those that remain.
// Bounds come from float32 matrix products (voronoi/dense_layout.hpp) or from an inverted index
// (voronoi/sparse_layout.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "common/rows.hpp"

namespace isokern {

// t samples of psi points each, all from one pool.
//
// Definition: the distance of a row x to a point z is the float64 sum of (x_j - z_j)^2 over the columns in ascending
// order, without fused multiply-add. The nearest point wins; of equally near points, the first in the sample.
// Everything else only saves work: a bound may rule a point out if the gap exceeds the bound's own rounding error, but
// it never decides between two points that are closer than that.
class VoronoiMap {
  public:
    //   points: the pool; must outlive the map      samples: n_partitionings x n_cells numbers of points
    // axes: n_columns x n orthonormal directions, the first principal components of the points, or none. They only make
    // the search faster.
    VoronoiMap(const AnyRows &points, std::span<const std::int32_t> samples, std::int64_t n_partitionings,
               std::span<const double> axes);
    ~VoronoiMap();

    std::int64_t n_partitionings() const { return n_partitionings_; }

    // cells[r, i] = the place in sample i of the point nearest to row r      out: cells, n_rows x n_partitionings
    template <class Rows, class Cell> void apply(const Rows &rows, Cell *cells, int threads) const;

  private:
    struct Layout;
    template <class Rows>
    void lay_out(const Rows &points, std::span<const std::int32_t> samples, std::span<const double> axes);
    template <class Value>
    void lay_out(const CsrRows<Value> &points, std::span<const std::int32_t> samples, std::span<const double> axes);

    std::int64_t n_partitionings_, n_columns_ = 0;
    std::variant<std::vector<float>, std::vector<double>> written_out_; // sparse points of few columns, densified
    std::unique_ptr<const Layout> layout_;
};

} // namespace isokern
