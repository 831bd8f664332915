// Voronoi partitionings: a row's cell is the nearest of the partitioning's sampled points (aNNE in the paper).
//
// In: points, t samples of psi of their numbers; then rows. Out: for each row and sample, the place of the nearest
// point in the sample, with the distance of distance.hpp; of equally near points, the first in the sample. Samples are
// nested: the first points of one are a sample of their own, so a map can serve several sizes at once.
//
// This is t nearest-neighbour searches per row, done as one exact search of the pool of all sampled points by filter
// and refine: cheap bounds on distances rule out most points, exact distances decide among those that remain. Several
// engines do this; which one runs depends on points and rows, the cells do not.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <variant>
#include <vector>

#include "common/rows.hpp"
#include "voronoi/engine.hpp"
#include "voronoi/pool.hpp"

namespace isokern {

class VoronoiMap {
  public:
    // Returns n_columns x n orthonormal directions, the first principal components of the points, or nothing. They only
    // make the search faster.
    using FindAxes = std::function<std::vector<double>()>;

    //   points, samples (n_partitionings x the largest size, numbers of points): must outlive the map
    //   sizes: of the samples, ascending      find_axes: called only if axes are needed, at most once for each engine
    VoronoiMap(const AnyRows &points, std::span<const std::int32_t> samples, std::int64_t n_partitionings,
               std::span<const std::int64_t> sizes, FindAxes find_axes);

    ~VoronoiMap();

    std::int64_t n_partitionings() const { return samples_.n; }

    // cells[k][r, i] = the place, among the first sizes[k] points of sample i, of the point nearest to row r
    //   out: cells, one n_rows x n_partitionings array per size
    void apply(const AnyRows &rows, std::span<const CellsOut> cells, int threads) const;

    // Whether the points lie on a grid and an engine is used that is fast for rows on it.
    bool is_on_grid() const { return on_grid_ != nullptr; }

  private:
    template <class Value> void densify(const DenseRows<Value> &) {}
    template <class Value> void densify(const CsrRows<Value> &points);
    const Engine &general() const;

    AnyRows points_;
    std::variant<std::vector<float>, std::vector<double>> densified_; // what points_ refers to, if it was densified
    std::int64_t n_columns_ = 0;
    std::vector<std::int64_t> sizes_;
    Samples samples_;
    FindAxes find_axes_;
    std::unique_ptr<const Engine> on_grid_; // for points and rows on a grid, or null
    mutable std::unique_ptr<const Engine> general_;
    mutable std::mutex making_; // guards general_
};

} // namespace isokern
