// Voronoi cells for several numbers of cells at once, where a smaller sample is a prefix of a larger one.
//
// In: rows, samples of their numbers, the sizes of the prefixes. Out: for each size the cells of all rows. A parameter
// search over the number of cells needs these maps of the same rows for all sizes and cross-validation folds; one brute
// force comparison of rows with points serves them all (nested_search.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <variant>

#include "common/rows.hpp"

namespace isokern {

using CellsOut = std::variant<std::uint8_t *, std::uint16_t *, std::uint32_t *>;

// cells[k][r, i] = the place, among the first sizes[k] points of sample i, of the point nearest to row r, with distance
// and ties as in VoronoiMap.
//   in: samples, n_samples x the largest size, of row numbers; sizes, ascending
//   out: cells, one n_rows x n_samples array per size
template <class Rows>
void nested_cells(const Rows &rows, std::span<const std::int32_t> samples, std::int64_t n_samples,
                  std::span<const std::int64_t> sizes, std::span<const CellsOut> cells, int threads);

} // namespace isokern
