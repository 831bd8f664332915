// Kernel matrix of the Isolation Kernel by brute force, in cache blocks.
//
// In: two tables of cells. Out: the share of equal cells for each pair of rows. A tile of rows of `first` is compared
// with a block of rows of `second` while the block is in the cache.
#include "online/match.hpp"

#include <algorithm>

#include "common/threads.hpp"

namespace isokern {

template <class Cell, class Real>
void match_cells(const Cell *first, std::int64_t n_first, const Cell *second, std::int64_t n_second, std::int64_t t,
                 Real *shares, int threads) {
    constexpr std::int64_t kBlock = 64; // rows of `second` that stay in the cache
    parallel_tiles(n_first, 32, threads, [&] {
        return [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t from = 0; from < n_second; from += kBlock)
                for (std::int64_t a = begin; a < end; ++a)
                    for (std::int64_t b = from; b < std::min(from + kBlock, n_second); ++b)
                        shares[a * n_second + b] =
                            static_cast<Real>(static_cast<double>(count_equal(first + a * t, second + b * t, t)) /
                                              static_cast<double>(t));
        };
    });
}

#define ISOKERN_INSTANTIATE(Cell)                                                                                      \
    template void match_cells(const Cell *, std::int64_t, const Cell *, std::int64_t, std::int64_t, float *, int);     \
    template void match_cells(const Cell *, std::int64_t, const Cell *, std::int64_t, std::int64_t, double *, int);
ISOKERN_INSTANTIATE(std::uint8_t)
ISOKERN_INSTANTIATE(std::uint16_t)
ISOKERN_INSTANTIATE(std::uint32_t)

} // namespace isokern
