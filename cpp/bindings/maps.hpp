// Applies a map of rows to cells, for the bindings of trees and of Voronoi cells.
//
// In: a map, rows as NumPy arrays, and an array for the cells, whose dtype is Python's choice. Out: the array, filled.
// The GIL is released while rows are mapped.
#pragma once

#include "bindings/arrays.hpp"

namespace isokern::bindings {

inline void check_output(std::int64_t n_rows, std::int64_t n_partitionings, const CellsOutput &cells) {
    std::visit(
        [&](const auto &array) {
            if (static_cast<std::int64_t>(array.shape(0)) != n_rows ||
                static_cast<std::int64_t>(array.shape(1)) != n_partitionings)
                throw std::invalid_argument("cells must have a row for each row and a column for each partitioning.");
        },
        cells);
}

// cells[r, i] = the cell of row r in partitioning i, by any map      out: cells, whose dtype is Python's choice
template <class Map>
auto apply(const Map &map, std::int64_t n_partitionings, const RowsArgument &rows, const CellsOutput &cells,
           int threads) {
    const AnyRows any = view(rows);
    const nb::gil_scoped_release release;
    return std::visit(
        [&](const auto &table, const auto &output) {
            check_output(table.n_rows, n_partitionings, cells);
            return map.apply(table, output.data(), threads);
        },
        any, cells);
}

} // namespace isokern::bindings
