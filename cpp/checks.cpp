#include "checks.hpp"

#include <algorithm>
#include <cmath>

namespace isokern {

// x - x is 0 for finite x and NaN otherwise, so the sum over a block tells whether to look closer.
template <class Value> std::int64_t first_nonfinite(const Value *values, std::int64_t n) {
    constexpr std::int64_t kBlock = 1024, kLanes = 16;
    for (std::int64_t begin = 0; begin < n; begin += kBlock) {
        const std::int64_t end = std::min(begin + kBlock, n);
        Value sums[kLanes] = {};
        std::int64_t k = begin;
        for (; k + kLanes <= end; k += kLanes)
            for (std::int64_t l = 0; l < kLanes; ++l)
                sums[l] += values[k + l] - values[k + l];
        Value sum = 0;
        for (const Value part : sums)
            sum += part;
        for (; k < end; ++k)
            sum += values[k] - values[k];
        if (sum != Value(0)) // also when it is NaN
            return std::find_if(values + begin, values + end, [](Value x) { return !std::isfinite(x); }) - values;
    }
    return -1;
}

template std::int64_t first_nonfinite(const float *, std::int64_t);
template std::int64_t first_nonfinite(const double *, std::int64_t);

bool is_sound_csr(const std::int32_t *columns, const std::int64_t *starts, std::int64_t n_rows, std::int64_t n_stored,
                  std::int64_t n_columns) {
    if (starts[0] < 0)
        return false;
    for (std::int64_t r = 0; r < n_rows; ++r) {
        if (starts[r] > starts[r + 1] || starts[r + 1] > n_stored)
            return false;
        std::int64_t previous = -1;
        for (std::int64_t k = starts[r]; k < starts[r + 1]; ++k) {
            if (columns[k] <= previous || columns[k] >= n_columns)
                return false;
            previous = columns[k];
        }
    }
    return true;
}

} // namespace isokern
