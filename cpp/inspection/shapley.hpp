// Exact Shapley values of tree ensembles: what each column of a row adds to its score.
//
// In: trees with leaf values; rows; for the interventional values, background rows. Out: for each row, used column and
// output, the Shapley value of a game among the columns.
//
//  path-dependent: v(S) follows the row where a split's column is in S, else both children, weighted by their share of
//                  the node's sampled points (Lundberg, Erion and Lee, 2018: "Tree SHAP")
//  interventional: v(S) is the mean score of rows that have the columns in S from the row, the others from a background
//                  row (Janzing, Minorics and Blöbaum, 2020)
//
// Isolation trees are deep, so neither algorithm may be quadratic in the depth, or divide polynomials, which is
// unstable in deep trees. See path_dependent.cpp and interventional.cpp for theirs.
#pragma once

#include <cstdint>

#include "inspection/explained_trees.hpp"

namespace isokern {

//  shapley[r, j, c] += the path-dependent value of used column j for row r and output c
//   out: shapley, n_rows x n_features x n_outputs
template <class Rows>
void add_path_dependent(const ExplainedTrees &trees, const Rows &rows, double *shapley, int threads);

//  shapley[r, j, c] += the interventional value, the mean over all background rows
//   in: the values of all background rows, of which there must be one
template <class Rows>
void add_interventional(const ExplainedTrees &trees, const Rows &rows, const TileValues &background, double *shapley,
                        int threads);

//  scores[r, c] = the sum of the values of the leaves of row r      out: scores, n_rows x n_outputs
template <class Rows> void sum_leaves(const ExplainedTrees &trees, const Rows &rows, double *scores, int threads);

} // namespace isokern
