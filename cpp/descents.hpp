// Many rows on their way down many trees at once, for whatever vector unit the CPU has.
//
// The first levels of a tree are few nodes, and all rows are there: each node is compared with a vector of rows, and
// which of the comparisons count for a row is worked out from the results, without a look into memory. The values of a
// tile of rows stand column after column for that.
//
// Below, what waits in a tree is memory, so the more rows are on their way the better; but paths differ in length, and
// a group of rows would wait for its slowest. So the places where rows are, (row, node), stand in a list; all take a
// few steps, then those that have come to a leaf are taken out and the list closes up. Nodes are packed into eight
// bytes: a split rounded to float32, and where to go. Rounding keeps the order of any two numbers unless it makes them
// equal, and only then are the exact ones compared.
#pragma once

#include <cstdint>

namespace isokern {

constexpr int kColumnBits = 12, kNodeBits = 20; // of a packed node's link
constexpr int kRowBits = 12;                    // a place is row << kNodeBits | node
constexpr std::int64_t kPlacesAtOnce = 64;      // lists have room for so many more than there are places
constexpr int kTopLevels = 4;
constexpr int kTopNodes = (1 << kTopLevels) - 1;

// Sends x to the node link >> kColumnBits if x[link & (2^kColumnBits - 1)] < split, else to the one after it. A leaf
// sends everything to itself: its split is infinite.
struct PackedNode {
    float split;
    std::uint32_t link;
};

// A tree's first levels, made complete: what follows a leaf are leaves. Node k sends x to node 2 k + 1 or 2 k + 2.
struct TopNodes {
    float splits[kTopNodes];
    std::uint32_t columns[kTopNodes];
    std::uint32_t nodes[kTopNodes];     // where they are among the packed ones
    std::uint32_t below[kTopNodes + 1]; // the nodes of the next level, from left to right
};

struct PackedForest {
    const PackedNode *nodes;
    const double *splits; // of the nodes, exact
    const TopNodes *tops; // by tree
};

// Some rows, fewer than 2^kRowBits.
template <class Exact> struct RowTile {
    const float *columns; // the values rounded to float32, [column][2^row_bits]: at least kLanes rows
    int row_bits;
    const Exact *exact; // the values as they are, [row][column]
    std::int64_t n_rows, n_columns;
};
constexpr int kLaneBits = 4, kLanes = 1 << kLaneBits;

struct Descents {
    // Takes the rows down n_trees trees.
    //   out: ends, (row, leaf) in any order, n_rows * n_trees; places is scratch, both with room for kPlacesAtOnce more
    template <class Exact>
    using Descend = void (*)(const PackedForest &forest, std::int64_t n_trees, const RowTile<Exact> &rows,
                             std::uint32_t *places, std::uint32_t *ends);

    Descend<float> floats;
    Descend<double> doubles;
};

// The widest that this CPU runs.
const Descents &best_descents();

} // namespace isokern
