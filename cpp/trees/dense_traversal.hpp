// Vectorised (SIMD) traversal of many trees by many rows at once. In: packed trees, a tile of rows. Out: (row, leaf).
//
// Top levels: all rows pass the few nodes there. Each node is compared with a vector of rows (the tile is stored column
// by column), and bit operations on the results give each row's path: no gather, no branch.
//
// Below: memory latency dominates, so many traversals should be in flight; but paths differ in length. A work list
// holds the places of all traversals, (row, node) packed into 32 bits. All take a few steps, then those at leaves are
// removed and the list is compacted (stream compaction). A node takes eight bytes: its split rounded to float32, and a
// link. Rounding is monotonic, so the order of two rounded numbers is right unless they are equal; only then are the
// exact ones compared. Splits and values are rounded up: against a value that is a float32 number, a rounded split is
// as good as the exact one, so that rows of such numbers need no second comparison.
#pragma once

#include <cstdint>

namespace isokern {

constexpr int kColumnBits = 12, kNodeBits = 20; // of a packed node's link
constexpr int kRowBits = 12;                    // a place is row << kNodeBits | node
static_assert(kRowBits + kNodeBits == 32);
constexpr std::int64_t kPlacesAtOnce = 64; // places processed together; work lists have room for as many more
constexpr int kTopLevels = 4;
constexpr int kTopNodes = (1 << kTopLevels) - 1;

// Sends x to node link >> kColumnBits if x[link & (2^kColumnBits - 1)] < split, else to the node after it. A leaf
// links to itself, and its split is larger than all values of ordinary tiles, so that traversals that have arrived can
// keep stepping: kHuge, with the leaf's cell in the lowest kNodeBits bits. Tiles with larger values are mixed ones. The
// split of a categorical column holds the bits of its seed.
constexpr float kHuge = 0x1p127f;
struct PackedNode {
    float split;
    std::uint32_t link;
};

// The first kTopLevels levels of a tree as a complete binary tree in heap order: node k sends x to node 2 k + 1 or
// 2 k + 2. A leaf above the last level is repeated down to it.
struct TopNodes {
    float splits[kTopNodes];
    std::uint32_t columns[kTopNodes];
    std::uint32_t nodes[kTopNodes];     // their numbers among the packed nodes
    std::uint32_t below[kTopNodes + 1]; // packed nodes of the level below the top, from left to right
};

struct PackedForest {
    const PackedNode *nodes;
    const double *splits;               // the exact splits of the nodes
    const TopNodes *tops;               // by tree
    const std::uint32_t *missing_right; // bit per inner node: whether it sends missing values right
};

// A tile of at most 2^kRowBits rows. Numeric columns come first.
template <class Exact> struct RowTile {
    const float *columns; // the values rounded up to float32, [column][2^row_bits], padded to at least kLanes rows
    int row_bits;
    const Exact *exact; // the unrounded values, [row][original column]
    std::int64_t n_rows, n_columns;
    const std::int32_t *originals; // column -> its number in `exact`
    std::int32_t n_numeric;        // later columns hold the codes of categories, as integers
};
constexpr int kLaneBits = 4, kLanes = 1 << kLaneBits; // rows, or traversals, of a vector

struct DenseTraversals {
    // Traverses the first n_trees trees of the forest with all rows of the tile.
    //   out: ends, n_rows * n_trees places (row, leaf) in any order
    //   scratch: places; both lists have room for kPlacesAtOnce more
    template <class Exact>
    using Traverse = void (*)(const PackedForest &forest, std::int64_t n_trees, const RowTile<Exact> &rows,
                              std::uint32_t *places, std::uint32_t *ends);

    Traverse<float> floats;
    Traverse<double> doubles;
    // The same for mixed tiles: with missing values, categories (splits.hpp) or values of at least kHuge.
    Traverse<float> mixed_floats;
    Traverse<double> mixed_doubles;
};

// The implementation for the widest instruction set that this CPU supports.
const DenseTraversals &best_dense_traversals();

} // namespace isokern
