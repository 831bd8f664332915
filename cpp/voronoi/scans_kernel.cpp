// The loops of voronoi/scans.hpp: comparisons of many bounds or places at a time, with compress and gather (AVX-512).
//
// In: bounds of a row, places of points. Out: candidates, minima, nearest points. Compiled once per instruction set
// (simd/for_isa.hpp).
#include "voronoi/scans.hpp"

#include "simd/for_isa.hpp"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace isokern {
namespace {

#if defined(__AVX512F__)
std::int64_t indices_within(const float *bounds, std::int64_t n, float limit, std::int32_t *indices) {
    const __m512 limits = _mm512_set1_ps(limit);
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    std::int64_t found = 0;
    for (std::int64_t k = 0; k < n; k += 16) {
        const __mmask16 is_there = n - k < 16 ? static_cast<__mmask16>((1 << (n - k)) - 1) : 0xffff;
        const __mmask16 is_within =
            _mm512_mask_cmp_ps_mask(is_there, _mm512_maskz_loadu_ps(is_there, bounds + k), limits, _CMP_LE_OQ);
        // Compressed in a register: on AMD Zen 4 a compressing store takes fifteen times as long.
        const __m512i here = _mm512_add_epi32(lanes, _mm512_set1_epi32(static_cast<int>(k)));
        _mm512_storeu_si512(indices + found, _mm512_maskz_compress_epi32(is_within, here));
        found += __builtin_popcount(is_within);
    }
    return found;
}

std::int64_t least_index(const float *bounds, std::int64_t n) {
    __m512 least = _mm512_set1_ps(bounds[0]);
    __m512i at = _mm512_setzero_si512(), here = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (std::int64_t k = 0; k < n; k += 16) {
        const __mmask16 is_there = n - k < 16 ? static_cast<__mmask16>((1 << (n - k)) - 1) : 0xffff;
        const __m512 bound = _mm512_maskz_loadu_ps(is_there, bounds + k);
        const __mmask16 is_less = _mm512_mask_cmp_ps_mask(is_there, bound, least, _CMP_LT_OQ);
        least = _mm512_mask_mov_ps(least, is_less, bound);
        at = _mm512_mask_mov_epi32(at, is_less, here);
        here = _mm512_add_epi32(here, _mm512_set1_epi32(16));
    }
    const __mmask16 is_least = _mm512_cmp_ps_mask(least, _mm512_set1_ps(_mm512_reduce_min_ps(least)), _CMP_EQ_OQ);
    return _mm512_mask_reduce_min_epi32(is_least, at);
}
#else
std::int64_t least_index(const float *bounds, std::int64_t n) {
    std::int64_t least = 0;
    for (std::int64_t k = 1; k < n; ++k)
        least = bounds[k] < bounds[least] ? k : least;
    return least;
}

// Tests 32 bounds at once, which the compiler vectorises; indices are written only if one of them is within the limit.
std::int64_t indices_within(const float *bounds, std::int64_t n, float limit, std::int32_t *indices) {
    std::int64_t found = 0, k = 0;
    for (; k + 32 <= n; k += 32) {
        int any = 0;
        for (int l = 0; l < 32; ++l)
            any |= bounds[k + l] <= limit;
        if (any)
            for (int l = 0; l < 32; ++l) {
                indices[found] = static_cast<std::int32_t>(k + l);
                found += bounds[k + l] <= limit;
            }
    }
    for (; k < n; ++k) {
        indices[found] = static_cast<std::int32_t>(k);
        found += bounds[k] <= limit;
    }
    return found;
}
#endif

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
typedef float Vector __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));
typedef std::int32_t Whole __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));

// kBoxes sums at a time, in registers. By the compiler's vector extension, because GCC 12 does not vectorise the loop.
void box_distances(const float *x, std::int64_t n_axes, const float *lows, const float *highs, std::int64_t n,
                   float *squares) {
    constexpr int kVectors = kBoxes / kLanes;
    const auto at = [](const float *values) { return *reinterpret_cast<const Vector *>(values); };
    for (std::int64_t c = 0; c < n; c += kBoxes) {
        Vector sums[kVectors] = {};
        for (std::int64_t j = 0; j < n_axes; ++j)
            for (int v = 0; v < kVectors; ++v) {
                const Vector below = at(lows + j * n + c + v * kLanes) - x[j];
                const Vector above = x[j] - at(highs + j * n + c + v * kLanes);
                const Vector either = below > above ? below : above;
                const Vector outside = either > 0.0f ? either : Vector{};
                sums[v] += outside * outside;
            }
        for (int v = 0; v < kVectors; ++v)
            *reinterpret_cast<Vector *>(squares + c + v * kLanes) = sums[v];
    }
}

// 4 x 4 blocks, whose columns are vectors.
void put_abreast(const float *const *rows, std::int64_t n, float *abreast) {
    typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));
    const auto at = [](const float *values) { return *reinterpret_cast<const Four *>(values); };
    std::int64_t p = 0;
    for (; p + 4 <= n; p += 4)
        for (int l = 0; l < kAbreast; l += 4) {
            const Four a = at(rows[l] + p), b = at(rows[l + 1] + p), c = at(rows[l + 2] + p), d = at(rows[l + 3] + p);
            const Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
            const Four AB = __builtin_shufflevector(a, b, 2, 6, 3, 7), CD = __builtin_shufflevector(c, d, 2, 6, 3, 7);
            const Four points[] = {
                __builtin_shufflevector(ab, cd, 0, 1, 4, 5), __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
                __builtin_shufflevector(AB, CD, 0, 1, 4, 5), __builtin_shufflevector(AB, CD, 2, 3, 6, 7)};
            for (int k = 0; k < 4; ++k)
                *reinterpret_cast<Four *>(abreast + (p + k) * kAbreast + l) = points[k];
        }
    for (; p < n; ++p)
        for (int l = 0; l < kAbreast; ++l)
            abreast[p * kAbreast + l] = rows[l][p];
}

// For kRows rows: kAbreast, or one in all lanes. Minima are written such that the compiler knows them as such.
template <int kRows>
std::uint32_t prefix_minima(const float *bounds, const std::int32_t *numbers, const std::int64_t *ends,
                            std::int64_t n_ends, const float *widths, std::uint16_t *places, float *furthest) {
    constexpr int kVectors = kRows == 1 ? 1 : kRows / kLanes;
    const auto at = [](const float *values) {
        return kRows == 1 ? Vector{} + *values : *reinterpret_cast<const Vector *>(values);
    };
    Vector least[kVectors], second[kVectors];
    Whole place[kVectors] = {}, is_unsure[kVectors] = {};
    for (int v = 0; v < kVectors; ++v)
        least[v] = second[v] = Vector{} + __builtin_inff();
    std::int64_t k = 0;
    for (std::int64_t s = 0; s < n_ends; ++s) {
        for (; k < ends[s]; ++k)
            for (int v = 0; v < kVectors; ++v) {
                const Vector bound = at(bounds + numbers[k] * kRows + v * kLanes);
                const Vector larger = bound > least[v] ? bound : least[v];
                place[v] = bound < least[v] ? Whole{} + static_cast<std::int32_t>(k) : place[v];
                second[v] = larger < second[v] ? larger : second[v];
                least[v] = bound < least[v] ? bound : least[v];
            }
        for (int v = 0; v < kVectors; ++v)
            is_unsure[v] |= ~(second[v] - least[v] > at(widths + v * kLanes));
        for (int l = 0; l < kRows; ++l)
            places[s * kRows + l] = static_cast<std::uint16_t>(place[l / kLanes][l % kLanes]);
    }
    std::uint32_t unsure = 0;
    for (int l = 0; l < kRows; ++l) {
        const float smallest = least[l / kLanes][l % kLanes];
        furthest[l] = smallest > furthest[l] ? smallest : furthest[l];
        unsure |= static_cast<std::uint32_t>(is_unsure[l / kLanes][l % kLanes] & 1) << l;
    }
    return unsure;
}

void subset_minima(const float *bounds, std::int64_t n, float *minima) {
    float least[kSubsets];
    for (int l = 0; l < kSubsets; ++l)
        least[l] = __builtin_inff();
    std::int64_t k = 0;
    for (; k + kSubsets <= n; k += kSubsets)
        for (int l = 0; l < kSubsets; ++l)
            least[l] = bounds[k + l] < least[l] ? bounds[k + l] : least[l];
    for (int l = 0; k + l < n; ++l)
        least[l] = bounds[k + l] < least[l] ? bounds[k + l] : least[l];
    for (int l = 0; l < kSubsets; ++l)
        minima[l] = least[l];
}

void first_places(const std::uint16_t *const *points, std::int64_t n, std::int64_t i, std::uint16_t *first) {
    std::uint16_t places[kTogether];
    for (int l = 0; l < kTogether; ++l)
        places[l] = kNowhere;
    for (std::int64_t k = 0; k < n; ++k)
        for (int l = 0; l < kTogether; ++l)
            places[l] = points[k][i + l] < places[l] ? points[k][i + l] : places[l];
    for (int l = 0; l < kTogether; ++l)
        first[i + l] = places[l];
}

#if defined(__AVX512F__)
bool walk(const std::uint16_t *const *steps, std::int64_t n_steps, std::uint16_t size, std::int64_t n_samples,
          std::uint16_t *found) {
    const __m512i sizes = _mm512_set1_epi16(static_cast<short>(size)), nowhere = _mm512_set1_epi16(-1);
    bool is_any_open = false;
    for (std::int64_t i = 0; i < n_samples; i += kTogether) {
        __m512i places = _mm512_loadu_si512(found + i);
        __mmask32 is_open = _mm512_cmpeq_epu16_mask(places, nowhere);
        for (std::int64_t k = 0; is_open && k < n_steps; ++k) {
            const __m512i here = _mm512_loadu_si512(steps[k] + i);
            const __mmask32 is_first = _mm512_mask_cmplt_epu16_mask(is_open, here, sizes);
            places = _mm512_mask_mov_epi16(places, is_first, here);
            is_open &= ~is_first;
        }
        _mm512_storeu_si512(found + i, places);
        is_any_open |= is_open != 0;
    }
    return is_any_open;
}
#else
// The same without intrinsics; the compiler vectorises the inner loops.
bool walk(const std::uint16_t *const *steps, std::int64_t n_steps, std::uint16_t size, std::int64_t n_samples,
          std::uint16_t *found) {
    bool is_any_open = false;
    for (std::int64_t i = 0; i < n_samples; i += kTogether) {
        std::uint16_t places[kTogether], n_open = 1;
        for (int l = 0; l < kTogether; ++l)
            places[l] = found[i + l];
        for (std::int64_t k = 0; n_open && k < n_steps; ++k) {
            n_open = 0;
            for (int l = 0; l < kTogether; ++l) {
                const std::uint16_t here = steps[k][i + l];
                places[l] = places[l] == kNowhere && here < size ? here : places[l];
                n_open = static_cast<std::uint16_t>(n_open + (places[l] == kNowhere));
            }
        }
        for (int l = 0; l < kTogether; ++l) {
            found[i + l] = places[l];
            is_any_open |= places[l] == kNowhere;
        }
    }
    return is_any_open;
}
#endif

} // namespace

extern const Scans ISOKERN_FOR_ISA(scans);
const Scans ISOKERN_FOR_ISA(scans) = {
    indices_within,   least_index,   subset_minima, put_abreast, prefix_minima<kAbreast>,
    prefix_minima<1>, box_distances, first_places,  walk};

} // namespace isokern
