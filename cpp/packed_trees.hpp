// Trees packed for descents.hpp: dense rows of few columns go down many of them at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "descents.hpp"
#include "rows.hpp"

namespace isokern {

class PackedTrees {
  public:
    PackedTrees() = default;

    // Nodes as in TreeMap. Where they do not fit into packed form, there are none.
    PackedTrees(const double *split, const std::int32_t *column, const std::int32_t *left,
                const std::vector<std::int64_t> &starts, std::int64_t n_columns, std::int64_t n_cells);

    bool are_none() const { return segments_.empty(); }

    // How many rows of so many columns to take down the trees together.
    std::int64_t tile(std::int64_t n_columns) const;

    // cells[r, i] = the leaf of tree i that row r falls into, for rows begin to end.
    template <class Value, class Cell> class Worker;

  private:
    // Trees whose nodes can be numbered together.
    struct Segment {
        std::int64_t first_tree, end_tree;
    };

    std::vector<PackedNode> nodes_; // links count from the first node of the segment
    std::vector<double> splits_;
    std::vector<std::uint32_t> leaves_; // of a leaf: tree of the segment << kNodeBits | cell
    std::vector<std::int64_t> starts_;
    std::vector<Segment> segments_;
};

template <class Value, class Cell> class PackedTrees::Worker {
  public:
    Worker(const PackedTrees &trees, const DenseRows<Value> &rows, Cell *cells)
        : trees_(trees), rows_(rows), cells_(cells) {}

    void operator()(std::int64_t begin, std::int64_t end) {
        const float *rounded = round(begin, end);
        const std::int64_t n_rows = end - begin;
        const std::int64_t n_together = std::max<std::int64_t>(1, kPlaces / n_rows);
        for (const Segment &segment : trees_.segments_)
            for (std::int64_t tree = segment.first_tree; tree < segment.end_tree; tree += n_together)
                descend(segment, tree, std::min(tree + n_together, segment.end_tree), begin, n_rows, rounded);
    }

  private:
    static constexpr std::int64_t kPlaces = 1024; // on their way together, if there are so many

    // The rows as float32, each number rounded to the nearest.
    const float *round(std::int64_t begin, std::int64_t end) {
        if constexpr (std::is_same_v<Value, float>)
            return rows_.row(begin);
        const Value *values = rows_.row(begin);
        rounded_.resize(static_cast<std::size_t>((end - begin) * rows_.n_columns));
        std::transform(values, values + rounded_.size(), rounded_.begin(),
                       [](Value value) { return static_cast<float>(value); });
        return rounded_.data();
    }

    void descend(const Segment &segment, std::int64_t tree, std::int64_t end_tree, std::int64_t first_row,
                 std::int64_t n_rows, const float *rounded) {
        const std::int64_t first_node = trees_.starts_[segment.first_tree];
        places_.resize(static_cast<std::size_t>((end_tree - tree) * n_rows + kPlacesAtOnce));
        ends_.resize(places_.size());
        std::int64_t n = 0;
        for (; tree < end_tree; ++tree)
            for (std::int64_t r = 0; r < n_rows; ++r)
                places_[n++] = static_cast<std::uint32_t>(r << kNodeBits | (trees_.starts_[tree] - first_node));
        descend_(trees_.nodes_.data() + first_node, trees_.splits_.data() + first_node, rounded, rows_.row(first_row),
                 rows_.n_columns, places_.data(), n, ends_.data());
        const std::uint32_t *leaves = trees_.leaves_.data() + first_node;
        const auto n_trees = static_cast<std::int64_t>(trees_.starts_.size()) - 1;
        Cell *cells = cells_ + first_row * n_trees + segment.first_tree;
        for (std::int64_t k = 0; k < n; ++k) {
            const std::uint32_t leaf = leaves[ends_[k] & kNodeMask];
            cells[(ends_[k] >> kNodeBits) * n_trees + (leaf >> kNodeBits)] = static_cast<Cell>(leaf & kNodeMask);
        }
    }

    static constexpr std::uint32_t kNodeMask = (1u << kNodeBits) - 1;

    static auto best() {
        if constexpr (std::is_same_v<Value, float>)
            return best_descents().floats;
        else
            return best_descents().doubles;
    }

    const PackedTrees &trees_;
    const DenseRows<Value> &rows_;
    Cell *cells_;
    Descents::Descend<Value> descend_ = best();
    std::vector<float> rounded_;
    std::vector<std::uint32_t> places_, ends_;
};

} // namespace isokern
