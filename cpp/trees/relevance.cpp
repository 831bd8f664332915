// Adds up the gains of splits (relevance.hpp). In: trees, leaves of rows, targets. Out: gains and visits by column.
//
// Leaves collect the number, the sums and the squares of their rows' targets; inner nodes get those of their children,
// which come after them.
#include "trees/relevance.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace isokern {
namespace {

// The targets of the rows in each node of a tree.
class NodeTargets {
  public:
    NodeTargets(std::int64_t n_nodes, std::int64_t n_targets)
        : n_targets_(n_targets), counts_(static_cast<std::size_t>(n_nodes)), squares_(counts_.size()),
          sums_(static_cast<std::size_t>(n_nodes * n_targets)) {}

    void add_row(std::int64_t node, const double *targets) {
        counts_[node] += 1.0;
        for (std::int64_t k = 0; k < n_targets_; ++k) {
            squares_[node] += targets[k] * targets[k];
            sums_[node * n_targets_ + k] += targets[k];
        }
    }

    void add_node(std::int64_t node, std::int64_t other) {
        counts_[node] += counts_[other];
        squares_[node] += squares_[other];
        for (std::int64_t k = 0; k < n_targets_; ++k)
            sums_[node * n_targets_ + k] += sums_[other * n_targets_ + k];
    }

    double n_rows(std::int64_t node) const { return counts_[node]; }

    //  SS = sum of squares - |sum|^2 / n
    double sum_of_squares(std::int64_t node) const {
        const double *sums = sums_.data() + node * n_targets_;
        return squares_[node] - std::inner_product(sums, sums + n_targets_, sums, 0.0) / counts_[node];
    }

  private:
    std::int64_t n_targets_;
    std::vector<double> counts_, squares_, sums_;
};

} // namespace

template <class Cell>
void split_gains(const LabelledLeaves &trees, const Cell *leaves, std::span<double> gains, std::span<double> visits) {
    const std::int64_t n_trees = std::ssize(trees.starts) - 1;
    std::vector<std::int64_t> leaf_of(static_cast<std::size_t>(trees.n_cells));
    for (std::int64_t i = 0; i < n_trees; ++i) {
        const std::int64_t first = trees.starts[i], n_nodes = trees.starts[i + 1] - first;
        const std::int32_t *left = trees.left + first, *column = trees.column + first;
        std::fill(leaf_of.begin(), leaf_of.end(), -1);
        for (std::int64_t k = 0; k < n_nodes; ++k) {
            const bool is_leaf = left[k] < 0;
            if (is_leaf ? ~left[k] >= trees.n_cells
                        : left[k] <= k || left[k] >= n_nodes - 1 || column[k] < 0 || column[k] >= std::ssize(gains))
                throw std::invalid_argument("a tree's nodes must point to existing columns, later nodes and cells.");
            if (is_leaf)
                leaf_of[~left[k]] = k;
        }
        NodeTargets targets(n_nodes, trees.n_targets);
        for (std::int64_t r = 0; r < trees.n_rows; ++r) {
            const std::int64_t cell = leaves[r * n_trees + i];
            if (cell >= trees.n_cells || leaf_of[cell] < 0)
                throw std::invalid_argument("leaves must be those of the trees.");
            targets.add_row(leaf_of[cell], trees.targets + r * trees.n_targets);
        }
        for (std::int64_t k = n_nodes; k-- > 0;) {
            if (left[k] < 0)
                continue;
            targets.add_node(k, left[k]);
            targets.add_node(k, left[k] + 1);
            const double n = targets.n_rows(k);
            if (targets.n_rows(left[k]) == 0.0 || targets.n_rows(left[k] + 1) == 0.0)
                continue;
            const double whole = targets.sum_of_squares(k);
            gains[column[k]] +=
                whole - targets.sum_of_squares(left[k]) - targets.sum_of_squares(left[k] + 1) - whole / (n - 1.0);
            visits[column[k]] += n;
        }
    }
}

template void split_gains(const LabelledLeaves &, const std::uint8_t *, std::span<double>, std::span<double>);
template void split_gains(const LabelledLeaves &, const std::uint16_t *, std::span<double>, std::span<double>);
template void split_gains(const LabelledLeaves &, const std::uint32_t *, std::span<double>, std::span<double>);

} // namespace isokern
