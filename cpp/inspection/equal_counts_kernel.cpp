// The loops of equal_counts.hpp: one comparison serves as many stored rows as a register has lanes.
//
// In: a panel, a row. Out: counts. A lane that is equal compares to -1, which is subtracted from the lane's count.
// Counts have the width of a cell, so runs end before they overflow. Compiled once per instruction set
// (simd/for_isa.hpp), without fused multiply-add, so that sums are those of online/match.cpp.
#include "inspection/equal_counts.hpp"

#include "simd/for_isa.hpp"

namespace isokern {
namespace {

// The width of a register: GCC compares vectors that are wider one element at a time.
#if defined(__AVX512BW__)
constexpr std::int64_t kBytes = 64;
#elif defined(__AVX2__)
constexpr std::int64_t kBytes = 32;
#else
constexpr std::int64_t kBytes = 16;
#endif

template <class Cell> struct Vectors;
template <> struct Vectors<std::uint8_t> {
    typedef std::uint8_t Type __attribute__((vector_size(kBytes), aligned(1), may_alias));
};
template <> struct Vectors<std::uint16_t> {
    typedef std::uint16_t Type __attribute__((vector_size(kBytes), aligned(2), may_alias));
};
template <> struct Vectors<std::uint32_t> {
    typedef std::uint32_t Type __attribute__((vector_size(kBytes), aligned(4), may_alias));
};

template <class Cell> void count(const void *panel, const void *row, std::int64_t t, std::int32_t *counts) {
    using Lanes = typename Vectors<Cell>::Type;
    constexpr std::int64_t kLanes = kBytes / std::int64_t{sizeof(Cell)}, kParts = kPanelRows / kLanes, kRun = 255;
    const auto *cells = static_cast<const Cell *>(panel), *wanted = static_cast<const Cell *>(row);
    for (std::int64_t r = 0; r < kPanelRows; ++r)
        counts[r] = 0;
    for (std::int64_t begin = 0; begin < t; begin += kRun) {
        const std::int64_t end = begin + kRun < t ? begin + kRun : t;
        Lanes equal[kParts] = {};
        for (std::int64_t i = begin; i < end; ++i)
            for (std::int64_t part = 0; part < kParts; ++part) {
                const auto *at = reinterpret_cast<const Lanes *>(cells + i * kPanelRows + part * kLanes);
                equal[part] -= (Lanes)(*at == wanted[i]);
            }
        Cell found[kPanelRows];
        for (std::int64_t part = 0; part < kParts; ++part)
            *reinterpret_cast<Lanes *>(found + part * kLanes) = equal[part];
        for (std::int64_t r = 0; r < kPanelRows; ++r)
            counts[r] += static_cast<std::int32_t>(found[r]);
    }
}

bool add_scales(const std::int32_t *counts, const double *weights, std::int64_t n_scales, double limit, double *sums) {
    for (std::int64_t r = 0; r < kPanelRows; ++r)
        sums[r] = weights[0] * static_cast<double>(counts[r]);
    for (std::int64_t l = 1; l < n_scales; ++l)
        for (std::int64_t r = 0; r < kPanelRows; ++r)
            sums[r] += weights[l] * static_cast<double>(counts[l * kPanelRows + r]);
    int n_above = 0;
    for (std::int64_t r = 0; r < kPanelRows; ++r)
        n_above += sums[r] > limit;
    return n_above > 0;
}

} // namespace

extern const EqualCounts ISOKERN_FOR_ISA(equal_counts);
const EqualCounts ISOKERN_FOR_ISA(equal_counts) = {{count<std::uint8_t>, count<std::uint16_t>, count<std::uint32_t>},
                                                   add_scales};

} // namespace isokern
