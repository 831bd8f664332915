// Scans arrays for NaN and infinity, and checks CSR index arrays.
//
// In: values, or index arrays. Out: the index of the first non-finite value, or whether the index arrays are sound. The
// scan sums x - x over short blocks with SIMD, without a branch per value; only a block whose sum is NaN is searched.
#include "common/checks.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "common/threads.hpp"

namespace isokern {

namespace {

//  sum_k (values[k] - values[k]) == 0
// x - x is 0 for finite x and NaN otherwise. Independent partial sums let the compiler vectorise the loop.
template <class Value> bool are_finite(const Value *values, std::int64_t n) {
    constexpr std::int64_t kLanes = 16;
    Value sums[kLanes] = {};
    std::int64_t k = 0;
    for (; k + kLanes <= n; k += kLanes)
        for (std::int64_t l = 0; l < kLanes; ++l)
            sums[l] += values[k + l] - values[k + l];
    Value sum = 0;
    for (const Value part : sums)
        sum += part;
    for (; k < n; ++k)
        sum += values[k] - values[k];
    return sum == Value(0); // false if the sum is NaN
}

// NaN is not larger than anything.
template <class Value> bool are_not_infinite(const Value *values, std::int64_t n) {
    bool is_any = false;
    for (std::int64_t k = 0; k < n; ++k)
        is_any |= std::abs(values[k]) > std::numeric_limits<Value>::max();
    return !is_any;
}

} // namespace

// Threads share the smallest index found so far in `first` (n: none). A tile stops at it, and a thread that finds a
// smaller one writes it by compare-and-swap, so the result does not depend on the order of tiles.
template <class Value> std::int64_t first_nonfinite(const Value *values, std::int64_t n, bool allow_nan) {
    constexpr std::int64_t kBlock = 1024, kTile = 1 << 16, kMany = 1 << 21;
    std::atomic<std::int64_t> first{n};
    parallel_tiles(n, kTile, n < kMany ? 1 : 0, [&] {
        return [&](std::int64_t tile, std::int64_t tile_end) {
            for (std::int64_t begin = tile; begin < std::min(tile_end, first.load()); begin += kBlock) {
                const std::int64_t end = std::min(begin + kBlock, tile_end);
                if (are_finite(values + begin, end - begin) ||
                    (allow_nan && are_not_infinite(values + begin, end - begin)))
                    continue;
                const Value *found = std::find_if(values + begin, values + end, [allow_nan](Value x) {
                    return allow_nan ? std::isinf(x) : !std::isfinite(x);
                });
                std::int64_t before = first;
                while (found - values < before && !first.compare_exchange_weak(before, found - values)) {
                }
            }
        };
    });
    return first < n ? first.load() : -1;
}

template std::int64_t first_nonfinite(const float *, std::int64_t, bool);
template std::int64_t first_nonfinite(const double *, std::int64_t, bool);

//  0 <= starts[0] <= starts[1] <= ... <= n_stored,   0 <= columns[k] < columns[k + 1] < n_columns within a row
// The inner loop has no branch, so that it is vectorised. What ascends is in range if its ends are.
bool is_sound_csr(const std::int32_t *columns, const std::int64_t *starts, std::int64_t n_rows, std::int64_t n_stored,
                  std::int64_t n_columns) {
    if (starts[0] < 0 || starts[n_rows] > n_stored || !std::is_sorted(starts, starts + n_rows + 1))
        return false;
    std::atomic<bool> is_sound{true};
    parallel_tiles(n_rows, 1024, threads_for(starts[n_rows] - starts[0]), [&] {
        return [&](std::int64_t begin, std::int64_t end) {
            std::int32_t is_wrong = 0;
            for (std::int64_t r = begin; r < end; ++r) {
                const std::int64_t first = starts[r], last = starts[r + 1] - 1;
                if (first <= last)
                    is_wrong |= columns[first] < 0 || columns[last] >= n_columns;
                for (std::int64_t k = first; k < last; ++k)
                    is_wrong |= columns[k] >= columns[k + 1];
            }
            if (is_wrong)
                is_sound = false;
        };
    });
    return is_sound;
}

} // namespace isokern
