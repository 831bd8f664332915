// Packs trees into eight bytes per node for the vectorised traversal of trees/dense_traversal.hpp.
//
// In: the nodes of a forest; then a tile of dense rows. Out: the cells of the rows in all trees. Node numbers have 20
// bits, so the forest is cut into segments of consecutive trees with at most 2^20 nodes and 2^12 trees, which are
// numbered together. Trees are traversed in groups, so that about 2048 places are on the work list at a time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "common/raw_vector.hpp"
#include "common/rows.hpp"
#include "trees/dense_traversal.hpp"
#include "trees/splits.hpp"

namespace isokern {

class PackedTrees {
  public:
    PackedTrees() = default;

    // Nodes as in TreeMap. If columns, cells or nodes of a tree are too many for the packed format, are_none() is true.
    PackedTrees(const double *split, const std::int32_t *column, const std::int32_t *left,
                const std::vector<std::int64_t> &starts, const std::uint8_t *missing_right,
                const std::vector<bool> &is_categorical, std::int64_t n_cells);

    bool are_none() const { return segments_.empty(); }

    // The number of rows that should be traversed together.
    std::int64_t tile(std::int64_t n_columns) const;

    // Maps tiles of rows to cells; owns the scratch buffers of one thread.
    template <class Value, class Cell> class Mapper;

    // Maps many rows, in groups of similar ones (sorted_rows.hpp).      out: cells, n_rows x n_trees
    template <class Value, class Cell> void map_sorted(const DenseRows<Value> &rows, Cell *cells, int threads) const;

  private:
    template <class Value, class Cell> class GroupMapper;

    // Consecutive trees whose nodes are numbered together.
    struct Segment {
        std::int64_t first_tree, end_tree;
        std::int64_t first_word; // of its nodes in missing_right_
    };

    void order_columns(const std::vector<bool> &is_categorical);
    void pack(const double *split, const std::int32_t *column, const std::int32_t *left, const Segment &segment,
              std::int64_t tree);
    void note_missing(const Segment &segment, const std::uint8_t *missing_right);
    std::int64_t trees_together() const;
    std::int64_t sorted_tile(std::int64_t n_rows, std::int64_t n_columns, int threads) const;
    template <class Value> std::vector<std::uint32_t> first_leaves(const DenseRows<Value> &rows, int threads) const;
    template <class Value> std::vector<std::int64_t> sorted_numbers(const DenseRows<Value> &rows, int threads) const;
    TopNodes top_of(std::int64_t tree, std::int64_t first_node) const;

    RawVector<PackedNode> nodes_; // links count from the first node of the segment
    RawVector<double> splits_;    // exact; infinite for leaves
    std::vector<TopNodes> tops_;
    RawVector<std::uint32_t> leaves_; // leaf -> tree within the segment << kNodeBits | cell; 0 for inner nodes
    std::vector<std::int64_t> starts_;
    std::vector<Segment> segments_;
    std::vector<std::int32_t> originals_; // packed column -> its number in rows; numeric columns first
    std::vector<std::int32_t> packed_;    // the inverse
    std::int32_t n_numeric_ = 0;
    std::vector<std::uint32_t> missing_right_; // bit sets of the segments
};

template <class Value, class Cell> class PackedTrees::Mapper {
  public:
    explicit Mapper(const PackedTrees &trees) : trees_(trees) {}

    // cells[r, i] = the cell of the leaf of tree i in which row r ends, for at most 2^kRowBits rows.
    void operator()(const DenseRows<Value> &rows, Cell *cells) {
        bool is_mixed = false;
        const RowTile<Value> tile = turn(rows, is_mixed);
        const auto n_all = static_cast<std::int64_t>(trees_.tops_.size());
        const std::int64_t n_together = std::clamp<std::int64_t>(kPlaces / rows.n_rows, 1, n_all);
        places_.resize(static_cast<std::size_t>(n_together * rows.n_rows + kPlacesAtOnce));
        ends_.resize(places_.size());
        for (const Segment &segment : trees_.segments_)
            for (std::int64_t tree = segment.first_tree; tree < segment.end_tree; tree += n_together) {
                const std::int64_t n_trees = std::min(n_together, segment.end_tree - tree);
                const std::int64_t first_node = trees_.starts_[segment.first_tree];
                const PackedForest forest{trees_.nodes_.data() + first_node, trees_.splits_.data() + first_node,
                                          trees_.tops_.data() + tree,
                                          trees_.missing_right_.data() + segment.first_word};
                best(is_mixed)(forest, n_trees, tile, places_.data(), ends_.data());
                write(n_trees * rows.n_rows, segment, cells);
            }
    }

  private:
    static constexpr std::int64_t kPlaces = 2048; // about how many places the work list holds
    static constexpr std::uint32_t kNodeMask = (1u << kNodeBits) - 1;

    // Transposes the rows:  columns_[j, r] = rows[r, originals[j]], rounded up to float32, or a category's code
    //   out: is_mixed, whether a value is missing or at least kHuge, or a column categorical
    RowTile<Value> turn(const DenseRows<Value> &rows, bool &is_mixed) {
        const int row_bits = std::max<int>(kLaneBits, std::bit_width(static_cast<std::uint64_t>(rows.n_rows - 1)));
        columns_.resize(std::max(columns_.size(), static_cast<std::size_t>(rows.n_columns << row_bits)));
        const std::int32_t *originals = trees_.originals_.data(), n_numeric = trees_.n_numeric_;
        bool is_special = false;
        for (std::int64_t r = 0; r < rows.n_rows; ++r) {
            const Value *row = rows.row(r);
            for (std::int64_t j = 0; j < n_numeric; ++j) {
                const Value value = row[originals[j]];
                columns_[(j << row_bits) + r] = round_up(value);
                is_special |= !(columns_[(j << row_bits) + r] < kHuge);
            }
            for (std::int64_t j = n_numeric; j < rows.n_columns; ++j)
                columns_[(j << row_bits) + r] = std::bit_cast<float>(category_code(row[originals[j]]));
        }
        is_mixed = n_numeric < rows.n_columns || is_special;
        return {columns_.data(), row_bits, rows.values, rows.n_rows, rows.n_columns, originals, n_numeric};
    }

    // Scatters the n places (row, leaf) in ends_ to cells.
    void write(std::int64_t n, const Segment &segment, Cell *cells) const {
        const std::uint32_t *leaves = trees_.leaves_.data() + trees_.starts_[segment.first_tree];
        const auto n_trees = static_cast<std::int64_t>(trees_.starts_.size()) - 1;
        for (std::int64_t k = 0; k < n; ++k) {
            const std::uint32_t leaf = leaves[ends_[k] & kNodeMask];
            Cell *row = cells + (ends_[k] >> kNodeBits) * n_trees;
            row[segment.first_tree + (leaf >> kNodeBits)] = static_cast<Cell>(leaf & kNodeMask);
        }
    }

    static DenseTraversals::Traverse<Value> best(bool is_mixed) {
        const DenseTraversals &all = best_dense_traversals();
        if constexpr (std::is_same_v<Value, float>)
            return is_mixed ? all.mixed_floats : all.floats;
        else
            return is_mixed ? all.mixed_doubles : all.doubles;
    }

    const PackedTrees &trees_;
    std::vector<float> columns_;
    std::vector<std::uint32_t> places_, ends_;
};

} // namespace isokern
