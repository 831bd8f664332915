// The loops of trees/group_descent.hpp: a breadth-first descent of bit sets of rows, then single rows in lockstep.
//
// In: packed trees, a group of rows. Out: the cell of each row in each tree. Compiled once per instruction set
// (simd/for_isa.hpp).
#include "trees/group_descent.hpp"

#include "simd/for_isa.hpp"
#include "trees/splits.hpp" // only its constants and what is always inlined

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace isokern {
namespace {

using RowSet = std::uint64_t; // bit r: row r of the group

constexpr int kFewRows = 3;  // of a set, up to which they go on alone (an estimate)
constexpr int kLockstep = 8; // single rows processed together, so that their loads overlap
constexpr int kSteps = 4;    // between checks whether single rows have arrived
constexpr std::uint32_t kColumnMask = (1u << kColumnBits) - 1, kCellMask = (1u << kNodeBits) - 1;

#if defined(__AVX2__)
#define ISOKERN_PREDICATE(avx) static constexpr int kPredicate = avx;
#else
#define ISOKERN_PREDICATE(avx)
#endif

struct AtLeast { // or missing
    static bool holds(float x, float split) { return !(x < split); }
    ISOKERN_PREDICATE(_CMP_NLT_UQ)
};
struct Equal {
    static bool holds(float x, float split) { return x == split; }
    ISOKERN_PREDICATE(_CMP_EQ_OQ)
};
struct Missing {
    static bool holds(float x, float) { return x != x; }
    ISOKERN_PREDICATE(_CMP_UNORD_Q)
};

// The set of the rows for which is(row) holds: eight flags, bytes of 0 or 1, become a byte by one product.
template <class Is> RowSet set_of(Is is) {
    std::uint8_t flags[kGroupRows];
    for (int row = 0; row < kGroupRows; ++row)
        flags[row] = is(row);
    RowSet set = 0;
    for (int k = 0; k < 8; ++k) {
        std::uint64_t bytes = 0;
        for (int b = 0; b < 8; ++b)
            bytes |= static_cast<std::uint64_t>(flags[8 * k + b]) << 8 * b;
        set |= (bytes * 0x0102040810204080u) >> 56 << 8 * k;
    }
    return set;
}

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
    const __m256 splits = _mm256_set1_ps(split);
    RowSet set = 0;
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) {
        const __m256 is = _mm256_cmp_ps(_mm256_loadu_ps(x + 8 * k), splits, Comparison::kPredicate);
        set |= static_cast<RowSet>(static_cast<unsigned>(_mm256_movemask_ps(is))) << 8 * k;
    }
    return set;
#else
    return set_of([=](int row) { return Comparison::holds(x[row], split); });
#endif
}

// Rows of the group at a node of a tree.
struct Visit {
    RowSet rows;
    std::uint32_t node, tree;
};

// One row at a node of a tree.
struct Place {
    std::uint32_t cell; // index of the result: tree * kGroupRows + row
    std::uint32_t node;
};

// The descent of one group. Equal values are compared exactly, unless no value has been rounded.
template <bool is_mixed, bool is_exact, class Exact> class Descent {
  public:
    Descent(const PackedForest &forest, const RowGroup<Exact> &rows, std::uint32_t *cells)
        : forest_(forest), rows_(rows), cells_(cells) {}

    void run(const std::uint32_t *roots, std::int64_t n_trees) {
        const RowSet all = ~RowSet{0} >> (kGroupRows - rows_.n_rows);
        for (std::int64_t tree = 0; tree < n_trees; ++tree)
            levels_[0][tree] = {all, roots[tree], static_cast<std::uint32_t>(tree)};
        std::int64_t n = n_trees;
        for (int from = 0; n > 0; from = 1 - from)
            n = visit(levels_[from], n, levels_[1 - from]);
        follow();
    }

  private:
    // Visits the nodes of a level; returns how many nodes with rows are below.      out: below; places_, cells_
    std::int64_t visit(const Visit *level, std::int64_t n, Visit *below) {
        Visit *end = below;
        for (std::int64_t k = 0; k < n; ++k) {
            const Visit at = level[k];
            const PackedNode node = forest_.nodes[at.node];
            const std::uint32_t left = node.link >> kColumnBits;
            if (left == at.node) {
                write(at, node);
                continue;
            }
            if (__builtin_popcountll(at.rows) <= kFewRows) {
                scatter(at);
                continue;
            }
            const RowSet right = right_of(at, node);
            __builtin_prefetch(forest_.nodes + left);
            *end = {at.rows & ~right, left, at.tree}; // without a branch: kept only if it has rows
            end += end->rows != 0;
            *end = {at.rows & right, left + 1, at.tree};
            end += end->rows != 0;
        }
        return end - below;
    }

    // The rows that an inner node sends right; also rows that are not there.
    RowSet right_of(const Visit &at, const PackedNode &node) const {
        const std::uint32_t column = node.link & kColumnMask;
        const float *x = rows_.values + column * kGroupRows;
        if constexpr (is_mixed)
            if (static_cast<std::int32_t>(column) >= rows_.n_numeric)
                return set_of([=, split = node.split](int row) { return is_category_right(x[row], split); });
        RowSet right = compare<AtLeast>(x, node.split);
        if constexpr (is_mixed)
            if (!sends_missing_right(at.node))
                right &= ~compare<Missing>(x, 0.0f);
        if constexpr (!is_exact) {
            const RowSet close = compare<Equal>(x, node.split) & at.rows;
            if (close) [[unlikely]]
                right = decided(right, close, at.node, column);
        }
        return right;
    }

    // Corrects `right` for the rows in `close` by comparing exact numbers. Rare, so kept out of the loop's code.
    [[gnu::noinline]] RowSet decided(RowSet right, RowSet close, std::uint32_t node, std::uint32_t column) const {
        for (; close; close &= close - 1) {
            const auto row = static_cast<std::uint32_t>(__builtin_ctzll(close));
            right = (right & ~(RowSet{1} << row)) | RowSet{is_right_exactly(row, column, node)} << row;
        }
        return right;
    }

    // Writes the cell of a leaf for all its rows.
    void write(const Visit &at, const PackedNode &leaf) {
        std::uint32_t *cells = cells_ + at.tree * kGroupRows;
#if defined(__AVX512F__)
        const __m512i cell = _mm512_set1_epi32(static_cast<int>(cell_of(leaf)));
#pragma GCC unroll 4
        for (int k = 0; k < kGroupRows; k += 16) {
            const auto is_here = static_cast<__mmask16>(at.rows >> k);
            _mm512_storeu_si512(cells + k, _mm512_mask_mov_epi32(_mm512_loadu_si512(cells + k), is_here, cell));
        }
#else
        for (RowSet rest = at.rows; rest; rest &= rest - 1)
            cells[__builtin_ctzll(rest)] = cell_of(leaf);
#endif
    }

    void scatter(const Visit &at) {
        for (RowSet rest = at.rows; rest; rest &= rest - 1)
            places_[n_places_++] = {at.tree * static_cast<std::uint32_t>(kGroupRows) +
                                        static_cast<std::uint32_t>(__builtin_ctzll(rest)),
                                    at.node};
    }

    // Takes the single rows to their leaves: all take a few steps, then those that have arrived leave the list.
    void follow() {
        std::int64_t n_ends = 0;
        for (std::int64_t n = n_places_, n_kept = 0; n > 0; n = n_kept, n_kept = 0) {
            for (std::int64_t k = n; k % kLockstep != 0; ++k)
                places_[k] = places_[0]; // valid places, whose results are ignored
            for (std::int64_t begin = 0; begin < n; begin += kLockstep) {
                std::uint32_t before[kLockstep];
                if (is_mixed || !step_all(forest_.nodes, rows_.values, places_ + begin, before))
                    step_each(places_ + begin, before);
                const std::int64_t n_now = n - begin < kLockstep ? n - begin : kLockstep;
                for (std::int64_t g = 0; g < n_now; ++g) { // without a branch: each is written to both lists
                    const Place place = places_[begin + g];
                    const bool has_ended = place.node == before[g];
                    ends_[n_ends] = place;
                    n_ends += has_ended;
                    places_[n_kept] = place;
                    n_kept += !has_ended;
                }
            }
        }
        for (std::int64_t k = 0; k < n_ends; ++k)
            cells_[ends_[k].cell] = cell_of(forest_.nodes[ends_[k].node]);
    }

    // Takes kLockstep places kSteps steps down.      out: before, their nodes before the last step
    // Returns false, and moves none, if a value equals a split after rounding. Not inlined, so that the loop's
    // variables stay in registers.
    [[gnu::noinline]] static bool step_all(const PackedNode *nodes, const float *values, Place *places,
                                           std::uint32_t *before) {
        std::uint32_t at[kLockstep];
        const float *x[kLockstep];
        for (int g = 0; g < kLockstep; ++g) {
            at[g] = places[g].node;
            x[g] = values + places[g].cell % kGroupRows;
        }
#pragma GCC unroll 4
        for (int step = 0; step < kSteps; ++step)
#pragma GCC unroll 8
            for (int g = 0; g < kLockstep; ++g) {
                const PackedNode &node = nodes[at[g]];
                const float value = x[g][(node.link & kColumnMask) * kGroupRows];
                if (step == kSteps - 1)
                    before[g] = at[g];
                // Quiet comparisons, of which one instruction of the CPU serves both.
                if (!is_exact && !__builtin_islessgreater(value, node.split)) [[unlikely]]
                    return false;
                at[g] = (node.link >> kColumnBits) + __builtin_isgreaterequal(value, node.split);
            }
        for (int g = 0; g < kLockstep; ++g)
            places[g].node = at[g];
        return true;
    }

    // Takes kLockstep places one step down, by splits.hpp.
    [[gnu::noinline]] void step_each(Place *places, std::uint32_t *before) const {
        for (int g = 0; g < kLockstep; ++g) {
            const std::uint32_t at = before[g] = places[g].node;
            const PackedNode &node = forest_.nodes[at];
            const std::uint32_t left = node.link >> kColumnBits;
            const std::uint32_t row = places[g].cell % kGroupRows;
            places[g].node = left == at ? at : left + goes_right(at, node, row);
        }
    }

    bool goes_right(std::uint32_t at, const PackedNode &node, std::uint32_t row) const {
        const std::uint32_t column = node.link & kColumnMask;
        const float x = rows_.values[column * kGroupRows + row];
        if (is_mixed && static_cast<std::int32_t>(column) >= rows_.n_numeric)
            return is_category_right(x, node.split);
        if (is_mixed && x != x)
            return sends_missing_right(at);
        return x == node.split ? is_right_exactly(row, column, at) : x > node.split;
    }

    bool is_right_exactly(std::uint32_t row, std::uint32_t column, std::uint32_t node) const {
        return !(rows_.exact[row][rows_.originals[column]] < forest_.splits[node]);
    }
    bool sends_missing_right(std::uint32_t node) const { return forest_.missing_right[node / 32] >> node % 32 & 1; }
    static bool is_category_right(float code, float seed) {
        return category_goes_right(__builtin_bit_cast(std::uint32_t, code), __builtin_bit_cast(std::uint32_t, seed));
    }
    static std::uint32_t cell_of(const PackedNode &leaf) {
        return __builtin_bit_cast(std::uint32_t, leaf.split) & kCellMask;
    }

    static constexpr std::int64_t kMost = kGroupTrees * kGroupRows; // nodes of a level, and single rows

    const PackedForest &forest_;
    const RowGroup<Exact> &rows_;
    std::uint32_t *cells_;
    Visit levels_[2][kMost + 1]; // a level and the one below it
    Place places_[kMost + kLockstep], ends_[kMost + 1];
    std::int64_t n_places_ = 0;
};

template <class Exact>
void descend(const PackedForest &forest, const std::uint32_t *roots, std::int64_t n_trees, const RowGroup<Exact> &rows,
             std::uint32_t *cells) {
    if (rows.is_mixed)
        Descent<true, false, Exact>(forest, rows, cells).run(roots, n_trees);
    else if (rows.is_exact)
        Descent<false, true, Exact>(forest, rows, cells).run(roots, n_trees);
    else
        Descent<false, false, Exact>(forest, rows, cells).run(roots, n_trees);
}

// Vectorised by the compiler, if the instruction set has what it takes.
template <class Exact> NumberCounts round_row(const Exact *row, std::int64_t n, float *__restrict rounded) {
    std::int32_t n_exact = 0, n_ordinary = 0;
    for (std::int64_t j = 0; j < n; ++j) {
        rounded[j] = round_up(row[j]);
        n_exact += static_cast<Exact>(rounded[j]) == row[j];
        n_ordinary += rounded[j] < kHuge;
    }
    return {n_exact, n_ordinary};
}

} // namespace

extern const GroupDescents ISOKERN_FOR_ISA(group_descents);
const GroupDescents ISOKERN_FOR_ISA(group_descents) = {descend<float>, descend<double>, round_row<float>,
                                                       round_row<double>};

} // namespace isokern
