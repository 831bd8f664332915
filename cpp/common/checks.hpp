// Validates input arrays in one pass each, where Python would need several passes or temporary arrays.
//
// In: an array of values, or the index arrays of a CSR matrix. Out: the index of the first value that is not finite, or
// whether the CSR arrays are canonical and within bounds, so that the algorithms need not check indices.
#pragma once

#include <cstdint>

namespace isokern {

// The index of the first infinity or, unless allowed, NaN; -1 if there is none.
template <class Value> std::int64_t first_nonfinite(const Value *values, std::int64_t n, bool allow_nan);

// Whether every row's columns ascend strictly within 0 .. n_columns - 1, and the starts ascend within 0 .. n_stored.
bool is_sound_csr(const std::int32_t *columns, const std::int64_t *starts, std::int64_t n_rows, std::int64_t n_stored,
                  std::int64_t n_columns);

} // namespace isokern
