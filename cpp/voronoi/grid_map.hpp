// Voronoi cells, equal to those of VoronoiMap, for points and rows on a grid (grid.hpp): int8 dot products (VNNI).
//
// In: points, samples; then rows. Out: a map, if the points lie on a grid; cells, if the rows do too. Quantised rows
// are compared with all points by brute force in int8. On a grid of whole numbers, integer distances are exact and
// settle ties too, which are frequent in such data.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "common/rows.hpp"
#include "voronoi/voronoi_map.hpp"

namespace isokern {

class GridMap {
  public:
    // Null if the points lie on no grid, this CPU has no int8 dot product, or VoronoiMap is expected to be faster.
    //   points: the pool; must outlive the map      samples: n_partitionings x n_cells numbers of points
    static std::unique_ptr<const GridMap> find(const AnyRows &points, std::span<const std::int32_t> samples,
                                               std::int64_t n_partitionings);
    ~GridMap();

    std::int64_t n_partitionings() const;

    // cells[r, i] = the place in sample i of the point nearest to row r      out: cells, n_rows x n_partitionings
    // Returns false, and writes nothing, if a row lies off the grid.
    template <class Rows, class Cell> bool apply(const Rows &rows, Cell *cells, int threads) const;

  private:
    struct Layout;
    explicit GridMap(std::unique_ptr<const Layout> layout);

    std::unique_ptr<const Layout> layout_;
};

} // namespace isokern
