// Read-only views of a table of rows, dense or in compressed sparse row (CSR) format.
//
// In: arrays owned by the caller. Out: the non-zero values of a row, columns ascending, as doubles. Algorithms are
// templates over these views, so that each is written once for both formats and for float and double.
#pragma once

#include <cstdint>
#include <variant>

namespace isokern {

template <class Value> struct DenseRows {
    const Value *values; // row-major, n_rows x n_columns
    std::int64_t n_rows;
    std::int64_t n_columns;

    const Value *row(std::int64_t i) const { return values + i * n_columns; }
};

// The columns of a row ascend strictly; values that are not stored are 0. starts[0] may be positive, so that a block of
// rows is a view of the same arrays.
template <class Value> struct CsrRows {
    const Value *values;
    const std::int32_t *columns;
    const std::int64_t *starts; // n_rows + 1
    std::int64_t n_rows;
    std::int64_t n_columns;
};

using AnyRows = std::variant<DenseRows<float>, DenseRows<double>, CsrRows<float>, CsrRows<double>>;

// Calls visit(column, value as double) for the non-zero values of row i, columns ascending. Stored zeros are skipped.
template <class Value, class Visit> void for_each_nonzero(const DenseRows<Value> &rows, std::int64_t i, Visit visit) {
    const Value *row = rows.row(i);
    for (std::int64_t j = 0; j < rows.n_columns; ++j)
        if (row[j] != Value(0))
            visit(static_cast<std::int32_t>(j), static_cast<double>(row[j]));
}

template <class Value, class Visit> void for_each_nonzero(const CsrRows<Value> &rows, std::int64_t i, Visit visit) {
    for (std::int64_t k = rows.starts[i]; k < rows.starts[i + 1]; ++k)
        if (rows.values[k] != Value(0))
            visit(rows.columns[k], static_cast<double>(rows.values[k]));
}

} // namespace isokern
