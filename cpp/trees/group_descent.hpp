// Descent of a group of similar rows through trees, node by node. In: packed trees, a group of rows. Out: their cells.
//
// A node is compared with all rows of the group at once: the values of a column lie side by side, so there is no
// gather, and the result is a bit set of the rows that go right. Similar rows share most of their paths, so few nodes
// have rows.
#pragma once

#include <cstdint>

#include "trees/dense_traversal.hpp"

namespace isokern {

constexpr std::int64_t kGroupRows = 64;  // bits of a word
constexpr std::int64_t kGroupTrees = 32; // at most traversed together, so that the latencies of their nodes overlap

template <class Exact> struct RowGroup {
    const float *values;           // [packed column][kGroupRows], rounded up to float32, or the codes of categories
    const Exact *const *exact;     // row -> its unrounded values, by original column
    const std::int32_t *originals; // packed column -> original column
    std::int32_t n_numeric;        // later columns hold categories
    std::int64_t n_rows;
    bool is_exact; // whether all numbers are float32 numbers
    bool is_mixed; // whether a value is missing or at least kHuge, or a column categorical
};

// The cells of a group, byte by byte in the order of memory: few bytes are written for a leaf, and cells of
// any width become rows by a transposition of bytes (group_layout.hpp).
struct GroupCells {
    std::uint8_t *bytes; // [tree][width][kGroupRows]
    int width;           // bytes of a cell
};

struct GroupDescents {
    //   in: the roots of at most kGroupTrees trees      out: cells
    template <class Exact>
    using Descend = void (*)(const PackedForest &forest, const std::uint32_t *roots, std::int64_t n_trees,
                             const RowGroup<Exact> &rows, const GroupCells &cells);

    Descend<float> floats;
    Descend<double> doubles;
};

// The implementation for the widest instruction set that this CPU supports.
const GroupDescents &best_group_descents();

} // namespace isokern
