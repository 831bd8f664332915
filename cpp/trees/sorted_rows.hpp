// Maps many dense rows to the cells of packed trees, in groups of similar rows.
//
// In: packed trees, dense rows. Out: the cells of the rows in all trees. Rows are sorted by their leaf in the first
// tree (counting sort), so that neighbours are similar and share most of their paths in the other trees too. Groups of
// neighbours are copied by column (group_layout.hpp) and descend together (group_descent.hpp). If the trees do not fit
// into the inner caches, a tile of many groups goes down a few trees at a time, so that each tree is read less often.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <span>
#include <type_traits>
#include <vector>

#include "common/rows.hpp"
#include "common/threads.hpp"
#include "trees/group_descent.hpp"
#include "trees/group_layout.hpp"
#include "trees/packed_trees.hpp"
#include "trees/splits.hpp"

namespace isokern {

using RowNumbers = std::span<const std::int64_t>;

// Maps tiles of rows; owns the scratch buffers of one thread.
template <class Value, class Cell> class PackedTrees::GroupMapper {
  public:
    //   in: order, the numbers of all rows      out: cells, n_rows x n_trees
    GroupMapper(const PackedTrees &trees, const DenseRows<Value> &rows, RowNumbers order, Cell *cells)
        : trees_(trees), rows_(rows), order_(order), cells_(cells) {}

    // Maps rows order[begin] .. order[end - 1].
    void operator()(std::int64_t begin, std::int64_t end) {
        take(begin, end);
        const std::int64_t most = trees_.trees_together();
        for (const Segment &segment : trees_.segments_)
            for (std::int64_t tree = segment.first_tree; tree < segment.end_tree; tree += most)
                for (std::size_t g = 0; g < groups_.size(); ++g)
                    map(segment, tree, std::min(tree + most, segment.end_tree), groups_[g],
                        order_.data() + begin + static_cast<std::int64_t>(g) * kGroupRows);
    }

  private:
    // Copies the rows, in groups:  values_[group, j, r] = its row r in packed column j
    void take(std::int64_t begin, std::int64_t end) {
        const std::int64_t n_groups = (end - begin + kGroupRows - 1) / kGroupRows;
        values_.resize(static_cast<std::size_t>(n_groups * kGroupRows * rows_.n_columns));
        exact_.resize(static_cast<std::size_t>(n_groups * kGroupRows + kRowsAhead));
        for (std::int64_t r = 0; r < std::ssize(exact_); ++r) // the last row fills up its group
            exact_[r] = rows_.row(order_[std::min(begin + r, rows_.n_rows - 1)]);
        groups_.clear();
        for (std::int64_t g = 0; g < n_groups; ++g)
            groups_.push_back(taken(exact_.data() + g * kGroupRows, std::min(kGroupRows, end - begin - g * kGroupRows),
                                    values_.data() + g * kGroupRows * rows_.n_columns));
    }

    // Copies the rows of a group of n rows.      out: values
    RowGroup<Value> taken(const Value *const *rows, std::int64_t n, float *values) const {
        const std::int32_t *originals = trees_.originals_.data(), n_numeric = trees_.n_numeric_;
        NumberKinds kinds;
        if constexpr (std::is_same_v<Value, float>)
            kinds = best_group_layouts().take_floats(rows, rows_.n_columns, trees_.packed_.data(), values);
        else
            kinds = best_group_layouts().take_doubles(rows, rows_.n_columns, trees_.packed_.data(), values);
        for (std::int64_t j = n_numeric; j < rows_.n_columns; ++j)
            for (std::int64_t r = 0; r < n; ++r)
                values[j * kGroupRows + r] = std::bit_cast<float>(category_code(rows[r][originals[j]]));
        return {
            values, rows, originals, n_numeric, n, kinds.are_exact, !kinds.are_ordinary || n_numeric < rows_.n_columns};
    }

    // Maps a group, whose rows have these numbers, by trees begin to end of a segment.
    void map(const Segment &segment, std::int64_t begin, std::int64_t end, const RowGroup<Value> &group,
             const std::int64_t *numbers) {
        const std::int64_t first_node = trees_.starts_[segment.first_tree], n = end - begin;
        const auto n_trees = static_cast<std::int64_t>(trees_.tops_.size());
        const PackedForest forest{trees_.nodes_.data() + first_node, trees_.splits_.data() + first_node, nullptr,
                                  trees_.missing_right_.data() + segment.first_word};
        std::uint32_t roots[kGroupTrees];
        for (std::int64_t i = 0; i < n; ++i)
            roots[i] = static_cast<std::uint32_t>(trees_.starts_[begin + i] - first_node);
        if constexpr (std::is_same_v<Value, float>)
            best_group_descents().floats(forest, roots, n, group, {found_, sizeof(Cell)});
        else
            best_group_descents().doubles(forest, roots, n, group, {found_, sizeof(Cell)});
        std::uint8_t *rows[kGroupRows];
        for (std::int64_t r = 0; r < group.n_rows; ++r)
            rows[r] = reinterpret_cast<std::uint8_t *>(cells_ + numbers[r] * n_trees + begin);
        best_group_layouts().write(found_, n * static_cast<std::int64_t>(sizeof(Cell)), group.n_rows, rows);
    }

    const PackedTrees &trees_;
    const DenseRows<Value> &rows_;
    RowNumbers order_;
    Cell *cells_;
    std::vector<float> values_;
    std::vector<const Value *> exact_;
    std::vector<RowGroup<Value>> groups_;
    std::uint8_t found_[kGroupTrees * sizeof(Cell) * kGroupRows]; // cells of a group in some trees
};

// The nodes of the first tree in which the rows end. They only serve to sort, so missing values and categories are
// compared like numbers.
template <class Value>
std::vector<std::uint32_t> PackedTrees::first_leaves(const DenseRows<Value> &rows, int threads) const {
    constexpr std::int64_t kTogether = 16;             // rows in lockstep
    constexpr std::int64_t kLine = 64 / sizeof(Value); // values of a cache line
    constexpr std::int64_t kNarrow = 16 * kLine;
    std::vector<std::uint32_t> leaves(static_cast<std::size_t>(rows.n_rows));
    parallel_tiles(rows.n_rows, kTogether, threads, [&] {
        return [&](std::int64_t begin, std::int64_t end) {
            // Which values are read is known too late to hide the latency of memory, so narrow rows are fetched whole.
            const std::int64_t fetched = rows.n_columns <= kNarrow ? std::min(end + kTogether, rows.n_rows) : end;
            for (const Value *x = rows.row(end); x < rows.row(fetched); x += kLine)
                __builtin_prefetch(x);
            for (bool is_moving = true; is_moving;) {
                is_moving = false;
                for (std::int64_t r = begin; r < end; ++r) {
                    const std::uint32_t at = leaves[r], link = nodes_[at].link, left = link >> kColumnBits;
                    const Value x = rows.row(r)[originals_[link & ((1u << kColumnBits) - 1)]];
                    leaves[r] = left + static_cast<std::uint32_t>((left != at) & (x >= splits_[at]));
                    is_moving |= left != at;
                }
            }
        };
    });
    return leaves;
}

// The numbers of the rows in the order of their leaves in the first tree, whose nodes are numbered depth first. Sorting
// by two or four trees changed the time little.
template <class Value>
std::vector<std::int64_t> PackedTrees::sorted_numbers(const DenseRows<Value> &rows, int threads) const {
    const std::vector<std::uint32_t> leaves = first_leaves(rows, threads);
    std::vector<std::int64_t> places(static_cast<std::size_t>(starts_[1] + 1)); // node -> place of its next row
    for (const std::uint32_t leaf : leaves)
        ++places[leaf + 1];
    std::partial_sum(places.begin(), places.end(), places.begin());
    std::vector<std::int64_t> order(leaves.size());
    for (std::size_t r = 0; r < leaves.size(); ++r)
        order[places[leaves[r]]++] = static_cast<std::int64_t>(r);
    return order;
}

template <class Value, class Cell>
void PackedTrees::map_sorted(const DenseRows<Value> &rows, Cell *cells, int threads) const {
    const std::vector<std::int64_t> order = sorted_numbers(rows, threads);
    parallel_tiles(rows.n_rows, sorted_tile(rows.n_rows, rows.n_columns, threads), threads,
                   [&] { return GroupMapper<Value, Cell>(*this, rows, order, cells); });
}

} // namespace isokern
