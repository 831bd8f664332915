// All scales of isolation trees from one descent: a row's leaf determines its cells at the coarser scales.
//
// In: a forest (trees/tree_map.hpp), the sample size psi and the number of scales L. Out: how many cells each scale of
// each tree has; the cells of each leaf at all scales; from the leaves of rows, their cells at all scales.
//
//  cell(x, l) = the first node v on the path of x with n_points(v) <= psi / 4^(l + 1), or its leaf if there is none
//  cell(x, L - 1) = its leaf
// Scale 0 is the coarsest. Each scale numbers its own cells from 0, in the order of the nodes; the finest keeps the
// numbers of the leaves.
#pragma once

#include <cstdint>
#include <span>

namespace isokern {

// Nodes as in TreeMap. The functions throw if a node points outside of its tree or cells.
struct ScaledTrees {
    const std::int32_t *left;
    const std::int32_t *n_points;
    std::span<const std::int64_t> starts; // n_trees + 1
    std::int64_t n_cells;                 // of the finest scale: psi
    std::int64_t n_scales;

    std::int64_t n_trees() const { return static_cast<std::int64_t>(starts.size()) - 1; }
};

//  sizes[i, l] = the number of cells of tree i at scale l      out: sizes, n_trees x n_scales
void count_scale_cells(const ScaledTrees &trees, std::int64_t *sizes);

//  paths[i, leaf, l] = the cell of a leaf of tree i at scale l      out: paths, n_trees x n_cells x n_scales
// Entries of cells without a leaf are not written: a tree has fewer leaves if points are equal or its depth is limited.
template <class Cell> void find_paths(const ScaledTrees &trees, Cell *paths);

//  cells[r, i, l] = paths[i, leaves[r, i], l]
//  in: leaves, n_rows x n_trees; paths, n_trees x n_cells x n_scales      out: cells, n_rows x n_trees x n_scales
// Throws if a leaf is not below n_cells.
template <class Cell>
void expand_leaves(const Cell *leaves, std::int64_t n_rows, const Cell *paths, std::int64_t n_trees,
                   std::int64_t n_cells, std::int64_t n_scales, Cell *cells, int threads);

} // namespace isokern
