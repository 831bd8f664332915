// Descending isolation trees.
//
// Dense rows of few columns: see descents.hpp. Of many: a group of rows goes down one tree side by side, and a tile of
// rows stays in the cache for all trees.
//
// Sparse rows: a row follows the path of the all-zero row until one of its own values turns it off. For each feature
// we list, over all trees, the places on those paths where it decides ("turns"); a row looks at the turns of its stored
// values only, finds the first that takes it off each tree's path, and descends node by node from there. So the cost
// follows the stored values, not the number of columns and not the length of those paths, which grow long on text.
#include "trees.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "threads.hpp"

namespace isokern {

static constexpr std::int64_t kTile = 128;        // rows that stay in the cache
static constexpr std::int64_t kFewColumns = 2048; // up to here sparse rows are written out in full

// Throws if a node points outside. The column of a leaf is read, too: descending does not stop to ask.
static void check_tree(const std::int32_t *column, const std::int32_t *left, std::int64_t size, std::int64_t n_columns,
                       std::int64_t n_cells) {
    if (size == 0)
        throw std::invalid_argument("a tree must have at least one node.");
    bool is_sound = true;
    for (std::int64_t k = 0; k < size; ++k) {
        is_sound &= column[k] >= 0 && column[k] < n_columns;
        is_sound &= left[k] < 0 ? ~left[k] < n_cells : left[k] > k && left[k] < size - 1;
    }
    if (!is_sound)
        throw std::invalid_argument("a tree's node points outside of its tree, columns or cells.");
}

TreeMap::TreeMap(const double *split, const std::int32_t *column, const std::int32_t *left, const std::int64_t *starts,
                 std::int64_t n_trees, std::int64_t n_columns, std::int64_t n_cells)
    : n_columns_(n_columns), starts_(starts, starts + n_trees + 1) {
    if (starts[0] != 0 || !std::is_sorted(starts_.begin(), starts_.end()))
        throw std::invalid_argument("the starts of the trees must ascend from 0.");
    for (std::int64_t i = 0; i < n_trees; ++i)
        check_tree(column + starts[i], left + starts[i], starts[i + 1] - starts[i], n_columns, n_cells);
    packed_ = PackedTrees(split, column, left, starts_, n_columns, n_cells);
    if (packed_serve_all())
        return;
    nodes_.reserve(static_cast<std::size_t>(starts[n_trees]));
    for (std::int64_t k = 0; k < starts[n_trees]; ++k)
        nodes_.push_back({split[k], column[k], left[k]});
    number_features();
    index_zero_paths();
}

// Whether sparse rows, too, go down the packed trees, written out in full.
bool TreeMap::packed_serve_all() const { return n_columns_ <= kFewColumns && !packed_.are_none(); }

// Reads a row's columns one after the other; a group of rows keeps many loads in flight.
template <class Rows, class Cell> class TreeMap::DenseWorker {
  public:
    DenseWorker(const TreeMap &map, const Rows &rows, Cell *cells) : map_(map), rows_(rows), cells_(cells) {}

    void operator()(std::int64_t begin, std::int64_t end) {
        for (std::int64_t tree = 0; tree < map_.n_trees(); ++tree) {
            std::int64_t r = begin;
            for (; r + kGroup <= end; r += kGroup)
                descend<kGroup>(tree, r);
            for (; r < end; ++r)
                descend<1>(tree, r);
        }
    }

  private:
    static constexpr int kGroup = 16;

    template <int group> void descend(std::int64_t tree, std::int64_t first_row) {
        const Node *nodes = map_.nodes_.data() + map_.starts_[tree];
        const auto *row = rows_.row(first_row);
        std::int32_t at[group] = {};
        bool is_moving = true;
        while (is_moving) {
            is_moving = false;
            for (int g = 0; g < group; ++g) {
                const Node &node = nodes[at[g]];
                const bool is_inner = node.left >= 0;
                const std::int32_t next = node.left + !(row[g * rows_.n_columns + node.column] < node.split);
                at[g] = is_inner ? next : at[g];
                is_moving |= is_inner;
            }
        }
        for (int g = 0; g < group; ++g)
            cells_[(first_row + g) * map_.n_trees() + tree] = static_cast<Cell>(~nodes[at[g]].left);
    }

    const TreeMap &map_;
    const Rows &rows_;
    Cell *cells_;
};

template <class Rows, class Cell> class TreeMap::SparseWorker {
  public:
    SparseWorker(const TreeMap &map, const Rows &rows, Cell *cells)
        : map_(map), rows_(rows), cells_(cells), values_(map.turn_starts_.size(), 0.0),
          turned_at_(static_cast<std::size_t>(map.n_trees())), turned_to_(static_cast<std::size_t>(map.n_trees())) {}

    void operator()(std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r)
            descend(r);
    }

  private:
    static constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max();

    void descend(std::int64_t r) {
        std::fill(turned_at_.begin(), turned_at_.end(), kNever);
        features_.clear();
        for_each_nonzero(rows_, r, [&](std::int32_t column, double value) { take_turns(column, value); });
        Cell *cells = cells_ + r * map_.n_trees();
        for (std::int64_t tree = 0; tree < map_.n_trees(); ++tree)
            cells[tree] = static_cast<Cell>(turned_at_[tree] == kNever ? map_.zero_cells_[tree] : walk(tree));
        for (const std::int32_t feature : features_)
            values_[feature] = 0.0;
    }

    // Notes the value, and each tree whose zero path it leaves earlier than the values before it.
    void take_turns(std::int32_t column, double value) {
        const std::int32_t feature = map_.features_.find(column);
        if (feature < 0)
            return;
        features_.push_back(feature);
        values_[feature] = value;
        for (std::int64_t k = map_.turn_starts_[feature]; k < map_.turn_starts_[feature + 1]; ++k) {
            const Turn &turn = map_.turns_[k];
            if (turn.taken_by(value) && turn.position < turned_at_[turn.tree]) {
                turned_at_[turn.tree] = turn.position;
                turned_to_[turn.tree] = turn.node;
            }
        }
    }

    std::int32_t walk(std::int64_t tree) const {
        const Node *nodes = map_.nodes_.data() + map_.starts_[tree];
        const std::int32_t *features = map_.node_features_.data() + map_.starts_[tree];
        std::int32_t at = turned_to_[tree];
        while (nodes[at].left >= 0)
            at = nodes[at].left + !(values_[features[at]] < nodes[at].split);
        return ~nodes[at].left;
    }

    const TreeMap &map_;
    const Rows &rows_;
    Cell *cells_;
    std::vector<double> values_; // the row at hand, by feature
    std::vector<std::int32_t> features_;
    std::vector<std::int32_t> turned_at_, turned_to_;
};

// Sparse rows of few columns are quicker written out in full.
template <class Value, class Cell> class TreeMap::DensifyingWorker {
  public:
    DensifyingWorker(const TreeMap &map, const CsrRows<Value> &rows, Cell *cells)
        : map_(map), rows_(rows), cells_(cells), descent_(map.packed_) {}

    void operator()(std::int64_t begin, std::int64_t end) {
        values_.assign(static_cast<std::size_t>((end - begin) * rows_.n_columns), Value(0));
        for (std::int64_t r = begin; r < end; ++r)
            for (std::int64_t k = rows_.starts[r]; k < rows_.starts[r + 1]; ++k)
                values_[(r - begin) * rows_.n_columns + rows_.columns[k]] = rows_.values[k];
        descent_({values_.data(), end - begin, rows_.n_columns}, cells_ + begin * map_.n_trees());
    }

  private:
    const TreeMap &map_;
    const CsrRows<Value> &rows_;
    Cell *cells_;
    PackedTrees::Descent<Value, Cell> descent_;
    std::vector<Value> values_;
};

template <class Rows, class Cell> void TreeMap::apply(const Rows &rows, Cell *cells, int threads) const {
    if (rows.n_columns != n_columns_)
        throw std::invalid_argument("the rows have another number of columns than the trees.");
    descend(rows, cells, threads);
}

template <class Value, class Cell> void TreeMap::descend(const DenseRows<Value> &rows, Cell *cells, int threads) const {
    if (packed_.are_none())
        return parallel_tiles(rows.n_rows, kTile, threads,
                              [&] { return DenseWorker<DenseRows<Value>, Cell>(*this, rows, cells); });
    parallel_tiles(rows.n_rows, packed_.tile(n_columns_), threads, [&] {
        return [&, descent = PackedTrees::Descent<Value, Cell>(packed_)](std::int64_t begin, std::int64_t end) mutable {
            descent({rows.row(begin), end - begin, rows.n_columns}, cells + begin * n_trees());
        };
    });
}

template <class Value, class Cell> void TreeMap::descend(const CsrRows<Value> &rows, Cell *cells, int threads) const {
    if (packed_serve_all())
        parallel_tiles(rows.n_rows, packed_.tile(n_columns_), threads,
                       [&] { return DensifyingWorker<Value, Cell>(*this, rows, cells); });
    else
        parallel_tiles(rows.n_rows, kTile, threads,
                       [&] { return SparseWorker<CsrRows<Value>, Cell>(*this, rows, cells); });
}

void TreeMap::number_features() {
    for (const Node &node : nodes_)
        node_features_.push_back(node.left < 0 ? 0 : features_.number(node.column));
    turn_starts_.assign(static_cast<std::size_t>(features_.size()) + 1, 0);
}

void TreeMap::index_zero_paths() {
    std::vector<std::pair<std::int32_t, Turn>> found; // (feature, turn)
    for (std::int64_t tree = 0; tree < n_trees(); ++tree) {
        const Node *nodes = nodes_.data() + starts_[tree];
        std::int32_t at = 0;
        for (std::int32_t position = 0; nodes[at].left >= 0; ++position) {
            const std::int32_t zero_side = nodes[at].split > 0.0 ? 0 : 1;
            found.push_back(
                {node_features_[starts_[tree] + at],
                 {nodes[at].split, static_cast<std::int32_t>(tree), position, nodes[at].left + 1 - zero_side}});
            at = nodes[at].left + zero_side;
        }
        zero_cells_.push_back(~nodes[at].left);
    }
    std::stable_sort(found.begin(), found.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    for (const auto &[feature, turn] : found) {
        ++turn_starts_[feature + 1];
        turns_.push_back(turn);
    }
    for (std::size_t f = 1; f < turn_starts_.size(); ++f)
        turn_starts_[f] += turn_starts_[f - 1];
}

#define ISOKERN_INSTANTIATE(Rows)                                                                                      \
    template void TreeMap::apply(const Rows &, std::uint8_t *, int) const;                                             \
    template void TreeMap::apply(const Rows &, std::uint16_t *, int) const;                                            \
    template void TreeMap::apply(const Rows &, std::uint32_t *, int) const;
ISOKERN_INSTANTIATE(DenseRows<float>)
ISOKERN_INSTANTIATE(DenseRows<double>)
ISOKERN_INSTANTIATE(CsrRows<float>)
ISOKERN_INSTANTIATE(CsrRows<double>)

} // namespace isokern
