// Builds the packed form of a forest (packed_trees.hpp).
//
// In: splits, columns and children of all nodes. Out: 8-byte nodes, exact splits, leaf tables, and for each tree its
// top levels as a complete binary tree. Trees are packed in parallel, since each writes only its own range of nodes.
#include "trees/packed_trees.hpp"

#include <limits>
#include <numeric>

#include "common/threads.hpp"
#include "trees/group_descent.hpp"

namespace isokern {

static constexpr std::int64_t kMostNodes = std::int64_t{1} << kNodeBits;        // of a segment
static constexpr std::int64_t kMostTrees = std::int64_t{1} << (32 - kNodeBits); // of a segment
static constexpr std::int64_t kSmallTree = 2048;      // nodes of a tree, on average, up to which tiles are small
static constexpr std::int64_t kSmallForest = 1 << 17; // nodes of all trees: a megabyte
static constexpr std::int64_t kTileValues = 1 << 17;  // float32 values of a tile: half a megabyte

PackedTrees::PackedTrees(const double *split, const std::int32_t *column, const std::int32_t *left,
                         const std::vector<std::int64_t> &starts, const std::uint8_t *missing_right,
                         const std::vector<bool> &is_categorical, std::int64_t n_cells) {
    const auto n_trees = static_cast<std::int64_t>(starts.size()) - 1;
    std::int64_t largest = 0;
    for (std::int64_t i = 0; i < n_trees; ++i)
        largest = std::max(largest, starts[i + 1] - starts[i]);
    if (std::ssize(is_categorical) > (1 << kColumnBits) || n_cells > kMostNodes || largest > kMostNodes)
        return;
    order_columns(is_categorical);
    starts_ = starts;
    splits_.resize(static_cast<std::size_t>(starts[n_trees]));
    nodes_.resize(splits_.size());
    leaves_.resize(splits_.size());
    tops_.resize(static_cast<std::size_t>(n_trees));
    for (std::int64_t i = 0; i < n_trees; ++i) {
        if (segments_.empty() || starts[i + 1] - starts[segments_.back().first_tree] > kMostNodes ||
            i - segments_.back().first_tree == kMostTrees)
            segments_.push_back({i, i, 0});
        segments_.back().end_tree = i + 1;
    }
    for (Segment &segment : segments_) {
        segment.first_word = std::ssize(missing_right_);
        note_missing(segment, missing_right);
        const std::int64_t n_nodes = starts[segment.end_tree] - starts[segment.first_tree];
        parallel_each(segment.end_tree - segment.first_tree, n_nodes,
                      [&](std::int64_t k) { pack(split, column, left, segment, segment.first_tree + k); });
    }
}

// Puts numeric columns first, in their order, then the categorical ones.
void PackedTrees::order_columns(const std::vector<bool> &is_categorical) {
    originals_.resize(is_categorical.size());
    std::iota(originals_.begin(), originals_.end(), 0);
    const auto end = std::stable_partition(originals_.begin(), originals_.end(),
                                           [&](std::int32_t column) { return !is_categorical[column]; });
    n_numeric_ = static_cast<std::int32_t>(end - originals_.begin());
    packed_.resize(originals_.size());
    for (std::size_t j = 0; j < originals_.size(); ++j)
        packed_[originals_[j]] = static_cast<std::int32_t>(j);
}

// Appends a bit for each node of a segment. The bits of leaves mean nothing.
void PackedTrees::note_missing(const Segment &segment, const std::uint8_t *missing_right) {
    const std::int64_t first_node = starts_[segment.first_tree], n_nodes = starts_[segment.end_tree] - first_node;
    missing_right_.resize(missing_right_.size() + static_cast<std::size_t>((n_nodes + 31) / 32));
    std::uint32_t *words = missing_right_.data() + segment.first_word;
    for (std::int64_t k = 0; k < n_nodes; ++k)
        words[k / 32] |= static_cast<std::uint32_t>(missing_right[first_node + k] != 0) << k % 32;
}

// Packs the nodes of one tree:  link = child << kColumnBits | column,  with children counted from the segment's start.
void PackedTrees::pack(const double *split, const std::int32_t *column, const std::int32_t *left,
                       const Segment &segment, std::int64_t tree) {
    const std::int64_t first_node = starts_[segment.first_tree], root = starts_[tree];
    for (std::int64_t k = root; k < starts_[tree + 1]; ++k) {
        const bool is_leaf = left[k] < 0;
        const std::int64_t to = root - first_node + (is_leaf ? k - root : left[k]);
        const std::int32_t at = is_leaf ? 0 : packed_[column[k]];
        const std::int64_t link = to << kColumnBits | at;
        const std::int64_t leaf = (tree - segment.first_tree) << kNodeBits | ~left[k];
        splits_[k] = is_leaf ? std::numeric_limits<double>::infinity() : split[k];
        const bool is_category = !is_leaf && at >= n_numeric_;
        nodes_[k] = {
            is_leaf ? std::bit_cast<float>(std::bit_cast<std::uint32_t>(kHuge) | static_cast<std::uint32_t>(~left[k]))
            : is_category ? std::bit_cast<float>(static_cast<std::uint32_t>(splits_[k]))
                          : round_up(splits_[k]) + 0.0f, // turns -0 into 0
            static_cast<std::uint32_t>(link)};
        leaves_[k] = static_cast<std::uint32_t>(is_leaf ? leaf : 0);
    }
    tops_[tree] = top_of(tree, first_node);
}

// Copies the top levels in heap order. A leaf has itself as both children, so it is repeated until the top is complete.
TopNodes PackedTrees::top_of(std::int64_t tree, std::int64_t first_node) const {
    const PackedNode *nodes = nodes_.data() + first_node;
    TopNodes top;
    std::uint32_t numbers[2 * kTopNodes + 1] = {static_cast<std::uint32_t>(starts_[tree] - first_node)};
    for (int k = 0; k < kTopNodes; ++k) {
        const PackedNode node = nodes[numbers[k]];
        const std::uint32_t left = node.link >> kColumnBits;
        top.splits[k] = node.split;
        top.columns[k] = node.link & ((1u << kColumnBits) - 1);
        top.nodes[k] = numbers[k];
        numbers[2 * k + 1] = left;
        numbers[2 * k + 2] = left == numbers[k] ? left : left + 1;
    }
    std::copy_n(numbers + kTopNodes, kTopNodes + 1, top.below);
    return top;
}

// Tiles are small if the trees are: the rows and a group of trees then fit into the innermost cache. Otherwise a tile
// has as many rows as the next cache level holds, so that each tree is read less often.
std::int64_t PackedTrees::tile(std::int64_t n_columns) const {
    const auto n_trees = static_cast<std::int64_t>(starts_.size()) - 1;
    const std::int64_t most = static_cast<std::int64_t>(nodes_.size()) <= kSmallTree * n_trees ? 128 : 512;
    return std::clamp<std::int64_t>(kTileValues / n_columns, 32, most);
}

// The trees that groups of rows traverse together: no more than fit into the cache, but several, to overlap latencies.
std::int64_t PackedTrees::trees_together() const {
    constexpr std::int64_t kFewest = 4, kNodes = 1 << 15; // a quarter of a megabyte
    const auto n_trees = static_cast<std::int64_t>(tops_.size());
    return std::clamp(kNodes * n_trees / static_cast<std::int64_t>(nodes_.size()), kFewest, kGroupTrees);
}

// The number of sorted rows of a tile: one group if all trees fit into the cache. Otherwise as many as the cache holds,
// but no more than leave some for each thread.
std::int64_t PackedTrees::sorted_tile(std::int64_t n_rows, std::int64_t n_columns, int threads) const {
    if (std::ssize(nodes_) <= kSmallForest)
        return kGroupRows;
    const std::int64_t share = kGroupRows * usable_threads(threads);
    const std::int64_t most = std::min<std::int64_t>(kTileValues / n_columns, 2048) / kGroupRows;
    return std::max<std::int64_t>(std::min(most, (n_rows + share - 1) / share), 1) * kGroupRows;
}

} // namespace isokern
