// Voronoi cells for several sizes of sample at once, where a smaller sample is the beginning of a larger one.
#pragma once

#include <cstdint>
#include <span>
#include <variant>

#include "rows.hpp"

namespace isokern {

using CellsOut = std::variant<std::uint8_t *, std::uint16_t *, std::uint32_t *>;

// cells[k][r, i] = the place, in the first sizes[k] points of sample i, of the point nearest to row r, as VoronoiMap
// has it.
//
// in: samples, n_samples x the largest size, numbers of rows; sizes, ascending      out: cells, n_rows x n_samples each
template <class Rows>
void nested_cells(const Rows &rows, std::span<const std::int32_t> samples, std::int64_t n_samples,
                  std::span<const std::int64_t> sizes, std::span<const CellsOut> cells, int threads);

} // namespace isokern
