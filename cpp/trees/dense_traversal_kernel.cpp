// The loops of trees/dense_traversal.hpp: SIMD traversal of trees with a compacted work list (AVX-512), and a scalar
// version.
//
// In: packed trees, a tile of rows. Out: the leaf of each row in each tree. Compiled once per instruction set
// (simd/for_isa.hpp).
#include "trees/dense_traversal.hpp"

#include "simd/for_isa.hpp"
#include "trees/splits.hpp" // only its constants and what is always inlined

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace isokern {
namespace {

constexpr int kVectors = 4;      // vectors processed together, so that the latencies of their gathers overlap
constexpr int kFirstSteps = 5;   // steps below the top before the first compaction: few leaves are nearer to the root
constexpr int kStepsBetween = 4; // steps between later compactions
static_assert(kLanes * kVectors == kPlacesAtOnce);

// Compares the exact numbers, for a value that equals the split when both are rounded to float32.
template <class Exact>
bool goes_right_exactly(const RowTile<Exact> &rows, std::int64_t row, std::int64_t column, double split) {
    return !(rows.exact[row * rows.n_columns + rows.originals[column]] < split);
}

#if defined(__AVX512F__)

// Bitwise select: per row (bit), if_so where `which` is set, else if_not.
inline unsigned choose(unsigned which, unsigned if_not, unsigned if_so) { return if_not ^ ((if_not ^ if_so) & which); }

// category_goes_right of splits.hpp for sixteen codes or seeds.
inline __mmask16 categories_right(const __m512i &codes, const __m512i &seeds) {
    __m512i hash = _mm512_xor_si512(codes, seeds);
    for (const unsigned factor : kCategoryFactors) {
        hash = _mm512_mullo_epi32(hash, _mm512_set1_epi32(static_cast<int>(factor)));
        hash = _mm512_xor_si512(hash, _mm512_srli_epi32(hash, kCategoryShift));
    }
    return _mm512_test_epi32_mask(hash, _mm512_set1_epi32(1));
}

// Takes rows first .. first + 15 through the top of a tree; returns the packed nodes below it.
//  right[k], bit l: row first + l would go right at top node k.      close[k]: it equals the split after rounding.
template <bool is_mixed, class Exact>
__m512i below_top(const PackedForest &forest, const TopNodes &top, const RowTile<Exact> &rows, std::int64_t first) {
    unsigned right[kTopNodes], close[kTopNodes], any = 0;
#pragma GCC unroll 15
    for (int k = 0; k < kTopNodes; ++k) {
        const __m512 x = _mm512_loadu_ps(rows.columns + (std::int64_t{top.columns[k]} << rows.row_bits) + first);
        const __m512 split = _mm512_set1_ps(top.splits[k]);
        right[k] = _mm512_cmp_ps_mask(x, split, _CMP_NLT_UQ);
        close[k] = _mm512_cmp_ps_mask(x, split, _CMP_EQ_OQ);
        if constexpr (is_mixed) {
            if (static_cast<std::int32_t>(top.columns[k]) >= rows.n_numeric) {
                right[k] = categories_right(_mm512_castps_si512(x), _mm512_castps_si512(split));
                close[k] = 0;
            } else if (!(forest.missing_right[top.nodes[k] / 32] >> top.nodes[k] % 32 & 1))
                right[k] &= ~static_cast<unsigned>(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q));
        }
        any |= close[k];
    }
    if (__builtin_expect(any != 0, 0))
        for (int k = 0; k < kTopNodes; ++k)
            for (std::int64_t l = 0; l < kLanes && first + l < rows.n_rows; ++l)
                if (close[k] >> l & 1) {
                    const bool is_right =
                        goes_right_exactly(rows, first + l, top.columns[k], forest.splits[top.nodes[k]]);
                    right[k] = (right[k] & ~(1u << l)) | static_cast<unsigned>(is_right) << l;
                }
    // Reduces the masks of each level to one, for the node that each row really reaches there: pairs of siblings are
    // merged by the direction that the row took on the level above.
    unsigned at[kTopLevels]; // level -> mask of the rows that go right there
    for (int level = 0; level < kTopLevels; ++level) {
        unsigned *nodes = right + (1 << level) - 1;
        for (int above = level; above-- > 0;)
            for (int k = 0; k < 1 << above; ++k)
                nodes[k] = choose(at[above], nodes[2 * k], nodes[2 * k + 1]);
        at[level] = nodes[0];
    }
    // The directions, first level first, are the binary digits of the index into `below`.
    __m512i path = _mm512_setzero_si512();
    for (int level = 0; level < kTopLevels; ++level)
        path = _mm512_mask_add_epi32(path, static_cast<__mmask16>(at[level]), path,
                                     _mm512_set1_epi32(1 << (kTopLevels - 1 - level)));
    return _mm512_permutexvar_epi32(path, _mm512_loadu_si512(top.below));
}

// Appends the places of all rows below a tree's top to the work list; returns its new end.
template <bool is_mixed, class Exact>
std::uint32_t *enter(const PackedForest &forest, std::int64_t tree, const RowTile<Exact> &rows, std::uint32_t *places) {
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (std::int64_t first = 0; first < rows.n_rows; first += kLanes) {
        const __m512i row = _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(first)), lane);
        const __m512i node = below_top<is_mixed>(forest, forest.tops[tree], rows, first);
        _mm512_storeu_si512(places + first, _mm512_or_si512(_mm512_slli_epi32(row, kNodeBits), node));
    }
    return places + rows.n_rows;
}

// Sixteen traversals: their rows and current nodes.
template <bool is_mixed, class Exact> struct Lanes {
    __m512i row, at;

    void load(const std::uint32_t *places) {
        const __m512i place = _mm512_loadu_si512(places);
        at = _mm512_and_si512(place, _mm512_set1_epi32((1 << kNodeBits) - 1));
        row = _mm512_srli_epi32(place, kNodeBits);
    }

    // One step of each traversal:  left = link >> kColumnBits,  returns left + !(x[column] < split)
    // The 8-byte nodes come by two 64-bit gathers, whose halves are sorted into splits and links.
    __m512i next(const PackedForest &forest, const RowTile<Exact> &rows) const {
        const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
        const __m512i low = _mm512_i32gather_epi64(_mm512_castsi512_si256(at), forest.nodes, 8);
        const __m512i high = _mm512_i32gather_epi64(_mm512_extracti64x4_epi64(at, 1), forest.nodes, 8);
        const __m512 split = _mm512_castsi512_ps(_mm512_permutex2var_epi32(low, even, high));
        const __m512i link = _mm512_permutex2var_epi32(low, odd, high);
        const __m512i column = _mm512_and_si512(link, _mm512_set1_epi32((1 << kColumnBits) - 1));
        const __m512i value = _mm512_add_epi32(_mm512_sllv_epi32(column, _mm512_set1_epi32(rows.row_bits)), row);
        const __m512 x = _mm512_i32gather_ps(value, rows.columns, 4);
        const __m512i left = _mm512_srli_epi32(link, kColumnBits);
        __mmask16 goes_right = _mm512_cmp_ps_mask(x, split, _CMP_NLT_UQ);
        __mmask16 is_close = _mm512_cmp_ps_mask(x, split, _CMP_EQ_OQ);
        if constexpr (is_mixed) {
            const __mmask16 is_inner = _mm512_cmpneq_epi32_mask(left, at);
            const __mmask16 is_category =
                _mm512_mask_cmpge_epi32_mask(is_inner, column, _mm512_set1_epi32(rows.n_numeric));
            const __mmask16 is_missing = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q) & ~is_category;
            goes_right &= is_inner; // a missing value does not leave a leaf
            if (is_missing & is_inner) {
                const __m512i words = _mm512_i32gather_epi32(_mm512_srli_epi32(at, 5), forest.missing_right, 4);
                const __m512i bits = _mm512_srlv_epi32(words, _mm512_and_si512(at, _mm512_set1_epi32(31)));
                goes_right = (goes_right & ~is_missing) |
                             _mm512_mask_test_epi32_mask(is_missing & is_inner, bits, _mm512_set1_epi32(1));
            }
            if (is_category) {
                const __mmask16 is_right = categories_right(_mm512_castps_si512(x), _mm512_castps_si512(split));
                goes_right = (goes_right & ~is_category) | (is_right & is_category);
                is_close &= ~is_category;
            }
        }
        if (__builtin_expect(is_close != 0, 0))
            goes_right = decided(goes_right, is_close, column, forest, rows);
        return _mm512_mask_add_epi32(left, goes_right, left, _mm512_set1_epi32(1));
    }

    // Appends the traversals that have not moved, which are at leaves, to `ends`, and the others to `places`; both
    // pointers advance. Only the first n_valid lanes count.
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
    // Corrects goes_right for the lanes in is_close by comparing exact numbers. Rare, so kept out of the loop's code.
    __attribute__((noinline)) __mmask16 decided(unsigned goes_right, unsigned is_close, const __m512i &column,
                                                const PackedForest &forest, const RowTile<Exact> &rows) const {
        std::int32_t columns[kLanes], nodes[kLanes], numbers[kLanes];
        _mm512_storeu_si512(columns, column);
        _mm512_storeu_si512(nodes, at);
        _mm512_storeu_si512(numbers, row);
        for (unsigned k = 0; k < kLanes; ++k)
            if (is_close >> k & 1) {
                const bool is_right = goes_right_exactly(rows, numbers[k], columns[k], forest.splits[nodes[k]]);
                goes_right = (goes_right & ~(1u << k)) | static_cast<unsigned>(is_right) << k;
            }
        return static_cast<__mmask16>(goes_right);
    }
};

using Nodes = __m512i;

#else

// Where a node sends x, by splits.hpp.
template <bool is_mixed, class Exact>
bool goes_right(const PackedForest &forest, const RowTile<Exact> &rows, std::int64_t row, std::int64_t column, float x,
                float split, std::uint32_t node) {
    if constexpr (is_mixed) {
        if (column >= rows.n_numeric)
            return category_goes_right(__builtin_bit_cast(std::uint32_t, x), __builtin_bit_cast(std::uint32_t, split));
        if (x != x)
            return forest.missing_right[node / 32] >> node % 32 & 1;
    }
    if (__builtin_expect(x == split, 0))
        return goes_right_exactly(rows, row, column, forest.splits[node]);
    return !(x < split);
}

// The same without SIMD: each row follows its own path through the top.
template <bool is_mixed, class Exact>
std::uint32_t *enter(const PackedForest &forest, std::int64_t tree, const RowTile<Exact> &rows, std::uint32_t *places) {
    const TopNodes &top = forest.tops[tree];
    for (std::int64_t row = 0; row < rows.n_rows; ++row) {
        int at = 0;
        for (int level = 0; level < kTopLevels; ++level) {
            const float x = rows.columns[(std::int64_t{top.columns[at]} << rows.row_bits) + row];
            at =
                2 * at + 1 + goes_right<is_mixed>(forest, rows, row, top.columns[at], x, top.splits[at], top.nodes[at]);
        }
        *places++ = static_cast<std::uint32_t>(row) << kNodeBits | top.below[at - kTopNodes];
    }
    return places;
}

struct Nodes {
    std::int32_t lane[kLanes];
};

template <bool is_mixed, class Exact> struct Lanes {
    Nodes row, at;

    void load(const std::uint32_t *places) {
        for (int k = 0; k < kLanes; ++k) {
            at.lane[k] = static_cast<std::int32_t>(places[k] & ((1u << kNodeBits) - 1));
            row.lane[k] = static_cast<std::int32_t>(places[k] >> kNodeBits);
        }
    }

    Nodes next(const PackedForest &forest, const RowTile<Exact> &rows) const {
        Nodes moved;
        for (int k = 0; k < kLanes; ++k) {
            const PackedNode node = forest.nodes[at.lane[k]];
            const std::int64_t column = node.link & ((1u << kColumnBits) - 1);
            const float x = rows.columns[(column << rows.row_bits) + row.lane[k]];
            const auto here = static_cast<std::uint32_t>(at.lane[k]), left = node.link >> kColumnBits;
            const bool is_right = goes_right<is_mixed>(forest, rows, row.lane[k], column, x, node.split, here);
            moved.lane[k] = static_cast<std::int32_t>(left + (is_right && !(is_mixed && left == here)));
        }
        return moved;
    }

    // Without a branch: each place is written to both lists, and only one of them advances.
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

// Fills the work list, then steps and compacts until it is empty. Compaction is in place: no more places are kept than
// have been read, so it never overwrites a place that is still to be read.
//   in: forest, rows      changed: places (the work list)      out: ends
template <bool is_mixed, class Exact>
void traverse(const PackedForest &forest, std::int64_t n_trees, const RowTile<Exact> &rows, std::uint32_t *places,
              std::uint32_t *ends) {
    std::uint32_t *entered = places;
    for (std::int64_t tree = 0; tree < n_trees; ++tree)
        entered = enter<is_mixed>(forest, tree, rows, entered);
    std::int64_t n = entered - places;
    for (int n_steps = kFirstSteps; n > 0; n_steps = kStepsBetween) {
        for (std::int64_t k = n; k % kPlacesAtOnce != 0; ++k)
            places[k] = places[0]; // valid places for idle lanes, whose results are ignored
        std::uint32_t *kept = places;
        for (std::int64_t begin = 0; begin < n; begin += kPlacesAtOnce) {
            Lanes<is_mixed, Exact> lanes[kVectors];
            Nodes moved[kVectors];
#pragma GCC unroll 4
            for (int v = 0; v < kVectors; ++v)
                lanes[v].load(places + begin + v * kLanes);
#pragma GCC unroll 1
            for (int step = 1; step < n_steps; ++step)
#pragma GCC unroll 4
                for (int v = 0; v < kVectors; ++v)
                    lanes[v].at = lanes[v].next(forest, rows);
#pragma GCC unroll 4
            for (int v = 0; v < kVectors; ++v)
                moved[v] = lanes[v].next(forest, rows);
#pragma GCC unroll 4
            for (int v = 0; v < kVectors; ++v)
                lanes[v].part(moved[v], n - begin - v * kLanes, kept, ends);
        }
        n = kept - places;
    }
}

} // namespace

extern const DenseTraversals ISOKERN_FOR_ISA(dense_traversals);
const DenseTraversals ISOKERN_FOR_ISA(dense_traversals) = {traverse<false, float>, traverse<false, double>,
                                                           traverse<true, float>, traverse<true, double>};

} // namespace isokern
