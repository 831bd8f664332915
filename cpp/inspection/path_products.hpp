// The inner loop of path-dependent Shapley values, for each SIMD instruction set.
//
// In: a tree as a list of nodes in depth-first order; which of eight rows satisfy the split above each node; quadrature
// points. Out: Shapley values of the eight rows, added up. The loop is compiled once per instruction set
// (path_products_kernel.cpp) and chosen at run time; results are the same on all CPUs. path_dependent.cpp has the
// mathematics.
#pragma once

#include <cstdint>

namespace isokern {

constexpr std::int64_t kRowLanes = 8; // rows that are explained together

// A node below the root, in depth-first order.
struct PathNode {
    double share;          // p: the product of the shares of points over the splits of its column on the path so far
    std::int64_t leaf;     // the number of a leaf, else -1
    std::int32_t node;     // its number in the tree
    std::int32_t level;    // its depth; the root has 0
    std::int32_t ancestor; // level of the last node before it on the path whose split above has the same column, or 0
    std::int32_t feature;  // number of the column of the split above it
};

// Points and weights of a quadrature on [0, 1].
struct Quadrature {
    std::int64_t n;
    const double *at;           // t
    const double *rest;         // 1 - t
    const double *inverse_rest; // 1 / (1 - t)
    const double *weight;       // they sum to 1
};

// Buffers of one thread, for all levels of a path.
struct PathBuffers {
    double *inverse;       // [level][n]
    double *product;       // [level][n][kRowLanes]
    double *sum;           // [level][n_outputs][n][kRowLanes]
    double *share;         // [level]
    std::uint8_t *is_open; // [level]: the rows that satisfy all splits of the column so far
    std::int64_t *place;   // [level]: the index of the path's node
};

struct PathProducts {
    //  shapley[feature, first_output + c, lane] += the values of one tree
    //   in: satisfied[node], a bit for each row that goes from the node's parent to it; values, `stride` of each leaf
    //   stride: outputs of a leaf, and of a feature, of which n_outputs are explained
    void (*add_tree)(const PathNode *nodes, std::int64_t n_nodes, const std::uint8_t *satisfied, const double *values,
                     std::int64_t n_outputs, std::int64_t stride, const Quadrature &quadrature,
                     const PathBuffers &buffers, double *shapley);
};

// The implementation for the widest instruction set that this CPU supports.
const PathProducts &best_path_products();

} // namespace isokern
