// The interface of the engines of a Voronoi map (voronoi_map.hpp): one way each to find the nearest points of rows.
//
// In: rows. Out: their cells, one array per size of the samples.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <variant>

#include "common/rows.hpp"

namespace isokern {

// Where cells are written, n_rows x n_partitionings; the type depends on the number of cells.
using CellsOut = std::variant<std::uint8_t *, std::uint16_t *, std::uint32_t *>;

class Engine {
  public:
    virtual ~Engine() = default;

    // Whether the engine is fast for these rows. It must not be applied to others.
    virtual bool serves(const AnyRows &, int /*threads*/) const { return true; }

    // cells[k][r, i] = the place, among the first sizes[k] points of sample i, of the point nearest to row r
    virtual void apply(const AnyRows &rows, std::span<const CellsOut> cells, int threads) const = 0;
};

//  cells[r, i] = places[i]
template <class Place> void write_cells(const CellsOut &cells, std::int64_t r, std::span<const Place> places) {
    std::visit(
        [&]<class Cell>(Cell *out) {
            std::transform(places.begin(), places.end(), out + r * std::ssize(places),
                           [](Place place) { return static_cast<Cell>(place); });
        },
        cells);
}

} // namespace isokern
