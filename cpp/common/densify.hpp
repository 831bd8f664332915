// Densifies sparse rows of few columns.
//
// In: CSR rows. Out: the same rows as a row-major array. With few columns, SIMD products of all columns are faster than
// an inverted index of the non-zero ones.
#pragma once

#include <cstdint>
#include <vector>

#include "common/rows.hpp"

namespace isokern {

// Up to this many columns, dense rows and points are faster than an inverted index (isokern.partitionings.FEW_COLUMNS).
constexpr std::int64_t kFewColumns = 2048;

//  values[r, columns[k]] = rows.values[k] for starts[r] <= k < starts[r + 1], 0 elsewhere
template <class Value> std::vector<Value> write_out(const CsrRows<Value> &rows) {
    std::vector<Value> values(static_cast<std::size_t>(rows.n_rows * rows.n_columns), Value(0));
    for (std::int64_t r = 0; r < rows.n_rows; ++r)
        for (std::int64_t k = rows.starts[r]; k < rows.starts[r + 1]; ++k)
            values[r * rows.n_columns + rows.columns[k]] = rows.values[k];
    return values;
}

} // namespace isokern
