// Sparse rows of few columns, written out in full.
#pragma once

#include <cstdint>
#include <vector>

#include "rows.hpp"

namespace isokern {

// Up to this many columns products of all values beat an inverted index of those that are not zero.
constexpr std::int64_t kFewColumns = 2048;

template <class Value> std::vector<Value> write_out(const CsrRows<Value> &rows) {
    std::vector<Value> values(static_cast<std::size_t>(rows.n_rows * rows.n_columns), Value(0));
    for (std::int64_t r = 0; r < rows.n_rows; ++r)
        for (std::int64_t k = rows.starts[r]; k < rows.starts[r + 1]; ++k)
            values[r * rows.n_columns + rows.columns[k]] = rows.values[k];
    return values;
}

} // namespace isokern
