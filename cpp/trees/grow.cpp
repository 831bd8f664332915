// Grows isolation trees. In: rows, one sample of row numbers per tree, a seed; for further growth, trees that exist
// already and the leaf of each sampled point. Out: the nodes of all trees (trees/tree_map.hpp).
//
// New trees and further growth are one algorithm: it isolates points inside the leaves of a tree. A new tree is a root
// that is a leaf.
//
// A node must draw from the columns that are not constant among its points, without scanning all columns. It keeps a
// list that contains them and draws by rejection: a column is refused with probability 1 - its weight, and one that
// proves constant is deleted from the list, for the node and its descendants, because a column constant in a node is
// constant in its children. An empty list means that all points are equal. The larger child takes over its parent's
// list. The smaller child gets a copy or, where that is shorter, a list of the columns in which its own points are not
// all zero. A point is in the smaller child at most log2(sample size) times, so each stored value is listed at most
// that often, however unbalanced the tree (small-to-large).
#include "trees/tree_map.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "common/random.hpp"
#include "common/threads.hpp"
#include "trees/grow_samples.hpp"
#include "trees/splits.hpp"

namespace isokern {
namespace {

//  s = lower + u (upper - lower),  lower < s <= upper, so that neither side is empty.
// A weighted mean cannot overflow, but may round to lower; s is then upper.
double split_between(double lower, double upper, double u) {
    const double split = (1.0 - u) * lower + u * upper;
    return split > lower && split <= upper ? split : upper;
}

// A tree under construction; its arrays have room for all nodes.
struct Tree {
    double *split;
    std::int32_t *column, *left;
    std::uint8_t *missing_right;
    std::int32_t *n_points;
    std::int32_t n_nodes = 0;

    std::int32_t add_node(std::int32_t n_points_there) {
        split[n_nodes] = 0.0;
        column[n_nodes] = left[n_nodes] = 0;
        missing_right[n_nodes] = 0;
        n_points[n_nodes] = n_points_there;
        return n_nodes++;
    }

    // The depth of each node; children come after their parent.
    std::vector<std::int64_t> depths() const {
        std::vector<std::int64_t> found(static_cast<std::size_t>(n_nodes));
        for (std::int32_t k = 0; k < n_nodes; ++k)
            if (left[k] >= 0)
                found[left[k]] = found[left[k] + 1] = found[k] + 1;
        return found;
    }
};

// Copies a tree that exists already; returns the leaf of each point by its node, from its cell.
std::vector<std::int32_t> copy_tree(const ForestView &from, std::int64_t i, const std::int32_t *cells,
                                    std::int64_t n_points, Tree &tree) {
    const std::int64_t first = from.starts[i];
    std::vector<std::int32_t> node_of(static_cast<std::size_t>(from.n_cells), -1);
    for (std::int64_t k = first; k < from.starts[i + 1]; ++k) {
        const std::int32_t node = tree.add_node(1); // a leaf without new points counts as one
        tree.split[node] = from.split[k];
        tree.column[node] = from.column[k];
        tree.left[node] = from.left[k];
        tree.missing_right[node] = from.missing_right[k];
        if (from.left[k] < 0)
            node_of[~from.left[k]] = node;
    }
    std::vector<std::int32_t> leaves(static_cast<std::size_t>(n_points));
    for (std::int64_t p = 0; p < n_points; ++p) {
        leaves[p] = cells[p] >= 0 && cells[p] < from.n_cells ? node_of[cells[p]] : -1;
        if (leaves[p] < 0)
            throw std::invalid_argument("cells must be those of leaves.");
    }
    return leaves;
}

// Numbers the leaves in the order of nodes, and counts the points of inner nodes.
//   in: the former left of the first nodes      out: parents[cell] = the former cell that a leaf is part of
std::int32_t number_leaves(const Tree &tree, const std::int32_t *former, std::int64_t n_former, std::int32_t *parents) {
    std::vector<std::int32_t> part_of(static_cast<std::size_t>(tree.n_nodes));
    std::int32_t n_leaves = 0;
    for (std::int32_t k = 0; k < tree.n_nodes; ++k) {
        if (k < n_former && former[k] < 0)
            part_of[k] = ~former[k];
        if (tree.left[k] >= 0)
            part_of[tree.left[k]] = part_of[tree.left[k] + 1] = part_of[k];
        else {
            parents[n_leaves] = part_of[k];
            tree.left[k] = ~n_leaves++;
        }
    }
    for (std::int32_t k = tree.n_nodes; k-- > 0;)
        if (tree.left[k] >= 0)
            tree.n_points[k] = tree.n_points[tree.left[k]] + tree.n_points[tree.left[k] + 1];
    return n_leaves;
}

// Grows one tree after another; owns the scratch buffers.
template <class Sample> class Grower {
  public:
    Grower(const Sample &sample, const GrowthRules &rules)
        : sample_(sample), max_depth_(rules.max_depth), column_weights_(rules.column_weights) {}

    // Isolates the points of a sample inside the leaves of a tree. Returns the number of nodes.
    //   in: rows (the sample), the leaf of each point by its node, key of the tree's random stream      changed: tree
    std::int32_t grow(RowNumbers rows, const std::vector<std::int32_t> &leaves, std::uint64_t key, Tree tree) {
        tree_ = tree;
        take(rows);
        std::stable_sort(points_.begin(), points_.end(),
                         [&](std::int32_t a, std::int32_t b) { return leaves[a] < leaves[b]; });
        slots_.resize(static_cast<std::size_t>(sample_.n_slots()) + 1);
        const std::vector<std::int64_t> depths = max_depth_ < 0 ? std::vector<std::int64_t>() : tree_.depths();
        for (std::size_t begin = 0, end = 0; begin < points_.size(); begin = end) {
            const std::int32_t leaf = leaves[points_[begin]];
            while (end < points_.size() && leaves[points_[end]] == leaf)
                ++end;
            tree_.n_points[leaf] = static_cast<std::int32_t>(end - begin);
            grow_leaf({static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end),
                       depths.empty() ? 0 : depths[leaf],
                       leaf == 0 ? key : mix(key + static_cast<std::uint64_t>(leaf) * kStep), leaf, 0, 0});
        }
        return tree_.n_nodes;
    }

  private:
    static constexpr bool kIsMixed = requires(const Sample sample) { sample.is_categorical(0); };

    struct Node {
        std::int32_t begin, end; // its points: points_[begin .. end)
        std::int64_t depth;
        std::uint64_t key;
        std::int32_t index;
        std::int32_t n_slots;
        std::int64_t first_slot; // where its list begins in slots_; it has every slot that is not constant in the node

        std::int32_t n_points() const { return end - begin; }
    };

    // Grows a leaf depth first, from a stack of nodes.
    void grow_leaf(Node leaf) {
        sample_.isolate(points_of(leaf));
        leaf.n_slots = sample_.list_slots(points_of(leaf), slots_.data());
        put(leaf);
        while (!waiting_.empty()) {
            const Node node = waiting_.back();
            waiting_.pop_back();
            divide(node);
        }
    }

    void take(RowNumbers rows) {
        sample_.take(rows);
        points_.resize(rows.size());
        std::iota(points_.begin(), points_.end(), 0);
    }

    std::span<std::int32_t> points_of(const Node &node) {
        return {points_.data() + node.begin, points_.data() + node.end};
    }

    bool is_leaf(const Node &node) const {
        return node.n_points() == 1 || (max_depth_ >= 0 && node.depth >= max_depth_);
    }

    void make_leaf(const Node &node) { tree_.left[node.index] = ~points_[node.begin]; }

    void put(const Node &node) {
        if (is_leaf(node))
            make_leaf(node);
        else
            waiting_.push_back(node);
    }

    // Splits a node in two, or makes it a leaf if all its points are equal.
    // A node's key gives its draws, and the keys of its children, so a tree does not depend on the order of growth.
    void divide(Node node) {
        Draws draws(node.key);
        if (!choose_slot(node, draws))
            return make_leaf(node);
        const std::int32_t middle = node.begin + sample_.divide(points_of(node), sides_at_);
        const std::int32_t left = tree_.add_node(middle - node.begin);
        tree_.add_node(node.end - middle);
        tree_.split[node.index] = split_;
        tree_.column[node.index] = sample_.column(slot_);
        tree_.left[node.index] = left;
        tree_.missing_right[node.index] = kIsMixed ? missing_right_ : node.end - middle >= middle - node.begin;

        Node first = node, second = node;
        first.end = second.begin = middle;
        first.depth = second.depth = node.depth + 1;
        first.key = mix(node.key ^ kLeftKey);
        second.key = mix(node.key ^ kRightKey);
        first.index = left;
        second.index = left + 1;
        first.n_points() >= second.n_points() ? put_both(first, second) : put_both(second, first);
    }

    // Draws a slot that is not constant in the node, by rejection, and a split; false if there is none.
    //   changed: the node's list (constant slots, and those of weight 0, are deleted)
    //   out: slot_, split_; the values that the sample has read of the node's points, which go left if below sides_at_
    bool choose_slot(Node &node, Draws &draws) {
        std::int32_t *slots = slots_.data() + node.first_slot;
        sample_.enter_node();
        for (int n_draws = 1; node.n_slots > 0; ++n_draws) {
            if (n_draws % kAhead == 0)
                fetch_ahead({slots, static_cast<std::size_t>(node.n_slots)}, draws);
            const auto k = draws.below(static_cast<std::uint64_t>(node.n_slots));
            slot_ = slots[k];
            const double weight = column_weights_ ? column_weights_[sample_.column(slot_)] : 1.0;
            if (weight > 0.0 && weight < 1.0 && draws.unit() > weight)
                continue;
            if (weight > 0.0 && choose_split(node, draws))
                return true;
            slots[k] = slots[--node.n_slots];
        }
        return false;
    }

    // Fetches the slots of the next draws into the cache, as if all were rejected: after some rejections, more follow.
    void fetch_ahead(std::span<const std::int32_t> slots, Draws draws) const {
        std::int32_t next[kAhead];
        for (std::size_t k = 0; k < kAhead; ++k)
            next[k] = slots[draws.below(std::max(slots.size(), k + 1) - k)];
        sample_.fetch(next);
    }

    bool choose_split(const Node &node, Draws &draws) {
        if constexpr (kIsMixed) {
            const auto values = sample_.read(slot_, points_of(node));
            sides_at_ = 0.5; // values become 0 or 1
            return sample_.is_categorical(slot_) ? choose_categories(values, draws) : choose_number(values, draws);
        } else {
            const auto range = sample_.read(slot_, points_of(node));
            if (!(range.lower < range.upper))
                return false;
            split_ = sides_at_ = split_between(range.lower, range.upper, draws.unit());
            return true;
        }
    }

    // A split of numbers, some of which may be missing: these go with most of the others. If all of the others are
    // equal, it parts them from the missing.
    template <class Value> bool choose_number(std::span<Value> values, Draws &draws) {
        constexpr double kInfinity = std::numeric_limits<double>::infinity();
        Range<double> range{kInfinity, -kInfinity};
        std::size_t n_missing = 0;
        for (const Value value : values) {
            range.include(value); // NaN changes nothing
            n_missing += std::isnan(value);
        }
        const bool is_constant = !(range.lower < range.upper);
        if (is_constant && (n_missing == 0 || n_missing == values.size()))
            return false;
        split_ = is_constant ? kInfinity : split_between(range.lower, range.upper, draws.unit());
        const auto n_left = std::count_if(values.begin(), values.end(), [&](Value value) { return value < split_; });
        missing_right_ = is_constant || 2 * static_cast<std::size_t>(n_left) <= values.size() - n_missing;
        for (Value &value : values)
            value = std::isnan(value) ? missing_right_ : !(value < split_);
        return true;
    }

    // A seed whose hash sends categories to both sides. Half of all seeds part two categories, so a column of which
    // none of kMostTries does so is taken for constant.
    template <class Value> bool choose_categories(std::span<Value> values, Draws &draws) {
        constexpr int kMostTries = 64;
        if (std::all_of(values.begin(), values.end(), [&](Value value) { return value == values[0]; }))
            return false;
        for (int k = 0; k < kMostTries; ++k) {
            const auto seed = static_cast<std::uint32_t>(draws.next() >> 32);
            const auto is_right = [&](Value value) { return category_goes_right(category_code(value), seed); };
            if (std::all_of(values.begin(), values.end(),
                            [&, first = is_right(values[0])](Value value) { return is_right(value) == first; }))
                continue;
            split_ = seed;
            std::transform(values.begin(), values.end(), values.begin(), is_right);
            return true;
        }
        return false;
    }

    // The larger child, or the left one of equal children, takes over the node's list of slots. The smaller is grown
    // first, so the stack holds at most log2(n) lists. They lie in slots_ in the order of the stack, and everything
    // behind the list of the current node is free.
    void put_both(const Node &larger, Node smaller) {
        if (!is_leaf(smaller))
            list_slots(smaller);
        put(larger);
        put(smaller);
    }

    // Gives a node that still refers to its parent's list one of its own, behind it.
    void list_slots(Node &node) {
        const std::int64_t parents = std::exchange(node.first_slot, node.first_slot + node.n_slots);
        const auto end = static_cast<std::size_t>(node.first_slot + node.n_slots) + 1;
        if (slots_.size() < end)
            slots_.resize(end);
        std::int32_t *slots = slots_.data() + node.first_slot;
        if (stores_less(node))
            node.n_slots = sample_.list_slots(points_of(node), slots);
        else
            std::copy_n(slots_.data() + parents, node.n_slots, slots);
    }

    // Whether the node's points store fewer values than its list has slots.
    bool stores_less(const Node &node) const {
        std::int64_t n_stored = 0;
        for (std::int32_t k = node.begin; k < node.end && n_stored < node.n_slots; ++k)
            n_stored += sample_.n_stored(points_[k]);
        return n_stored < node.n_slots;
    }

    static constexpr std::size_t kAhead = 16; // draws that are prepared together
    static constexpr std::uint64_t kLeftKey = 0x8CB92BA72F3D8DD7u, kRightKey = 0xD1B54A32D192ED03u;

    Sample sample_;
    std::int64_t max_depth_;
    const double *column_weights_; // or null
    Tree tree_{};
    std::vector<Node> waiting_;
    std::vector<std::int32_t> slots_;  // the lists of the nodes on the stack
    std::vector<std::int32_t> points_; // the sample's places; those of a node are contiguous and ascending
    std::int32_t slot_ = 0;
    double split_ = 0.0, sides_at_ = 0.0;
    bool missing_right_ = false;
};

// Compacts the forest: tree i moves from i * most, where it had room for `most` nodes, to the end of tree i - 1.
//   in: n_nodes of each tree      changed: forest
void join(Forest &forest, const std::vector<std::int32_t> &n_nodes, std::int64_t most) {
    forest.starts.assign(1, 0);
    for (std::size_t i = 0; i < n_nodes.size(); ++i) {
        const std::int64_t from = static_cast<std::int64_t>(i) * most, to = forest.starts.back();
        const auto move = [&](auto &values) {
            if (from != to)
                std::copy_n(values.begin() + from, n_nodes[i], values.begin() + to);
        };
        move(forest.split);
        move(forest.column);
        move(forest.left);
        move(forest.missing_right);
        move(forest.n_points);
        forest.starts.push_back(to + n_nodes[i]);
    }
    const auto cut = [n = static_cast<std::size_t>(forest.starts.back())](auto &values) {
        values.resize(n);
        if (values.capacity() > 2 * n)
            values.shrink_to_fit();
    };
    cut(forest.split);
    cut(forest.column);
    cut(forest.left);
    cut(forest.missing_right);
    cut(forest.n_points);
}

// Calls work(forest, tree i, its grower) for each tree in threads, and returns the forest.
//   in: most, the largest number of nodes of a tree
template <class Sample, class Rows, class Work>
Forest grow(const Rows &rows, const typename Sample::Shared &shared, std::int64_t n_trees, std::int64_t most,
            const GrowthRules &rules, Work work) {
    Forest forest;
    forest.split.resize(static_cast<std::size_t>(n_trees * most));
    forest.column.resize(forest.split.size());
    forest.left.resize(forest.split.size());
    forest.missing_right.resize(forest.split.size());
    forest.n_points.resize(forest.split.size());
    std::vector<std::int32_t> n_nodes(static_cast<std::size_t>(n_trees));
    parallel_tiles(n_trees, 1, rules.threads, [&] {
        return [&, grower = Grower(Sample(rows, shared), rules)](std::int64_t i, std::int64_t) mutable {
            const std::int64_t root = i * most;
            n_nodes[i] = work(i, grower,
                              Tree{forest.split.data() + root, forest.column.data() + root, forest.left.data() + root,
                                   forest.missing_right.data() + root, forest.n_points.data() + root});
        };
    });
    join(forest, n_nodes, most);
    return forest;
}

// Calls grow<Sample> with the Sample that suits the rows.
template <class Value, class Work>
Forest grow_any(const DenseRows<Value> &rows, RowNumbers sampled, std::int64_t n_trees, std::int64_t most,
                const GrowthRules &rules, Work work) {
    const NonzeroColumns<Value> nonzero(rows, sampled, rules.threads);
    if (rules.categorical.empty() && !nonzero.has_missing())
        return grow<DenseSample<Value>>(rows, nonzero, n_trees, most, rules, work);
    typename MixedSample<Value>::Shared shared{nonzero, std::vector<bool>(static_cast<std::size_t>(rows.n_columns))};
    for (const std::int32_t column : rules.categorical)
        shared.is_categorical[column] = true;
    return grow<MixedSample<Value>>(rows, shared, n_trees, most, rules, work);
}

template <class Value, class Work>
Forest grow_any(const CsrRows<Value> &rows, RowNumbers, std::int64_t n_trees, std::int64_t most,
                const GrowthRules &rules, Work work) {
    if (!rules.categorical.empty())
        throw std::invalid_argument("rows with categories must be dense.");
    return grow<CsrSample<Value>>(rows, {}, n_trees, most, rules, work);
}

std::uint64_t tree_key(std::uint64_t seed, std::int64_t i) {
    return stream_key(seed, Purpose::tree, static_cast<std::uint64_t>(i));
}

} // namespace

template <class Rows>
Forest grow_trees(const Rows &rows, const std::int64_t *samples, std::int64_t n_trees, std::int64_t sample_size,
                  const std::int64_t *number, const GrowthRules &rules) {
    const std::vector<std::int32_t> at_root(static_cast<std::size_t>(sample_size));
    return grow_any(rows, {samples, static_cast<std::size_t>(n_trees * sample_size)}, n_trees, 2 * sample_size - 1,
                    rules, [&](std::int64_t i, auto &grower, Tree tree) {
                        tree.left[tree.add_node(1)] = ~0;
                        return grower.grow({samples + i * sample_size, at_root.size()}, at_root,
                                           tree_key(rules.seed, number ? number[i] : i), tree);
                    });
}

template <class Rows>
GrownForest grow_further(const ForestView &from, const Rows &rows, const std::int64_t *samples,
                         const std::int32_t *cells, std::int64_t sample_size, const GrowthRules &rules) {
    const auto n_trees = std::ssize(from.starts) - 1;
    std::int64_t largest = 0;
    for (std::int64_t i = 0; i < n_trees; ++i)
        largest = std::max(largest, from.starts[i + 1] - from.starts[i]);
    const std::int64_t most = largest + 2 * (sample_size - 1), most_leaves = (most + 1) / 2;
    std::vector<std::int32_t> parents(static_cast<std::size_t>(n_trees * most_leaves), -1),
        n_leaves(static_cast<std::size_t>(n_trees));
    GrownForest grown;
    grown.forest =
        grow_any(rows, {samples, static_cast<std::size_t>(n_trees * sample_size)}, n_trees, most, rules,
                 [&](std::int64_t i, auto &grower, Tree tree) {
                     const auto leaves = copy_tree(from, i, cells + i * sample_size, sample_size, tree);
                     tree.n_nodes =
                         grower.grow({samples + i * sample_size, leaves.size()}, leaves, tree_key(rules.seed, i), tree);
                     n_leaves[i] = number_leaves(tree, from.left + from.starts[i], from.starts[i + 1] - from.starts[i],
                                                 parents.data() + i * most_leaves);
                     return tree.n_nodes;
                 });
    grown.n_cells = *std::max_element(n_leaves.begin(), n_leaves.end());
    for (std::int64_t i = 0; i < n_trees; ++i)
        grown.parents.insert(grown.parents.end(), parents.begin() + i * most_leaves,
                             parents.begin() + i * most_leaves + grown.n_cells);
    return grown;
}

#define ISOKERN_INSTANTIATE(Rows)                                                                                      \
    template Forest grow_trees(const Rows &, const std::int64_t *, std::int64_t, std::int64_t, const std::int64_t *,   \
                               const GrowthRules &);                                                                   \
    template GrownForest grow_further(const ForestView &, const Rows &, const std::int64_t *, const std::int32_t *,    \
                                      std::int64_t, const GrowthRules &);
ISOKERN_INSTANTIATE(DenseRows<float>)
ISOKERN_INSTANTIATE(DenseRows<double>)
ISOKERN_INSTANTIATE(CsrRows<float>)
ISOKERN_INSTANTIATE(CsrRows<double>)

} // namespace isokern
