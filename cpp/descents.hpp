// Many rows on their way down many trees at once, for whatever vector unit the CPU has.
//
// What waits in a tree is memory, so the more rows are on their way the better; but paths differ in length, and a group
// of rows would wait for its slowest. So the places where rows are, (row, node), stand in a list; all take a few steps,
// then those that have come to a leaf are taken out and the list closes up. Nodes are packed into eight bytes: a split
// rounded to float32, and where to go. Rounding keeps the order of any two numbers unless it makes them equal, and only
// then are the exact ones compared.
#pragma once

#include <cstdint>

namespace isokern {

constexpr int kColumnBits = 12, kNodeBits = 20; // of a packed node's link
constexpr int kRowBits = 12;                    // a place is row << kNodeBits | node
constexpr std::int64_t kPlacesAtOnce = 64;      // lists have room for so many more than there are places

// Sends x to the node link >> kColumnBits if x[link & (2^kColumnBits - 1)] < split, else to the one after it. A leaf
// sends everything to itself: its split is infinite.
struct PackedNode {
    float split;
    std::uint32_t link;
};

struct Descents {
    // Takes the rows at `places` down to leaves.
    //   in: rows, rounded to float32, and as they are (Exact), n_columns apart; nodes, and their exact splits
    //   in, changed: places, n      out: ends, the same rows at leaves, in any order
    template <class Exact>
    using Descend = void (*)(const PackedNode *nodes, const double *splits, const float *rows, const Exact *exact,
                             std::int64_t n_columns, std::uint32_t *places, std::int64_t n, std::uint32_t *ends);

    Descend<float> floats;
    Descend<double> doubles;
};

// The widest that this CPU runs.
const Descents &best_descents();

} // namespace isokern
