// The loops of trees/group_descent.hpp: a breadth-first descent of bit sets of rows.
//
// In: packed trees, a group of rows. Out: the cell of each row in each tree. Compiled once per instruction set
// (simd/for_isa.hpp). Each level takes two loops: one compares rows with splits, the other sorts out what is below.
// Neither has branches that depend on the rows, which would be unpredictable. So it does not pay to let single rows go
// on alone.
#include "trees/group_descent.hpp"

#include "common/flags.hpp" // always inlined
#include "simd/for_isa.hpp"
#include "trees/splits.hpp" // only its constants and what is always inlined

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace isokern {
namespace {

using RowSet = std::uint64_t; // bit r: row r of the group

constexpr std::uint32_t kColumnMask = (1u << kColumnBits) - 1, kNodeMask = (1u << kNodeBits) - 1;
constexpr bool kIsLittleEndian = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;

#if defined(__AVX2__)
#define ISOKERN_PREDICATE(avx) static constexpr int kPredicate = avx;
#else
#define ISOKERN_PREDICATE(avx)
#endif

// Comparisons tell where they fail, for numbers or vectors of them; comparing with NaN gives false.
struct AtLeast { // or missing
    template <class X> static auto fails(X x, X split) { return x < split; }
    ISOKERN_PREDICATE(_CMP_NLT_UQ)
};
struct Missing {
    template <class X> static auto fails(X x, X) { return x == x; }
    ISOKERN_PREDICATE(_CMP_UNORD_Q)
};

// The set of the rows for which is(row) holds.
template <class Is> RowSet set_of(Is is) {
    std::uint8_t flags[kGroupRows];
    for (int row = 0; row < kGroupRows; ++row)
        flags[row] = is(row);
    return pack_flags(flags);
}

#if !defined(__AVX2__) && (defined(__SSE2__) || defined(__aarch64__))
#define ISOKERN_FOUR_LANES
typedef float Lanes __attribute__((vector_size(16)));
typedef std::int32_t Masks __attribute__((vector_size(16)));

// A bit for each lane of four vectors, whose lanes are 0 or -1.
unsigned bits_of(Masks a, Masks b, Masks c, Masks d) {
#if defined(__SSE2__)
    const auto pack = [](Masks one, Masks two) {
        return _mm_packs_epi32(reinterpret_cast<__m128i>(one), reinterpret_cast<__m128i>(two));
    };
    return static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(pack(a, b), pack(c, d))));
#else
    const auto pack = [](Masks one, Masks two) {
        return vmovn_u16(
            vcombine_u16(vmovn_u32(reinterpret_cast<uint32x4_t>(one)), vmovn_u32(reinterpret_cast<uint32x4_t>(two))));
    };
    const uint8x8_t bits = {1, 2, 4, 8, 16, 32, 64, 128};
    return vaddv_u8(vand_u8(pack(a, b), bits)) | static_cast<unsigned>(vaddv_u8(vand_u8(pack(c, d), bits))) << 8;
#endif
}
#endif

// The set of the rows whose values x compare so with the split.
template <class Comparison> RowSet compare(const float *x, float split) {
#if defined(__AVX512F__)
    constexpr int predicate = Comparison::kPredicate;
    const __m512 splits = _mm512_set1_ps(split);
    const __mmask16 first = _mm512_cmp_ps_mask(_mm512_loadu_ps(x), splits, predicate);
    const __mmask16 second = _mm512_cmp_ps_mask(_mm512_loadu_ps(x + 16), splits, predicate);
    const __mmask16 third = _mm512_cmp_ps_mask(_mm512_loadu_ps(x + 32), splits, predicate);
    const __mmask16 fourth = _mm512_cmp_ps_mask(_mm512_loadu_ps(x + 48), splits, predicate);
    return _cvtmask64_u64(_mm512_kunpackd(_mm512_kunpackw(fourth, third), _mm512_kunpackw(second, first)));
#elif defined(__AVX2__)
    RowSet set = 0;
    for (int k = 0; k < kGroupRows; k += 32) {
        __m256i are[4];
        for (int part = 0; part < 4; ++part)
            are[part] = _mm256_castps_si256(
                _mm256_cmp_ps(_mm256_loadu_ps(x + k + 8 * part), _mm256_set1_ps(split), Comparison::kPredicate));
        // Packing works on the halves of vectors, so the quarters of the result are out of order.
        const __m256i bytes =
            _mm256_packs_epi16(_mm256_packs_epi32(are[0], are[1]), _mm256_packs_epi32(are[2], are[3]));
        const __m256i ordered = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
        set |= static_cast<RowSet>(static_cast<std::uint32_t>(_mm256_movemask_epi8(ordered))) << k;
    }
    return set;
#elif defined(ISOKERN_FOUR_LANES)
    const Lanes splits = {split, split, split, split};
    RowSet fails = 0;
    const auto at = [=](int first) {
        Lanes values;
        __builtin_memcpy(&values, x + first, sizeof values);
        return Comparison::fails(values, splits);
    };
#pragma GCC unroll 4
    for (int k = 0; k < kGroupRows; k += 16)
        fails |= static_cast<RowSet>(bits_of(at(k), at(k + 4), at(k + 8), at(k + 12))) << k;
    return ~fails;
#else
    return set_of([=](int row) { return !Comparison::fails(x[row], split); });
#endif
}

// Whether a value x equals the split.
bool is_any_equal(const float *x, float split) {
#if defined(__AVX512F__)
    const auto equal = [=](int k) {
        return _mm512_cmp_ps_mask(_mm512_loadu_ps(x + k), _mm512_set1_ps(split), _CMP_EQ_OQ);
    };
    return !_kortestz_mask16_u8(_kor_mask16(equal(0), equal(16)), _kor_mask16(equal(32), equal(48)));
#else
    int is_any = 0;
    for (int row = 0; row < kGroupRows; ++row)
        is_any |= x[row] == split;
    return is_any;
#endif
}

#if !defined(__AVX512BW__)
#if defined(__AVX2__)
constexpr int kSpread = 32;
#else
constexpr int kSpread = 16;
#endif
typedef std::uint8_t ByteVector __attribute__((vector_size(kSpread)));
typedef std::uint64_t WordVector __attribute__((vector_size(kSpread)));

// A byte of ones for each of the first kSpread rows that is in the set, else of zeros. A product repeats a byte of the
// set eight times, then one bit of each is looked at.
ByteVector spread(RowSet rows) {
    WordVector repeated;
    for (int k = 0; k < kSpread / 8; ++k)
        repeated[k] = (rows >> 8 * k & 0xFF) * 0x0101010101010101u;
    const auto bits =
        reinterpret_cast<ByteVector>(WordVector{} + (kIsLittleEndian ? 0x8040201008040201u : 0x0102040810204080u));
    return reinterpret_cast<ByteVector>((reinterpret_cast<ByteVector>(repeated) & bits) == bits);
}
#endif

// Writes a byte for all rows of a set.      out: bytes, by row
void write_byte(std::uint8_t byte, RowSet rows, std::uint8_t *bytes) {
#if defined(__AVX512BW__)
    const __m512i wanted = _mm512_set1_epi8(static_cast<char>(byte));
    _mm512_storeu_si512(bytes, _mm512_mask_mov_epi8(_mm512_loadu_si512(bytes), rows, wanted));
#else
    for (std::int64_t first = 0; first < kGroupRows; first += sizeof(ByteVector)) {
        const ByteVector wanted = spread(rows >> first);
        ByteVector kept;
        __builtin_memcpy(&kept, bytes + first, sizeof kept);
        kept = (kept & ~wanted) | (byte & wanted);
        __builtin_memcpy(bytes + first, &kept, sizeof kept);
    }
#endif
}

// Sets of rows at nodes: rows[k] is at node places[k] % 2^kNodeBits of tree places[k] >> kNodeBits.
template <std::int64_t most> struct Visits {
    static constexpr std::int64_t kAhead = 8; // may be written after the last one
    RowSet rows[most + kAhead];
    std::uint32_t places[most + kAhead];
};

// The descent of one group. Equal values are compared exactly, unless no value has been rounded.
template <bool is_mixed, bool is_exact, class Exact> class Descent {
  public:
    Descent(const PackedForest &forest, const RowGroup<Exact> &rows, const GroupCells &cells)
        : forest_(forest), rows_(rows), cells_(cells) {}

    void run(const std::uint32_t *roots, std::int64_t n_trees) {
        for (std::int64_t tree = 0; tree < n_trees; ++tree) {
            children_.rows[tree] = ~RowSet{0} >> (kGroupRows - rows_.n_rows);
            children_.places[tree] = static_cast<std::uint32_t>(tree) << kNodeBits | roots[tree];
        }
        for (std::int64_t n = sort_out(n_trees); n > 0; n = sort_out(2 * n))
            divide(n);
        for (std::int64_t k = 0; k < n_leaves_; ++k)
            write(leaves_.rows[k], leaves_.places[k]);
    }

  private:
    // Sends the rows at the first n nodes of level_ to their children.      out: children_
    void divide(std::int64_t n) {
        for (std::int64_t k = 0; k < n; ++k) {
            const RowSet rows = level_.rows[k];
            const std::uint32_t place = level_.places[k], at = place & kNodeMask;
            const PackedNode node = forest_.nodes[at];
            const std::uint32_t left = node.link >> kColumnBits;
            __builtin_prefetch(forest_.nodes + left);
            const RowSet right = right_of(rows, at, node);
            children_.rows[2 * k] = rows & ~right;
            children_.rows[2 * k + 1] = rows & right;
            children_.places[2 * k] = place - at + left;
            children_.places[2 * k + 1] = place - at + left + 1;
        }
    }

    // Appends those of the first n children_ that have rows to leaves_ or, inner nodes, to the emptied level_. Returns
    // how many are in level_.
    std::int64_t sort_out(std::int64_t n) {
        std::int64_t n_level = 0, n_leaves = n_leaves_;
#if defined(__AVX512VL__)
        for (std::int64_t k = 0; k < n; k += 8) {
            const auto are_there = static_cast<__mmask8>(n - k < 8 ? (1u << (n - k)) - 1 : 0xFF);
            const __m512i rows = _mm512_maskz_loadu_epi64(are_there, children_.rows + k);
            const __m256i places = _mm256_maskz_loadu_epi32(are_there, children_.places + k);
            const __m256i nodes = _mm256_and_si256(places, _mm256_set1_epi32(kNodeMask));
            const __m256i links = _mm256_i32gather_epi32(reinterpret_cast<const int *>(&forest_.nodes->link), nodes, 8);
            const __mmask8 are_leaves = _mm256_cmpeq_epi32_mask(_mm256_srli_epi32(links, kColumnBits), nodes);
            const __mmask8 have_rows = _mm512_test_epi64_mask(rows, rows);
            append(rows, places, have_rows & ~are_leaves, level_, n_level);
            append(rows, places, have_rows & are_leaves, leaves_, n_leaves);
        }
#else
        for (std::int64_t k = 0; k < n; ++k) {
            const RowSet rows = children_.rows[k];
            const std::uint32_t place = children_.places[k], node = place & kNodeMask;
            const bool is_leaf = forest_.nodes[node].link >> kColumnBits == node;
            level_.rows[n_level] = leaves_.rows[n_leaves] = rows; // kept where the count grows
            level_.places[n_level] = leaves_.places[n_leaves] = place;
            n_level += (rows != 0) & !is_leaf;
            n_leaves += (rows != 0) & is_leaf;
        }
#endif
        n_leaves_ = n_leaves;
        return n_level;
    }

#if defined(__AVX512VL__)
    // Appends those of eight visits that are wanted.      changed: to, its size n
    template <class To> static void append(__m512i rows, __m256i places, __mmask8 wanted, To &to, std::int64_t &n) {
        _mm512_storeu_si512(to.rows + n, _mm512_maskz_compress_epi64(wanted, rows));
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(to.places + n), _mm256_maskz_compress_epi32(wanted, places));
        n += __builtin_popcount(wanted);
    }
#endif

    // The rows that an inner node sends right; also rows that are not there.
    RowSet right_of(RowSet rows, std::uint32_t at, const PackedNode &node) const {
        const std::uint32_t column = node.link & kColumnMask;
        const float *x = rows_.values + column * kGroupRows;
        if constexpr (is_mixed)
            if (static_cast<std::int32_t>(column) >= rows_.n_numeric)
                return set_of([=, split = node.split](int row) { return is_category_right(x[row], split); });
        RowSet right = compare<AtLeast>(x, node.split);
        if constexpr (is_mixed)
            if (!sends_missing_right(at))
                right &= ~compare<Missing>(x, 0.0f);
        if constexpr (!is_exact)
            if (is_any_equal(x, node.split)) [[unlikely]]
                right = decided(right, rows, at, node);
        return right;
    }

    // Corrects `right` by comparing exact numbers where the rounded ones are equal. Rare, so kept out of the loop's
    // code.
    [[gnu::noinline]] RowSet decided(RowSet right, RowSet rows, std::uint32_t at, const PackedNode &node) const {
        const std::uint32_t column = node.link & kColumnMask;
        for (; rows; rows &= rows - 1) {
            const int row = __builtin_ctzll(rows);
            if (rows_.values[column * kGroupRows + row] == node.split) {
                const bool is_right = !(rows_.exact[row][rows_.originals[column]] < forest_.splits[at]);
                right = (right & ~(RowSet{1} << row)) | RowSet{is_right} << row;
            }
        }
        return right;
    }

    // Writes the cell of a leaf for all its rows.
    void write(RowSet rows, std::uint32_t place) {
        const std::uint32_t cell =
            __builtin_bit_cast(std::uint32_t, forest_.nodes[place & kNodeMask].split) & kNodeMask;
        std::uint8_t *bytes = cells_.bytes + (place >> kNodeBits) * cells_.width * kGroupRows;
        for (int k = 0; k < cells_.width; ++k) {
            const int byte = kIsLittleEndian ? k : cells_.width - 1 - k;
            write_byte(static_cast<std::uint8_t>(cell >> 8 * byte), rows, bytes + k * kGroupRows);
        }
    }

    bool sends_missing_right(std::uint32_t node) const { return forest_.missing_right[node / 32] >> node % 32 & 1; }
    static bool is_category_right(float code, float seed) {
        return category_goes_right(__builtin_bit_cast(std::uint32_t, code), __builtin_bit_cast(std::uint32_t, seed));
    }

    static constexpr std::int64_t kMost = kGroupTrees * kGroupRows; // nodes of a level, or leaves, that have rows

    const PackedForest &forest_;
    const RowGroup<Exact> &rows_;
    const GroupCells &cells_;
    Visits<kMost> level_, leaves_;
    Visits<2 * kMost> children_; // of level_: left, right, left, ...
    std::int64_t n_leaves_ = 0;
};

template <class Exact>
void descend(const PackedForest &forest, const std::uint32_t *roots, std::int64_t n_trees, const RowGroup<Exact> &rows,
             const GroupCells &cells) {
    if (rows.is_mixed)
        Descent<true, false, Exact>(forest, rows, cells).run(roots, n_trees);
    else if (rows.is_exact)
        Descent<false, true, Exact>(forest, rows, cells).run(roots, n_trees);
    else
        Descent<false, false, Exact>(forest, rows, cells).run(roots, n_trees);
}

} // namespace

extern const GroupDescents ISOKERN_FOR_ISA(group_descents);
const GroupDescents ISOKERN_FOR_ISA(group_descents) = {descend<float>, descend<double>};

} // namespace isokern
