// Kernel matrix of the Isolation Kernel by brute force, in cache blocks.
//
// In: two tables of cells. Out: the weighted share of equal cells for each pair of rows. A tile of rows of `first` is
// compared with a block of rows of `second` while the block is in the cache.
#include "online/match.hpp"

#include <algorithm>

#include "common/threads.hpp"

namespace isokern {

template <class Cell, class Real>
void match_cells(const Cell *first, std::int64_t n_first, const Cell *second, std::int64_t n_second, std::int64_t t,
                 std::span<const double> weights, Real *shares, int threads) {
    constexpr std::int64_t kBlock = 64; // rows of `second` that stay in the cache
    const std::int64_t n_scales = std::ssize(weights), stride = n_scales * t;
    const auto weighted = [=](auto count_at) {
        double sum = weights[0] * static_cast<double>(count_at(0));
        for (std::int64_t l = 1; l < n_scales; ++l)
            sum += weights[l] * static_cast<double>(count_at(l));
        return sum;
    };
    const double all = weighted([=](std::int64_t) { return t; });
    parallel_tiles(n_first, 32, threads, [&] {
        return [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t from = 0; from < n_second; from += kBlock)
                for (std::int64_t a = begin; a < end; ++a)
                    for (std::int64_t b = from; b < std::min(from + kBlock, n_second); ++b) {
                        const Cell *one = first + a * stride, *other = second + b * stride;
                        const double equal =
                            weighted([=](std::int64_t l) { return count_equal(one + l * t, other + l * t, t); });
                        shares[a * n_second + b] = static_cast<Real>(equal / all);
                    }
        };
    });
}

#define ISOKERN_INSTANTIATE(Cell)                                                                                      \
    template void match_cells(const Cell *, std::int64_t, const Cell *, std::int64_t, std::int64_t,                    \
                              std::span<const double>, float *, int);                                                  \
    template void match_cells(const Cell *, std::int64_t, const Cell *, std::int64_t, std::int64_t,                    \
                              std::span<const double>, double *, int);
ISOKERN_INSTANTIATE(std::uint8_t)
ISOKERN_INSTANTIATE(std::uint16_t)
ISOKERN_INSTANTIATE(std::uint32_t)

} // namespace isokern
