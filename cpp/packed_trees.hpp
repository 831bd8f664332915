// Trees packed for descents.hpp: dense rows of few columns go down many of them at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
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

    // Takes rows down the trees; has scratch space of its own.
    template <class Value, class Cell> class Descent;

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

template <class Value, class Cell> class PackedTrees::Descent {
  public:
    explicit Descent(const PackedTrees &trees) : trees_(trees) {}

    // cells[r, i] = the leaf of tree i that row r falls into, for fewer than 2^kRowBits rows.
    void operator()(const DenseRows<Value> &rows, Cell *cells) {
        const float *rounded = round(rows);
        const std::int64_t n_together = std::max<std::int64_t>(1, kPlaces / rows.n_rows);
        for (const Segment &segment : trees_.segments_)
            for (std::int64_t tree = segment.first_tree; tree < segment.end_tree; tree += n_together) {
                const std::int64_t n = enter(rows.n_rows, segment, tree, std::min(tree + n_together, segment.end_tree));
                const std::int64_t first_node = trees_.starts_[segment.first_tree];
                descend_(trees_.nodes_.data() + first_node, trees_.splits_.data() + first_node, rounded, rows.values,
                         rows.n_columns, places_.data(), n, ends_.data());
                write(n, segment, cells);
            }
    }

  private:
    static constexpr std::int64_t kPlaces = 1024; // on their way together, if there are so many
    static constexpr std::uint32_t kNodeMask = (1u << kNodeBits) - 1;

    // The rows as float32, each number rounded to the nearest.
    const float *round(const DenseRows<Value> &rows) {
        if constexpr (std::is_same_v<Value, float>)
            return rows.values;
        rounded_.resize(static_cast<std::size_t>(rows.n_rows * rows.n_columns));
        std::transform(rows.values, rows.values + rounded_.size(), rounded_.begin(),
                       [](Value value) { return static_cast<float>(value); });
        return rounded_.data();
    }

    // Puts all rows at the roots of some trees; returns how many places that makes.
    std::int64_t enter(std::int64_t n_rows, const Segment &segment, std::int64_t tree, std::int64_t end_tree) {
        places_.resize(static_cast<std::size_t>((end_tree - tree) * n_rows + kPlacesAtOnce));
        ends_.resize(places_.size());
        std::int64_t n = 0;
        for (; tree < end_tree; ++tree) {
            const std::int64_t root = trees_.starts_[tree] - trees_.starts_[segment.first_tree];
            for (std::int64_t r = 0; r < n_rows; ++r)
                places_[n++] = static_cast<std::uint32_t>(r << kNodeBits | root);
        }
        return n;
    }

    void write(std::int64_t n, const Segment &segment, Cell *cells) const {
        const std::uint32_t *leaves = trees_.leaves_.data() + trees_.starts_[segment.first_tree];
        const auto n_trees = static_cast<std::int64_t>(trees_.starts_.size()) - 1;
        for (std::int64_t k = 0; k < n; ++k) {
            const std::uint32_t leaf = leaves[ends_[k] & kNodeMask];
            Cell *row = cells + (ends_[k] >> kNodeBits) * n_trees;
            row[segment.first_tree + (leaf >> kNodeBits)] = static_cast<Cell>(leaf & kNodeMask);
        }
    }

    static Descents::Descend<Value> best() {
        if constexpr (std::is_same_v<Value, float>)
            return best_descents().floats;
        else
            return best_descents().doubles;
    }

    const PackedTrees &trees_;
    Descents::Descend<Value> descend_ = best();
    std::vector<float> rounded_;
    std::vector<std::uint32_t> places_, ends_;
};

} // namespace isokern
