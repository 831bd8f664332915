// Maps many dense rows by trees that do not fit into the inner caches together.
//
// In: packed trees, dense rows. Out: the cells of the rows in all trees. Rows are sorted by their leaf in the first
// tree (counting sort), so that neighbours are similar and end near each other in the other trees too. Then tiles of
// neighbours go down one tree at a time, and read a small part of it again and again. Eight rows descend in lockstep,
// so that their loads overlap; being similar, they have paths of about the same length.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "common/rows.hpp"
#include "common/threads.hpp"
#include "trees/packed_trees.hpp"
#include "trees/splits.hpp"

namespace isokern {

using RowNumbers = std::span<const std::int64_t>;

// A tile of rows that goes down one tree after the other; owns the scratch buffers of one thread.
template <class Value> class PackedTrees::Lockstep {
  public:
    Lockstep(const PackedTrees &trees, const DenseRows<Value> &rows) : trees_(trees), rows_(rows) {}

    // Copies the rows of the tile:  values_[b, j, g] = row 8 b + g of the tile in packed column j, rounded to float32,
    // or a category's code. The last row fills up the last group.
    void take(RowNumbers numbers) {
        const std::size_t n_padded = (numbers.size() + kGroup - 1) / kGroup * kGroup;
        numbers_.assign(numbers.begin(), numbers.end());
        numbers_.resize(n_padded, numbers.back());
        values_.resize(n_padded * static_cast<std::size_t>(rows_.n_columns));
        leaves_.resize(n_padded);
        is_mixed_ = trees_.n_numeric_ < rows_.n_columns;
        for (std::size_t k = 0; k < n_padded; ++k)
            copy(rows_.row(numbers_[k]), values_.data() + k / kGroup * kGroup * rows_.n_columns + k % kGroup);
    }

    // The packed nodes, counted from the segment's first, in which the rows of the tile end in a tree.
    std::span<const std::uint32_t> descend(const Segment &segment, std::int64_t tree) {
        const std::int64_t first_node = trees_.starts_[segment.first_tree];
        const auto root = static_cast<std::uint32_t>(trees_.starts_[tree] - first_node);
        const PackedForest forest{trees_.nodes_.data() + first_node, trees_.splits_.data() + first_node, nullptr,
                                  trees_.missing_right_.data() + segment.first_word};
        const auto follow = is_mixed_ ? follow_in_lockstep<true> : follow_in_lockstep<false>;
        for (std::size_t k = 0; k < leaves_.size(); k += kGroup) {
            const float *values = values_.data() + k * rows_.n_columns;
            if (!follow(forest, trees_.n_numeric_, root, values, leaves_.data() + k)) [[unlikely]]
                for (std::size_t g = 0; g < kGroup; ++g)
                    leaves_[k + g] = follow_exactly(forest, root, values + g, numbers_[k + g]);
        }
        return leaves_;
    }

  private:
    static constexpr std::int64_t kGroup = 8;
    static constexpr int kSteps = 4; // between checks whether all rows of a group are at leaves
    static constexpr std::uint32_t kColumnMask = (1u << kColumnBits) - 1;

    void copy(const Value *row, float *values) {
        const std::int32_t *originals = trees_.originals_.data(), n_numeric = trees_.n_numeric_;
        bool is_missing = false;
        for (std::int64_t j = 0; j < n_numeric; ++j) {
            const Value value = row[originals[j]];
            values[j * kGroup] = static_cast<float>(value) + 0.0f; // turns -0 into 0, which has other bits
            is_missing |= value != value;
        }
        for (std::int64_t j = n_numeric; j < rows_.n_columns; ++j)
            values[j * kGroup] = std::bit_cast<float>(category_code(row[originals[j]]));
        is_mixed_ |= is_missing;
    }

    //  at <- left[at] + goes_right(at, x[column[at]]) until all rows of a group are at leaves, which lead to themselves
    //   out: leaves. Returns false, without a result, if a value equals a split after rounding to float32.
    // Not inlined, so that the loop's variables stay in registers.
    template <bool is_mixed>
    [[gnu::noinline]] static bool follow_in_lockstep(const PackedForest &forest, std::int32_t n_numeric,
                                                     std::uint32_t root, const float *values, std::uint32_t *leaves) {
        const PackedNode *nodes = forest.nodes;
        std::uint32_t at[kGroup], is_moving = 1;
        std::fill_n(at, kGroup, root);
        while (is_moving) {
            for (int step = 0; step < kSteps; ++step)
#pragma GCC unroll 8
                for (std::int64_t g = 0; g < kGroup; ++g) {
                    const PackedNode &node = nodes[at[g]];
                    const std::uint32_t column = node.link & kColumnMask, left = node.link >> kColumnBits;
                    const float x = values[column * kGroup + g];
                    if (are_equal<is_mixed>(x, node.split)) [[unlikely]]
                        return false;
                    if constexpr (is_mixed)
                        at[g] = left + (left != at[g] && goes_right(forest, n_numeric, at[g], x));
                    else
                        at[g] = left + __builtin_isgreaterequal(x, node.split);
                }
            is_moving = 0;
            for (const std::uint32_t node : at)
                is_moving |= nodes[node].link >> kColumnBits ^ node;
        }
        std::copy_n(at, kGroup, leaves);
        return true;
    }

    // Without missing values and categories, a quiet comparison, like that which tells the child: one instruction of
    // the CPU then serves both.
    template <bool is_mixed> static bool are_equal(float x, float split) {
        if constexpr (is_mixed)
            return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(split);
        else
            return !__builtin_islessgreater(x, split);
    }

    // Where an inner node sends x, which does not equal its split, by splits.hpp.
    static bool goes_right(const PackedForest &forest, std::int32_t n_numeric, std::uint32_t at, float x) {
        const PackedNode &node = forest.nodes[at];
        if (static_cast<std::int32_t>(node.link & kColumnMask) >= n_numeric)
            return category_goes_right(std::bit_cast<std::uint32_t>(x), std::bit_cast<std::uint32_t>(node.split));
        return x != x ? forest.missing_right[at / 32] >> at % 32 & 1 : !(x < node.split);
    }

    // The same for one row, with exact comparisons.
    std::uint32_t follow_exactly(const PackedForest &forest, std::uint32_t at, const float *values,
                                 std::int64_t number) const {
        for (;;) {
            const PackedNode &node = forest.nodes[at];
            const std::uint32_t column = node.link & kColumnMask, left = node.link >> kColumnBits;
            if (left == at)
                return at;
            const float x = values[column * kGroup];
            const bool is_close = x == node.split && static_cast<std::int32_t>(column) < trees_.n_numeric_;
            at = left + (is_close ? !(rows_.row(number)[trees_.originals_[column]] < forest.splits[at])
                                  : goes_right(forest, trees_.n_numeric_, at, x));
        }
    }

    const PackedTrees &trees_;
    const DenseRows<Value> &rows_;
    bool is_mixed_ = false; // whether a value is missing or a column categorical
    std::vector<std::int64_t> numbers_;
    std::vector<float> values_;
    std::vector<std::uint32_t> leaves_;
};

// The number of rows of a tile: less where else some threads would have none.
inline std::int64_t PackedTrees::shared_tile(std::int64_t n_rows, std::int64_t n_columns, int threads) const {
    constexpr std::int64_t kFewest = 128;
    const std::int64_t n_threads = usable_threads(threads);
    return std::min(sorted_tile(n_columns), std::max(kFewest, (n_rows + n_threads - 1) / n_threads));
}

// The numbers of the rows in the order of their leaves in the first tree, whose nodes are numbered depth first.
template <class Value>
std::vector<std::int64_t> PackedTrees::sorted_numbers(const DenseRows<Value> &rows, int threads) const {
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(rows.n_rows)), order(numbers.size());
    std::vector<std::uint32_t> leaves(numbers.size());
    std::iota(numbers.begin(), numbers.end(), 0);
    parallel_tiles(rows.n_rows, shared_tile(rows.n_rows, rows.n_columns, threads), threads, [&] {
        return [&, lockstep = Lockstep<Value>(*this, rows)](std::int64_t begin, std::int64_t end) mutable {
            lockstep.take(RowNumbers(numbers).subspan(begin, end - begin));
            std::copy_n(lockstep.descend(segments_[0], 0).begin(), end - begin, leaves.begin() + begin);
        };
    });
    std::vector<std::int64_t> places(static_cast<std::size_t>(starts_[1] + 1)); // node -> place of its next row
    for (const std::uint32_t leaf : leaves)
        ++places[leaf + 1];
    std::partial_sum(places.begin(), places.end(), places.begin());
    for (std::size_t r = 0; r < leaves.size(); ++r)
        order[places[leaves[r]]++] = static_cast<std::int64_t>(r);
    return order;
}

template <class Value, class Cell>
void PackedTrees::map_sorted(const DenseRows<Value> &rows, Cell *cells, int threads) const {
    const std::vector<std::int64_t> order = sorted_numbers(rows, threads);
    const auto n_trees = static_cast<std::int64_t>(tops_.size());
    parallel_tiles(rows.n_rows, shared_tile(rows.n_rows, rows.n_columns, threads), threads, [&] {
        return [&, lockstep = Lockstep<Value>(*this, rows)](std::int64_t begin, std::int64_t end) mutable {
            const RowNumbers numbers = RowNumbers(order).subspan(begin, end - begin);
            lockstep.take(numbers);
            for (const Segment &segment : segments_)
                for (std::int64_t tree = segment.first_tree; tree < segment.end_tree; ++tree) {
                    const std::uint32_t *cell_of = leaves_.data() + starts_[segment.first_tree];
                    const std::span<const std::uint32_t> leaves = lockstep.descend(segment, tree);
                    for (std::size_t k = 0; k < numbers.size(); ++k)
                        cells[numbers[k] * n_trees + tree] =
                            static_cast<Cell>(cell_of[leaves[k]] & ((1u << kNodeBits) - 1));
                }
        };
    });
}

} // namespace isokern
