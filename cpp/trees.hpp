// Isolation trees: grown from samples of rows (grow.cpp), descended by rows (descend.cpp).
#pragma once

#include <cstdint>
#include <vector>

#include "column_numbers.hpp"
#include "packed_trees.hpp"
#include "rows.hpp"

namespace isokern {

// The nodes of all trees, one tree after the other. An inner node sends x to `left` if x[column] < split, else to
// left + 1, both counted from the tree's first node, which is its root. A leaf has left = ~cell.
struct Forest {
    std::vector<double> split;
    std::vector<std::int32_t> column;
    std::vector<std::int32_t> left;
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
    struct Turn { // a place where a row can leave the path of the all-zero row
        double split;
        std::int32_t tree;
        std::int32_t position; // how far from the root
        std::int32_t node;     // where a row goes that turns off here

        // Zero goes left of a positive split and right of any other.
        bool taken_by(double x) const { return split > 0.0 ? x >= split : x < split; }
    };
    template <class Rows, class Cell> class DenseWorker;
    template <class Rows, class Cell> class SparseWorker;
    template <class Value, class Cell> class DensifyingWorker;

    template <class Value, class Cell> void descend(const DenseRows<Value> &rows, Cell *cells, int threads) const;
    template <class Value, class Cell> void descend(const CsrRows<Value> &rows, Cell *cells, int threads) const;

    bool packed_serve_all() const;
    void number_features();
    void index_zero_paths();

    std::int64_t n_columns_;
    std::vector<std::int64_t> starts_;
    PackedTrees packed_; // for dense rows

    // For the rows that the packed trees do not serve. Features are the columns that occur in a split, numbered
    // densely.
    std::vector<Node> nodes_;
    ColumnNumbers features_;
    std::vector<std::int32_t> node_features_;
    std::vector<std::int64_t> turn_starts_; // feature -> its turns
    std::vector<Turn> turns_;
    std::vector<std::int32_t> zero_cells_; // of the all-zero row
};

} // namespace isokern
