// Voronoi cells, as VoronoiMap has them, where points and rows lie on a grid (grid.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "rows.hpp"
#include "voronoi.hpp"

namespace isokern {

class GridMap {
  public:
    // None if the points lie on no grid, or if this CPU does not multiply bytes.
    // points: the pool, which must outlive the map      samples: n_partitionings x n_cells numbers of points
    static std::unique_ptr<const GridMap> find(const AnyRows &points, std::span<const std::int32_t> samples,
                                               std::int64_t n_partitionings);
    ~GridMap();

    std::int64_t n_partitionings() const;

    // cells[r, i] = the place in sample i of the point nearest to row r; false if rows lie off the grid, then nothing
    // is written.      out: cells, n_rows x n_partitionings
    template <class Rows, class Cell> bool apply(const Rows &rows, Cell *cells, int threads) const;

  private:
    struct Layout;
    explicit GridMap(std::unique_ptr<const Layout> layout);

    std::unique_ptr<const Layout> layout_;
};

} // namespace isokern
