// How much the splits of each column of isolation trees tell about the targets of rows: the mean decrease in impurity
// of totally randomised trees (Louppe et al., 2013), without its bias.
//
// In: trees, the leaves of rows, the rows' targets. Out: by column, how much its splits reduce the sum of squares of
// the targets, and how many rows passed them.
//  SS(v) = sum over the rows in node v, and over the targets' columns, of (target - mean of the node)^2
//  gain(v) = SS(v) - SS(left) - SS(right) - SS(v) / (n(v) - 1)
// The last term is what a split that has nothing to do with the targets gains on average. So a column that tells
// nothing has a gain of 0 on average, below or above it by chance. With one-hot targets, SS(v) / n(v) is the Gini
// impurity.
#pragma once

#include <cstdint>
#include <span>

namespace isokern {

struct LabelledLeaves {
    const std::int32_t *column, *left;    // nodes as in Forest
    std::span<const std::int64_t> starts; // n_trees + 1
    std::int64_t n_cells;
    const double *targets; // n_rows x n_targets
    std::int64_t n_rows, n_targets;
};

//   in: leaves, n_rows x n_trees      out: gains, visits, by column
// Throws if a node points outside of its tree or columns, or if a leaf is not one of its tree.
template <class Cell>
void split_gains(const LabelledLeaves &trees, const Cell *leaves, std::span<double> gains, std::span<double> visits);

} // namespace isokern
