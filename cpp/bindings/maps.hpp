// Checks the arrays that Python passes for cells, for the bindings of trees and of Voronoi cells.
//
// In: the shape of the cells, an array whose dtype is Python's choice. Out: an error if the array has another shape.
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

} // namespace isokern::bindings
