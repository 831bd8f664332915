// Growing isolation trees.
//
// A node has to draw uniformly from the columns that are not constant among its points, without looking at all columns.
// It keeps a list of columns that includes those: it draws from the list, and a column that proves constant leaves the
// list and is drawn no more, here and below, because a column constant in a node is constant in its children. When the
// list runs empty, the points are equal. The larger child takes the list over; the smaller one gets a copy, or, where
// that is shorter, a list of the columns in which its own points are not all zero. So each stored value costs at most
// about log2(sample size) visits, however deep and lopsided the tree.
#include "trees.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "random.hpp"
#include "threads.hpp"

namespace isokern {
namespace {

using Points = std::span<const std::int32_t>; // places in the sample, ascending

// The sampled points of dense rows, column after column, because a node looks at one column of all its points. Slots
// number the columns that are not all zero, in the order of their first appearance when the points are read one after
// the other.
template <class Value> class DenseSample {
  public:
    static constexpr bool kLooksAtPlaces = false;

    DenseSample(const DenseRows<Value> &rows, std::span<const std::int64_t> sample)
        : stride_(sample.size() + kPadding), point_starts_{0}, slot_of_(static_cast<std::size_t>(rows.n_columns), -1),
          stored_(slot_of_.size()), values_(slot_of_.size() * stride_) {
        for (std::size_t begin = 0; begin < sample.size(); begin += kTile) {
            const std::size_t end = std::min(begin + kTile, sample.size());
            for (std::size_t p = end; p < std::min(end + kTile, sample.size()); ++p)
                prefetch(rows.row(sample[p]), rows.n_columns);
            for (std::size_t p = begin; p < end; ++p)
                list_stored(rows.row(sample[p]), rows.n_columns);
            for (std::int64_t j = 0; j < rows.n_columns; ++j)
                for (std::size_t p = begin; p < end; ++p)
                    values_[static_cast<std::size_t>(j) * stride_ + p] = rows.row(sample[p])[j];
        }
    }

    std::int32_t n_slots() const { return static_cast<std::int32_t>(columns_.size()); }
    std::int32_t column(std::int32_t slot) const { return columns_[slot]; }
    std::int64_t n_stored(std::int32_t point) const { return point_starts_[point + 1] - point_starts_[point]; }

    template <class Visit> void for_each_slot(std::int32_t point, Visit visit) const {
        for (std::int64_t k = point_starts_[point]; k < point_starts_[point + 1]; ++k)
            visit(slots_[k]);
    }

    // values[k] = the value of points[k] in the slot's column.
    void gather(std::int32_t slot, Points points, const std::int32_t *, double *values) const {
        const Value *column = values_.data() + static_cast<std::size_t>(columns_[slot]) * stride_;
        for (std::size_t k = 0; k < points.size(); ++k)
            values[k] = column[points[k]];
    }

  private:
    static constexpr std::size_t kTile = 16;   // points whose rows are read together
    static constexpr std::size_t kPadding = 8; // keeps columns off each other's places in the cache

    static void prefetch(const Value *row, std::int64_t n) {
        for (std::int64_t j = 0; j < n; j += 64 / static_cast<std::int64_t>(sizeof(Value)))
            __builtin_prefetch(row + j);
    }

    // Lists the slots of a point's values that are not zero.
    void list_stored(const Value *row, std::int64_t n_columns) {
        std::size_t n = 0;
        for (std::int64_t j = 0; j < n_columns; ++j) { // without a branch, which could not be foretold
            stored_[n] = static_cast<std::int32_t>(j);
            n += row[j] != Value(0);
        }
        for (std::size_t k = 0; k < n; ++k) {
            std::int32_t &slot = slot_of_[stored_[k]];
            if (slot < 0) {
                slot = n_slots();
                columns_.push_back(stored_[k]);
            }
            slots_.push_back(slot);
        }
        point_starts_.push_back(static_cast<std::int64_t>(slots_.size()));
    }

    std::size_t stride_;
    std::vector<std::int32_t> columns_; // slot -> column
    std::vector<std::int32_t> slots_;
    std::vector<std::int64_t> point_starts_;
    std::vector<std::int32_t> slot_of_, stored_;
    std::vector<Value> values_; // [column][point]
};

// The same for CSR rows: the sampled values by point and by slot.
template <class Value> class CsrSample {
  public:
    static constexpr bool kLooksAtPlaces = true;

    CsrSample(const CsrRows<Value> &rows, std::span<const std::int64_t> sample) : point_starts_{0} {
        ColumnNumbers slots;
        for (const std::int64_t row : sample) {
            for_each_nonzero(rows, row, [&](std::int32_t column, double value) {
                const std::int32_t slot = slots.number(column);
                if (slot == n_slots())
                    columns_.push_back(column);
                entries_.push_back({column, slot, value});
            });
            point_starts_.push_back(static_cast<std::int64_t>(entries_.size()));
        }
        list_by_slot();
    }

    std::int32_t n_slots() const { return static_cast<std::int32_t>(columns_.size()); }
    std::int32_t column(std::int32_t slot) const { return columns_[slot]; }
    std::int64_t n_stored(std::int32_t point) const { return point_starts_[point + 1] - point_starts_[point]; }

    template <class Visit> void for_each_slot(std::int32_t point, Visit visit) const {
        for (std::int64_t k = point_starts_[point]; k < point_starts_[point + 1]; ++k)
            visit(entries_[k].slot);
    }

    // Few points: look the column up in each. Many: go through the points that store it.
    void gather(std::int32_t slot, Points points, const std::int32_t *place, double *values) const {
        const auto n_points = static_cast<std::int64_t>(points.size());
        const std::int64_t begin = slot_starts_[slot], end = slot_starts_[slot + 1];
        if (end - begin > 4 * n_points) {
            for (std::int64_t k = 0; k < n_points; ++k)
                values[k] = look_up(points[k], columns_[slot]);
            return;
        }
        std::fill_n(values, n_points, 0.0);
        const std::int32_t first = place[points[0]];
        for (std::int64_t k = begin; k < end; ++k) {
            const std::int64_t at = place[slot_points_[k]] - first;
            if (at >= 0 && at < n_points)
                values[at] = slot_values_[k];
        }
    }

  private:
    struct Entry {
        std::int32_t column;
        std::int32_t slot;
        double value;
    };

    void list_by_slot() {
        slot_starts_.assign(columns_.size() + 1, 0);
        for (const Entry &entry : entries_)
            ++slot_starts_[entry.slot + 1];
        for (std::size_t s = 0; s < columns_.size(); ++s)
            slot_starts_[s + 1] += slot_starts_[s];
        slot_points_.resize(entries_.size());
        slot_values_.resize(entries_.size());
        std::vector<std::int64_t> next(slot_starts_.begin(), slot_starts_.end() - 1);
        for (std::size_t point = 0; point + 1 < point_starts_.size(); ++point)
            for (std::int64_t k = point_starts_[point]; k < point_starts_[point + 1]; ++k) {
                const std::int64_t at = next[entries_[k].slot]++;
                slot_points_[at] = static_cast<std::int32_t>(point);
                slot_values_[at] = entries_[k].value;
            }
    }

    double look_up(std::int32_t point, std::int32_t column) const {
        const auto begin = entries_.begin() + point_starts_[point], end = entries_.begin() + point_starts_[point + 1];
        const auto found =
            std::lower_bound(begin, end, column, [](const Entry &entry, std::int32_t c) { return entry.column < c; });
        return found != end && found->column == column ? found->value : 0.0;
    }

    std::vector<std::int32_t> columns_;
    std::vector<Entry> entries_;
    std::vector<std::int64_t> point_starts_;
    std::vector<std::int64_t> slot_starts_;
    std::vector<std::int32_t> slot_points_;
    std::vector<double> slot_values_;
};

template <class Value> DenseSample<Value> sample_of(const DenseRows<Value> &rows, std::span<const std::int64_t> s) {
    return {rows, s};
}
template <class Value> CsrSample<Value> sample_of(const CsrRows<Value> &rows, std::span<const std::int64_t> s) {
    return {rows, s};
}

// A split s with lower < s <= upper, so that neither side is empty. Written as a mean, it cannot overflow.
double split_between(double lower, double upper, double u) {
    const double split = (1.0 - u) * lower + u * upper;
    return split > lower && split <= upper ? split : upper;
}

struct Tree {
    std::vector<double> split;
    std::vector<std::int32_t> column;
    std::vector<std::int32_t> left;

    std::int32_t add_node() {
        split.push_back(0.0);
        column.push_back(0);
        left.push_back(0);
        return static_cast<std::int32_t>(left.size()) - 1;
    }
};

template <class Sample> class Grower {
  public:
    Grower(const Sample &sample, std::int32_t n_points, std::int64_t max_depth)
        : sample_(sample), max_depth_(max_depth), points_(n_points), place_(n_points), values_(n_points),
          right_(n_points), seen_(sample.n_slots(), -1) {
        for (std::int32_t p = 0; p < n_points; ++p)
            points_[p] = place_[p] = p;
    }

    Tree grow(std::uint64_t key) {
        const auto n_points = static_cast<std::int32_t>(points_.size());
        std::vector<Pending> stack;
        stack.push_back({0, n_points, 0, key, tree_.add_node(), own_slots(0, n_points)});
        while (!stack.empty()) {
            Pending node = std::move(stack.back());
            stack.pop_back();
            Draws draws(node.key);
            if (is_leaf(node) || !choose_slot(node, draws))
                tree_.left[node.index] = ~points_[node.begin];
            else
                divide(std::move(node), draws, stack);
        }
        return std::move(tree_);
    }

  private:
    struct Pending {
        std::int32_t begin, end; // its points: points_[begin .. end)
        std::int64_t depth;
        std::uint64_t key;
        std::int32_t index;
        std::vector<std::int32_t> slots; // holds every slot that is not constant among the points
    };

    bool is_leaf(const Pending &node) const {
        return node.end - node.begin == 1 || (max_depth_ >= 0 && node.depth >= max_depth_);
    }

    // Draws a slot that is not constant; its values are then in values_. False if there is none.
    bool choose_slot(Pending &node, Draws &draws) {
        const Points points(points_.data() + node.begin, points_.data() + node.end);
        while (!node.slots.empty()) {
            const auto k = draws.below(node.slots.size());
            slot_ = node.slots[k];
            sample_.gather(slot_, points, place_.data(), values_.data());
            find_range(points.size());
            if (lower_ < upper_)
                return true;
            node.slots[k] = node.slots.back();
            node.slots.pop_back();
        }
        return false;
    }

    void find_range(std::size_t n) {
        lower_ = upper_ = values_[0];
        for (std::size_t k = 1; k < n; ++k) {
            lower_ = values_[k] < lower_ ? values_[k] : lower_;
            upper_ = values_[k] > upper_ ? values_[k] : upper_;
        }
    }

    // Splits on the chosen slot. The larger child, the left one if they are equal, takes the node's list of slots.
    void divide(Pending node, Draws &draws, std::vector<Pending> &stack) {
        const double split = split_between(lower_, upper_, draws.unit());
        const std::int32_t middle = partition(node.begin, node.end, split);
        const std::int32_t left = tree_.add_node();
        tree_.add_node();
        tree_.split[node.index] = split;
        tree_.column[node.index] = sample_.column(slot_);
        tree_.left[node.index] = left;

        Pending first{node.begin, middle, node.depth + 1, mix(node.key ^ kLeftKey), left, {}};
        Pending second{middle, node.end, node.depth + 1, mix(node.key ^ kRightKey), left + 1, {}};
        Pending &larger = middle - node.begin >= node.end - middle ? first : second;
        Pending &smaller = &larger == &first ? second : first;
        if (!is_leaf(smaller))
            smaller.slots = slots_for(smaller, node.slots);
        larger.slots = std::move(node.slots);
        // The smaller is grown first, so that at most log2(n) lists wait at a time.
        stack.push_back(std::move(larger));
        stack.push_back(std::move(smaller));
    }

    std::vector<std::int32_t> slots_for(const Pending &node, const std::vector<std::int32_t> &parents) {
        std::int64_t n_stored = 0;
        for (std::int32_t k = node.begin; k < node.end; ++k)
            n_stored += sample_.n_stored(points_[k]);
        return n_stored < static_cast<std::int64_t>(parents.size()) ? own_slots(node.begin, node.end) : parents;
    }

    // The slots in which a point of points_[begin .. end) is not zero, in the order of first appearance.
    std::vector<std::int32_t> own_slots(std::int32_t begin, std::int32_t end) {
        std::vector<std::int32_t> slots;
        ++n_lists_;
        for (std::int32_t k = begin; k < end; ++k)
            sample_.for_each_slot(points_[k], [&](std::int32_t slot) {
                if (seen_[slot] != n_lists_) {
                    seen_[slot] = n_lists_;
                    slots.push_back(slot);
                }
            });
        return slots;
    }

    // Moves the points below the split to the front, both sides in their old order; returns where the right side
    // begins.
    std::int32_t partition(std::int32_t begin, std::int32_t end, double split) {
        std::int32_t middle = begin;
        std::size_t n_right = 0;
        for (std::int32_t k = begin; k < end; ++k) {
            if (values_[k - begin] < split)
                points_[middle++] = points_[k];
            else
                right_[n_right++] = points_[k];
        }
        std::copy_n(right_.begin(), n_right, points_.begin() + middle);
        if constexpr (Sample::kLooksAtPlaces)
            for (std::int32_t k = begin; k < end; ++k)
                place_[points_[k]] = k;
        return middle;
    }

    static constexpr std::uint64_t kLeftKey = 0x8CB92BA72F3D8DD7u, kRightKey = 0xD1B54A32D192ED03u;

    const Sample &sample_;
    std::int64_t max_depth_;
    Tree tree_;
    std::vector<std::int32_t> points_; // the sample's places, those of a node side by side and ascending
    std::vector<std::int32_t> place_;  // the inverse of points_
    std::vector<double> values_;
    std::vector<std::int32_t> right_;
    std::vector<std::int32_t> seen_;
    std::int32_t n_lists_ = 0;
    std::int32_t slot_ = 0;
    double lower_ = 0.0, upper_ = 0.0;
};

Forest concatenate(const std::vector<Tree> &trees) {
    Forest forest;
    forest.starts.push_back(0);
    for (const Tree &tree : trees) {
        forest.split.insert(forest.split.end(), tree.split.begin(), tree.split.end());
        forest.column.insert(forest.column.end(), tree.column.begin(), tree.column.end());
        forest.left.insert(forest.left.end(), tree.left.begin(), tree.left.end());
        forest.starts.push_back(static_cast<std::int64_t>(forest.left.size()));
    }
    return forest;
}

} // namespace

template <class Rows>
Forest grow_trees(const Rows &rows, const std::int64_t *samples, std::int64_t n_trees, std::int64_t sample_size,
                  std::int64_t max_depth, std::uint64_t seed, int threads) {
    std::vector<Tree> trees(static_cast<std::size_t>(n_trees));
    parallel_tiles(n_trees, 1, threads, [&] {
        return [&](std::int64_t i, std::int64_t) {
            const auto sample = sample_of(rows, {samples + i * sample_size, static_cast<std::size_t>(sample_size)});
            Grower grower(sample, static_cast<std::int32_t>(sample_size), max_depth);
            trees[i] = grower.grow(stream_key(seed, Purpose::tree, static_cast<std::uint64_t>(i)));
        };
    });
    return concatenate(trees);
}

template Forest grow_trees(const DenseRows<float> &, const std::int64_t *, std::int64_t, std::int64_t, std::int64_t,
                           std::uint64_t, int);
template Forest grow_trees(const DenseRows<double> &, const std::int64_t *, std::int64_t, std::int64_t, std::int64_t,
                           std::uint64_t, int);
template Forest grow_trees(const CsrRows<float> &, const std::int64_t *, std::int64_t, std::int64_t, std::int64_t,
                           std::uint64_t, int);
template Forest grow_trees(const CsrRows<double> &, const std::int64_t *, std::int64_t, std::int64_t, std::int64_t,
                           std::uint64_t, int);

} // namespace isokern
