// Isolation trees: grown from samples of rows (grow.cpp), descended by rows (descend.cpp).
#pragma once

#include <cstdint>
#include <vector>

#include "packed_trees.hpp"
#include "raw_vector.hpp"
#include "rows.hpp"
#include "zero_paths.hpp"

namespace isokern {

// The nodes of all trees, one tree after the other. An inner node sends x to `left` if x[column] < split, else to
// left + 1, both counted from the tree's first node, which is its root. A leaf has left = ~cell.
struct Forest {
    RawVector<double> split;
    RawVector<std::int32_t> column;
    RawVector<std::int32_t> left;
    std::vector<std::int64_t> starts; // n_trees + 1
};

// Grows one tree on each sample: a column drawn uniformly from those not constant in the node, a split uniform between
// its minimum and maximum there, until every point is alone, equal points are left, or max_depth is reached (negative:
// no limit). The cell of a leaf is the place in the sample of its first point.
//   in: rows, samples (n_trees x sample_size row numbers), seed
template <class Rows>
Forest grow_trees(const Rows &rows, const std::int64_t *samples, std::int64_t n_trees, std::int64_t sample_size,
                  std::int64_t max_depth, std::uint64_t seed, int threads);

// A forest made ready for descending. Nodes that point outside of their tree, columns or cells are an error.
class TreeMap {
  public:
    TreeMap(const double *split, const std::int32_t *column, const std::int32_t *left, const std::int64_t *starts,
            std::int64_t n_trees, std::int64_t n_columns, std::int64_t n_cells);

    std::int64_t n_trees() const { return static_cast<std::int64_t>(starts_.size()) - 1; }

    // cells[r, i] = the leaf of tree i that row r falls into.      out: cells, n_rows x n_trees
    template <class Rows, class Cell> void apply(const Rows &rows, Cell *cells, int threads) const;

  private:
    struct Node {
        double split;
        std::int32_t column;
        std::int32_t left;
    };
    template <class Rows, class Cell> class DenseWorker;
    template <class Value, class Cell> class DensifyingWorker;

    template <class Value, class Cell> void descend(const DenseRows<Value> &rows, Cell *cells, int threads) const;
    template <class Value, class Cell> void descend(const CsrRows<Value> &rows, Cell *cells, int threads) const;

    bool can_write_out() const;
    template <class Value> bool follow_zero_paths(const CsrRows<Value> &rows) const;

    std::int64_t n_columns_;
    std::vector<std::int64_t> starts_;
    PackedTrees packed_;
    std::vector<Node> nodes_; // for dense rows where there are no packed trees
    ZeroPaths zero_paths_;    // for sparse rows where they are quicker
};

} // namespace isokern
