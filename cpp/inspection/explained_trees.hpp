// Trees with values in their leaves, and tiles of rows in the form in which explanations read them.
//
// In: the arrays of a forest, a table of leaf values, the columns that occur in splits. Out: which side of a split a
// value goes to; the values of a tile of rows, column by column. Columns are numbered by their place among those that
// occur in splits, which are few beside the millions of columns that sparse rows may have.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "common/rows.hpp"
#include "trees/column_ranks.hpp"
#include "trees/splits.hpp"

namespace isokern {

// The arrays of a forest (src/isokern/forest.py): nodes and leaves are numbered through all trees. Node k sends x to
// left[k] if x[column[k]] < split[k], else to left[k] + 1; a leaf has left = ~leaf. Missing values and categories are
// as in trees/splits.hpp.
struct LeafForest {
    const double *split;
    const std::int32_t *column;
    const std::int64_t *left;
    const std::uint8_t *missing_right;
    const std::int32_t *n_points;         // the number of sampled points in a node
    std::span<const std::int64_t> starts; // n_trees + 1
    const double *values;                 // n_leaves x n_outputs
    std::int64_t n_leaves, n_outputs, n_columns;
};

// A score is the sum over the trees of the values of a row's leaves.
class ExplainedTrees {
  public:
    //   in: columns that hold categories; used, the columns that occur in splits
    // Throws if a node points outside of its tree, columns or leaves, has not one parent, or not the points of its
    // children, and if `used` lacks a column.
    ExplainedTrees(const LeafForest &forest, std::span<const std::int32_t> categorical,
                   std::span<const std::int32_t> used);

    std::int64_t n_trees() const { return std::ssize(forest.starts) - 1; }
    std::int64_t n_features() const { return ranks.size(); }

    // The values of a leaf, by the `left` of its node.
    const double *leaf(std::int64_t left) const { return forest.values + ~left * forest.n_outputs; }

    // Whether a node sends a value to its right child.
    bool goes_right(std::int64_t node, double value) const {
        if (is_categorical[feature[node]])
            return category_goes_right(category_code(value), static_cast<std::uint32_t>(forest.split[node]));
        return std::isnan(value) ? forest.missing_right[node] != 0 : !(value < forest.split[node]);
    }

    LeafForest forest;
    ColumnRanks ranks;                        // of the used columns
    std::vector<std::int32_t> feature;        // by node: the number of its column; 0 for leaves
    std::vector<std::uint8_t> is_categorical; // by feature
};

// The values of some rows in the columns that occur in splits, [column][row]. Columns in which all rows are zero share
// one list of zeros, so memory follows the stored values of sparse rows.
class TileValues {
  public:
    explicit TileValues(std::int64_t n_features) : slot_of_(static_cast<std::size_t>(n_features)) {}

    template <class Rows> void take(const Rows &rows, std::int64_t begin, std::int64_t end, const ColumnRanks &ranks) {
        std::fill(slot_of_.begin(), slot_of_.end(), 0);
        width_ = end - begin;
        values_.assign(static_cast<std::size_t>(width_), 0.0); // slot 0
        for (std::int64_t r = begin; r < end; ++r)
            for_each_nonzero(rows, r, [&](std::int32_t column, double value) {
                const std::int32_t feature = ranks.find(column);
                if (feature >= 0)
                    values_[slot(feature) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(r - begin)] =
                        value;
            });
    }

    std::int64_t n_rows() const { return width_; }

    // The values of all rows of the tile in a column.
    const double *of(std::int32_t feature) const {
        return values_.data() + static_cast<std::int64_t>(slot_of_[feature]) * width_;
    }

  private:
    std::size_t slot(std::int32_t feature) {
        if (slot_of_[feature] == 0) {
            slot_of_[feature] = static_cast<std::int32_t>(values_.size() / static_cast<std::size_t>(width_));
            values_.resize(values_.size() + static_cast<std::size_t>(width_));
        }
        return static_cast<std::size_t>(slot_of_[feature]);
    }

    std::int64_t width_ = 0;
    std::vector<std::int32_t> slot_of_; // by feature
    std::vector<double> values_;        // [slot][row]
};

} // namespace isokern
