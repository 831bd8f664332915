// Checks of input that would be slow in Python.
#pragma once

#include <cstdint>

namespace isokern {

// The place of the first NaN or infinity, or -1.
template <class Value> std::int64_t first_nonfinite(const Value *values, std::int64_t n);

// Whether every row's columns ascend strictly and lie in 0 .. n_columns - 1, and its starts ascend within n_stored.
bool is_sound_csr(const std::int32_t *columns, const std::int64_t *starts, std::int64_t n_rows, std::int64_t n_stored,
                  std::int64_t n_columns);

} // namespace isokern
