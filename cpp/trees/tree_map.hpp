// Isolation trees (Liu, Ting and Zhou, 2008): growing them and mapping rows to their leaves.
//
// grow_trees takes rows, one sample of row numbers per tree and a seed, and returns a forest of binary trees with
// random axis-parallel splits (grow.cpp). TreeMap takes such a forest, and maps each row to the cell, that is the leaf,
// in which it ends in each tree (trees/tree_map.cpp). The cells are the non-zero entries of the kernel's one-hot
// feature map.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/raw_vector.hpp"
#include "common/rows.hpp"
#include "trees/packed_trees.hpp"
#include "trees/zero_paths.hpp"

namespace isokern {

// The nodes of all trees, concatenated. An inner node sends x to node `left` if x[column] < split, else to left + 1;
// both count from the tree's first node, the root. A leaf has left = ~cell. Missing values and categories: splits.hpp.
struct Forest {
    RawVector<double> split;
    RawVector<std::int32_t> column;
    RawVector<std::int32_t> left;
    RawVector<std::uint8_t> missing_right; // whether an inner node of a numeric column sends missing values right
    RawVector<std::int32_t> n_points;      // the number of sampled points in a node
    std::vector<std::int64_t> starts;      // n_trees + 1
};

// How trees grow.
struct GrowthRules {
    std::int64_t max_depth = -1; // negative: no limit
    std::uint64_t seed = 0;
    std::span<const std::int32_t> categorical; // columns that hold categories
    // In proportion to which columns are drawn, from 0 (never) to 1, the largest; null: all alike.
    const double *column_weights = nullptr;
    int threads = 1;
};

// Grows one tree on each sample. A node draws a column from those that are not constant among its points, uniformly or
// by weight, and a split uniformly between the minimum and the maximum there. It becomes a leaf if it holds one point
// or only equal points, or at max_depth. The cell of a leaf is the place of its first point in the sample.
//   in: rows, samples (n_trees x sample_size row numbers); number, which of the seed's trees each one is, or null if
//   they are the first ones      out: the forest
template <class Rows>
Forest grow_trees(const Rows &rows, const std::int64_t *samples, std::int64_t n_trees, std::int64_t sample_size,
                  const std::int64_t *number, const GrowthRules &rules);

// The arrays of a Forest. Children come after their parent.
struct ForestView {
    const double *split;
    const std::int32_t *column, *left;
    const std::uint8_t *missing_right;
    std::span<const std::int64_t> starts;
    std::int64_t n_cells; // of a tree; the cells of its leaves are below it
};

struct GrownForest {
    Forest forest;
    std::int64_t n_cells;              // the number of leaves of the largest tree
    std::vector<std::int32_t> parents; // n_trees x n_cells: the former cell that a cell is part of; -1 without a leaf
};

// Grows trees further: isolates the points of a new sample inside their leaves, as grow_trees would. Nodes keep their
// numbers, and new ones come after them. Leaves are numbered in the order of nodes. n_points counts the points of the
// new sample, and a leaf without any as one.
//   in: trees; samples (n_trees x sample_size row numbers) and the cells of their leaves
template <class Rows>
GrownForest grow_further(const ForestView &from, const Rows &rows, const std::int64_t *samples,
                         const std::int32_t *cells, std::int64_t sample_size, const GrowthRules &rules);

// A forest prepared for mapping rows. The constructor throws if a node points outside of its tree, columns or cells, or
// if the points of two children are not those of their parent.
class TreeMap {
  public:
    //   in: the arrays of a Forest; columns that hold categories (splits.hpp)
    TreeMap(const double *split, const std::int32_t *column, const std::int32_t *left,
            const std::uint8_t *missing_right, const std::int32_t *n_points, std::span<const std::int64_t> starts,
            std::span<const std::int32_t> categorical, std::int64_t n_columns, std::int64_t n_cells);

    std::int64_t n_trees() const { return static_cast<std::int64_t>(starts_.size()) - 1; }

    // cells[r, i] = the cell of the leaf of tree i in which row r ends.      out: cells, n_rows x n_trees
    template <class Rows, class Cell> void apply(const Rows &rows, Cell *cells, int threads) const;

  private:
    struct Node {
        double split;
        std::int32_t column;
        std::int32_t left;
        bool missing_right;
    };
    template <class Rows, class Cell> class DenseWorker;
    template <class Value, class Cell> class DensifyingWorker;

    template <class Value, class Cell> void map_rows(const DenseRows<Value> &rows, Cell *cells, int threads) const;
    template <class Value, class Cell> void map_rows(const CsrRows<Value> &rows, Cell *cells, int threads) const;

    bool can_write_out() const;
    bool sort_rows(std::int64_t n_rows) const;
    template <class Value> bool goes_right(const Node &node, Value value) const;
    template <class Value> bool follow_zero_paths(const CsrRows<Value> &rows) const;

    std::int64_t n_columns_;
    std::vector<bool> is_categorical_;
    bool has_categories_;
    std::vector<std::int64_t> starts_;
    PackedTrees packed_;
    std::vector<Node> nodes_; // for dense rows if the trees cannot be packed
    ZeroPaths zero_paths_;    // for sparse rows, if they can be faster there
};

} // namespace isokern
