// The steps of descents.hpp, compiled once for each vector unit (ISOKERN_ISA names it), so it must not include headers
// with inline functions: the linker would be free to choose a copy that older CPUs cannot run.
#include "descents.hpp"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#define ISOKERN_JOIN_(a, b) a##b
#define ISOKERN_JOIN(a, b) ISOKERN_JOIN_(a, b)

namespace isokern {
namespace {

constexpr int kLanes = 16;
constexpr int kVectors = 4;      // vectors of lanes whose loads are in flight together
constexpr int kFirstSteps = 6;   // few leaves are nearer to the root
constexpr int kStepsBetween = 4; // between two looks for leaves
static_assert(kLanes * kVectors == kPlacesAtOnce);

template <class Exact> struct Table {
    const PackedNode *nodes;
    const double *splits;
    const float *rows;
    const Exact *exact;
    std::int32_t n_columns;
};

#if defined(__AVX512F__)

// Sixteen rows and the nodes they are at.
template <class Exact> struct Lanes {
    __m512i row, offset, at;

    void load(const std::uint32_t *places, const Table<Exact> &table) {
        const __m512i place = _mm512_loadu_si512(places);
        at = _mm512_and_si512(place, _mm512_set1_epi32((1 << kNodeBits) - 1));
        row = _mm512_srli_epi32(place, kNodeBits);
        offset = _mm512_mullo_epi32(row, _mm512_set1_epi32(table.n_columns));
    }

    __m512i next(const Table<Exact> &table) const {
        const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
        const __m512i low = _mm512_i32gather_epi64(_mm512_castsi512_si256(at), table.nodes, 8);
        const __m512i high = _mm512_i32gather_epi64(_mm512_extracti64x4_epi64(at, 1), table.nodes, 8);
        const __m512 split = _mm512_castsi512_ps(_mm512_permutex2var_epi32(low, even, high));
        const __m512i link = _mm512_permutex2var_epi32(low, odd, high);
        const __m512i column = _mm512_and_si512(link, _mm512_set1_epi32((1 << kColumnBits) - 1));
        const __m512i place = _mm512_add_epi32(offset, column);
        const __m512 x = _mm512_i32gather_ps(place, table.rows, 4);
        __mmask16 goes_right = _mm512_cmp_ps_mask(x, split, _CMP_NLT_UQ);
        const __mmask16 is_close = _mm512_cmp_ps_mask(x, split, _CMP_EQ_OQ);
        if (__builtin_expect(is_close != 0, 0))
            goes_right = decided(goes_right, is_close, place, table);
        const __m512i left = _mm512_srli_epi32(link, kColumnBits);
        return _mm512_mask_add_epi32(left, goes_right, left, _mm512_set1_epi32(1));
    }

    // Adds the lanes that have not moved to `ends`, and the others to `places`.
    void part(const __m512i &moved, std::int64_t n_valid, std::uint32_t *&places, std::uint32_t *&ends) const {
        const auto is_valid = static_cast<__mmask16>(n_valid >= kLanes ? 0xffff
                                                     : n_valid <= 0    ? 0
                                                                       : (1 << n_valid) - 1);
        const auto has_ended = static_cast<__mmask16>(_mm512_cmpeq_epi32_mask(moved, at) & is_valid);
        const auto goes_on = static_cast<__mmask16>(is_valid & ~has_ended);
        const __m512i place = _mm512_or_si512(_mm512_slli_epi32(row, kNodeBits), moved);
        _mm512_storeu_si512(ends, _mm512_maskz_compress_epi32(has_ended, place));
        ends += __builtin_popcount(has_ended);
        _mm512_storeu_si512(places, _mm512_maskz_compress_epi32(goes_on, place));
        places += __builtin_popcount(goes_on);
    }

  private:
    __attribute__((noinline)) __mmask16 decided(unsigned goes_right, unsigned is_close, const __m512i &place,
                                                const Table<Exact> &table) const {
        std::int32_t values[kLanes], nodes[kLanes];
        _mm512_storeu_si512(values, place);
        _mm512_storeu_si512(nodes, at);
        for (unsigned k = 0; k < kLanes; ++k)
            if (is_close >> k & 1) {
                const bool is_right = !(table.exact[values[k]] < table.splits[nodes[k]]);
                goes_right = (goes_right & ~(1u << k)) | static_cast<unsigned>(is_right) << k;
            }
        return static_cast<__mmask16>(goes_right);
    }
};

using Nodes = __m512i;

#else

struct Nodes {
    std::int32_t lane[kLanes];
};

template <class Exact> struct Lanes {
    Nodes row, at;

    void load(const std::uint32_t *places, const Table<Exact> &) {
        for (int k = 0; k < kLanes; ++k) {
            at.lane[k] = static_cast<std::int32_t>(places[k] & ((1u << kNodeBits) - 1));
            row.lane[k] = static_cast<std::int32_t>(places[k] >> kNodeBits);
        }
    }

    Nodes next(const Table<Exact> &table) const {
        Nodes moved;
        for (int k = 0; k < kLanes; ++k) {
            const PackedNode node = table.nodes[at.lane[k]];
            const std::int64_t place =
                std::int64_t{row.lane[k]} * table.n_columns + (node.link & ((1u << kColumnBits) - 1));
            const float x = table.rows[place];
            bool goes_right = !(x < node.split);
            if (__builtin_expect(x == node.split, 0))
                goes_right = !(table.exact[place] < table.splits[at.lane[k]]);
            moved.lane[k] = static_cast<std::int32_t>(node.link >> kColumnBits) + goes_right;
        }
        return moved;
    }

    void part(const Nodes &moved, std::int64_t n_valid, std::uint32_t *&places, std::uint32_t *&ends) const {
        for (int k = 0; k < kLanes && k < n_valid; ++k) {
            const auto place =
                static_cast<std::uint32_t>(row.lane[k]) << kNodeBits | static_cast<std::uint32_t>(moved.lane[k]);
            const bool has_ended = moved.lane[k] == at.lane[k];
            *ends = place;
            ends += has_ended;
            *places = place;
            places += !has_ended;
        }
    }
};

#endif

template <class Exact>
void descend(const PackedNode *nodes, const double *splits, const float *rows, const Exact *exact,
             std::int64_t n_columns, std::uint32_t *places, std::int64_t n, std::uint32_t *ends) {
    const Table<Exact> table{nodes, splits, rows, exact, static_cast<std::int32_t>(n_columns)};
    for (int n_steps = kFirstSteps; n > 0; n_steps = kStepsBetween) {
        for (std::int64_t k = n; k % kPlacesAtOnce != 0; ++k)
            places[k] = places[0]; // idle lanes
        std::uint32_t *kept = places;
        for (std::int64_t begin = 0; begin < n; begin += kPlacesAtOnce) {
            Lanes<Exact> lanes[kVectors];
            Nodes moved[kVectors];
#pragma GCC unroll 4
            for (int v = 0; v < kVectors; ++v)
                lanes[v].load(places + begin + v * kLanes, table);
#pragma GCC unroll 1
            for (int step = 1; step < n_steps; ++step)
#pragma GCC unroll 4
                for (int v = 0; v < kVectors; ++v)
                    lanes[v].at = lanes[v].next(table);
#pragma GCC unroll 4
            for (int v = 0; v < kVectors; ++v)
                moved[v] = lanes[v].next(table);
#pragma GCC unroll 4
            for (int v = 0; v < kVectors; ++v)
                lanes[v].part(moved[v], n - begin - v * kLanes, kept, ends);
        }
        n = kept - places;
    }
}

} // namespace

extern const Descents ISOKERN_JOIN(descents_, ISOKERN_ISA);
const Descents ISOKERN_JOIN(descents_, ISOKERN_ISA) = {descend<float>, descend<double>};

} // namespace isokern
