// Maps rows to the leaves of isolation trees: checks the trees and chooses an algorithm by the shape of the input.
//
// In: the nodes of a forest; then dense or CSR rows. Out: the cell of each row in each tree.
//  - Dense rows, trees that can be packed: groups of similar rows descend together if there are many (kManyRows below,
//    sorted_rows.hpp); otherwise vectorised traversal of many trees at once (trees/dense_traversal.hpp).
//  - Dense rows, other trees (more than 4096 columns, or 2^20 nodes or cells in a tree): 16 rows descend a tree in
//    lockstep, so that their cache misses overlap; a tile of rows stays in the cache for all trees.
//  - CSR rows: zero paths (zero_paths.hpp) if there are many columns, or if the rows are very sparse and the trees peel
//    (kSparse and kPeeling below); otherwise the rows are densified, tile by tile, for the packed trees.
#include "trees/tree_map.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "common/densify.hpp"
#include "common/threads.hpp"
#include "trees/sorted_rows.hpp"
#include "trees/splits.hpp"

namespace isokern {

static constexpr std::int64_t kTile = 128; // rows that stay in the cache

// Sparse rows of few columns are faster on zero paths if at least the share kPeeling of all splits lies on the zero
// paths from the roots, and at most the share kSparse of the rows' values is stored (measured with psi = 256 and 4096,
// with and without a limit of depth).
static constexpr double kPeeling = 0.07;
static constexpr double kSparse = 0.05;

// Dense rows are sorted and grouped if there are at least kManyRows, and kManyTrees to repay it. Measured on Zen 4,
// with AVX2 and AVX-512, psi = 256, 4096 and 16,384, with and without a limit of depth, 128 to 50,000 rows of 54
// columns: groups were faster or about equal, but slower for 128 rows at psi = 16,384 without a limit (AVX-512).
// Gathers are slow there; CPUs with AVX-512 and fast gathers have not been measured.
static constexpr std::int64_t kManyRows = 64;
static constexpr std::int64_t kManyTrees = 8;

// Throws unless all columns, children and cells are within bounds and children come after their parent. The column of a
// leaf is checked too, because the traversal reads it before it knows that the node is a leaf. These checks have no
// branches, since leaves are unpredictable.
static void check_nodes(const double *split, const std::int32_t *column, const std::int32_t *left, std::int64_t size,
                        const std::vector<bool> &is_categorical, bool has_categories, std::int64_t n_cells) {
    if (size == 0)
        throw std::invalid_argument("a tree must have at least one node.");
    bool is_sound = true;
    for (std::int64_t k = 0; k < size; ++k) {
        is_sound &= (column[k] >= 0) & (column[k] < std::ssize(is_categorical));
        is_sound &= ((left[k] < 0) & (~left[k] < n_cells)) | ((left[k] > k) & (left[k] < size - 1));
    }
    if (!is_sound)
        throw std::invalid_argument("a tree's nodes must point to existing columns, later nodes and existing cells.");
    for (std::int64_t k = 0; has_categories && k < size; ++k)
        if (left[k] >= 0 && is_categorical[column[k]] && !(split[k] >= 0.0 && split[k] < 0x1p32))
            throw std::invalid_argument("the split of a categorical column must be a seed below 2^32.");
}

// Throws unless each node but the first has one parent. A few dozen nodes that share children could have exponentially
// many paths, and zero paths would need memory for all of them; trees grow in memory for twice as many nodes as leaves,
// which nodes without a parent could exceed. Without a branch, since leaves are unpredictable: a leaf marks two dummy
// entries behind the last node instead of children.
static void check_parents(const std::int32_t *left, std::int64_t size) {
    std::vector<char> has_parent(static_cast<std::size_t>(size + 2));
    char has_two = 0;
    std::int64_t n_inner = 0;
    for (std::int64_t k = 0; k < size; ++k) {
        const char is_inner = left[k] >= 0;
        char *children = has_parent.data() + (is_inner ? left[k] : size);
        has_two |= (children[0] | children[1]) & is_inner;
        children[0] = children[1] = 1;
        n_inner += is_inner;
    }
    if (has_two || 2 * n_inner + 1 != size)
        throw std::invalid_argument("a tree's nodes must have one parent each, except for the first.");
}

// Throws unless each node has points, and an inner node those of its children. Without a branch, as above.
static void check_points(const std::int32_t *left, const std::int32_t *n_points, std::int64_t size) {
    bool is_sound = true;
    for (std::int64_t k = 0; k < size; ++k) {
        const bool is_inner = left[k] >= 0;
        const std::int64_t child = is_inner ? left[k] : k; // a leaf's own points, which may be the last ones
        is_sound &= n_points[k] >= 1;
        is_sound &= !is_inner | (std::int64_t{n_points[child]} + n_points[child + is_inner] == n_points[k]);
    }
    if (!is_sound)
        throw std::invalid_argument("a tree's node must have at least one point, and its children as many in all.");
}

TreeMap::TreeMap(const double *split, const std::int32_t *column, const std::int32_t *left,
                 const std::uint8_t *missing_right, const std::int32_t *n_points, std::span<const std::int64_t> starts,
                 std::span<const std::int32_t> categorical, std::int64_t n_columns, std::int64_t n_cells)
    : n_columns_(n_columns), is_categorical_(static_cast<std::size_t>(n_columns)),
      has_categories_(!categorical.empty()), starts_(starts.begin(), starts.end()) {
    const auto n_trees = std::ssize(starts) - 1;
    for (const std::int32_t column : categorical) {
        if (column < 0 || column >= n_columns)
            throw std::invalid_argument("categorical columns must be numbers of columns.");
        is_categorical_[column] = true;
    }
    if (starts[0] != 0 || !std::is_sorted(starts_.begin(), starts_.end()))
        throw std::invalid_argument("the starts of the trees must ascend from 0.");
    parallel_each(n_trees, starts[n_trees], [&](std::int64_t i) {
        check_nodes(split + starts[i], column + starts[i], left + starts[i], starts[i + 1] - starts[i], is_categorical_,
                    has_categories_, n_cells);
        check_parents(left + starts[i], starts[i + 1] - starts[i]);
        check_points(left + starts[i], n_points + starts[i], starts[i + 1] - starts[i]);
    });
    packed_ = PackedTrees(split, column, left, starts_, missing_right, is_categorical_, n_cells);
    if (packed_.are_none())
        for (std::int64_t k = 0; k < starts[n_trees]; ++k)
            nodes_.push_back({split[k], column[k], left[k], missing_right[k] != 0});
    if (!has_categories_ && (!can_write_out() || share_on_zero_paths(split, left, starts_) >= kPeeling))
        zero_paths_ = ZeroPaths(split, column, left, starts_, n_columns);
}

// Whether sparse rows can be densified for the packed trees.
bool TreeMap::can_write_out() const { return n_columns_ <= kFewColumns && !packed_.are_none(); }

// Whether so many dense rows go down the packed trees in groups.
bool TreeMap::sort_rows(std::int64_t n_rows) const { return n_rows >= kManyRows && n_trees() >= kManyTrees; }

// Where a node of unpacked trees sends a value.
template <class Value> bool TreeMap::goes_right(const Node &node, Value value) const {
    if (has_categories_ && is_categorical_[node.column])
        return category_goes_right(category_code(value), static_cast<std::uint32_t>(node.split));
    return std::isnan(value) ? node.missing_right : !(value < node.split);
}

// Whether these rows use zero paths: they cannot be densified, or are expected to be slower that way.
template <class Value> bool TreeMap::follow_zero_paths(const CsrRows<Value> &rows) const {
    const auto n_stored = static_cast<double>(rows.starts[rows.n_rows] - rows.starts[0]);
    const double n_values = static_cast<double>(rows.n_rows) * static_cast<double>(rows.n_columns);
    return !can_write_out() || (!zero_paths_.are_none() && n_stored <= kSparse * n_values);
}

// Traverses one tree at a time with a group of rows in lockstep, which keeps many loads in flight.
template <class Rows, class Cell> class TreeMap::DenseWorker {
  public:
    DenseWorker(const TreeMap &map, const Rows &rows, Cell *cells) : map_(map), rows_(rows), cells_(cells) {}

    void operator()(std::int64_t begin, std::int64_t end) {
        for (std::int64_t tree = 0; tree < map_.n_trees(); ++tree) {
            std::int64_t r = begin;
            for (; r + kGroup <= end; r += kGroup)
                follow<kGroup>(tree, r);
            for (; r < end; ++r)
                follow<1>(tree, r);
        }
    }

  private:
    static constexpr int kGroup = 16;

    //  at <- left[at] + goes_right(at, x[column[at]]) until all rows of the group are at leaves
    //  in: the tree, rows first_row .. first_row + group - 1      out: their cells in this tree
    // Rows that have arrived stay where they are; conditional moves instead of branches, which would be unpredictable.
    template <int group> void follow(std::int64_t tree, std::int64_t first_row) {
        const Node *nodes = map_.nodes_.data() + map_.starts_[tree];
        const auto *row = rows_.row(first_row);
        std::int32_t at[group] = {};
        bool is_moving = true;
        while (is_moving) {
            is_moving = false;
            for (int g = 0; g < group; ++g) {
                const Node &node = nodes[at[g]];
                const bool is_inner = node.left >= 0;
                const std::int32_t next = node.left + map_.goes_right(node, row[g * rows_.n_columns + node.column]);
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

// Densifies sparse rows for the packed trees. Between tiles the buffer is all zero: only the entries that a tile has
// written are cleared after it.
template <class Value, class Cell> class TreeMap::DensifyingWorker {
  public:
    DensifyingWorker(const TreeMap &map, const CsrRows<Value> &rows, Cell *cells)
        : map_(map), rows_(rows), cells_(cells), mapper_(map.packed_) {}

    void operator()(std::int64_t begin, std::int64_t end) {
        values_.resize(std::max(values_.size(), static_cast<std::size_t>((end - begin) * rows_.n_columns)));
        for_each_place(begin, end, [&](std::size_t place, Value value) { values_[place] = value; });
        mapper_({values_.data(), end - begin, rows_.n_columns}, cells_ + begin * map_.n_trees());
        for_each_place(begin, end, [&](std::size_t place, Value) { values_[place] = Value(0); });
    }

  private:
    // Calls visit(index into values_, value) for the stored values of rows begin to end.
    template <class Visit> void for_each_place(std::int64_t begin, std::int64_t end, Visit visit) const {
        for (std::int64_t r = begin; r < end; ++r)
            for (std::int64_t k = rows_.starts[r]; k < rows_.starts[r + 1]; ++k)
                visit(static_cast<std::size_t>((r - begin) * rows_.n_columns + rows_.columns[k]), rows_.values[k]);
    }

    const TreeMap &map_;
    const CsrRows<Value> &rows_;
    Cell *cells_;
    PackedTrees::Mapper<Value, Cell> mapper_;
    std::vector<Value> values_;
};

template <class Rows, class Cell> void TreeMap::apply(const Rows &rows, Cell *cells, int threads) const {
    if (rows.n_columns != n_columns_)
        throw std::invalid_argument("rows must have as many columns as the trees; got another number of columns.");
    map_rows(rows, cells, threads);
}

template <class Value, class Cell>
void TreeMap::map_rows(const DenseRows<Value> &rows, Cell *cells, int threads) const {
    if (packed_.are_none())
        return parallel_tiles(rows.n_rows, kTile, threads,
                              [&] { return DenseWorker<DenseRows<Value>, Cell>(*this, rows, cells); });
    if (sort_rows(rows.n_rows))
        return packed_.map_sorted(rows, cells, threads);
    parallel_tiles(rows.n_rows, packed_.tile(n_columns_), threads, [&] {
        return [&, mapper = PackedTrees::Mapper<Value, Cell>(packed_)](std::int64_t begin, std::int64_t end) mutable {
            mapper({rows.row(begin), end - begin, rows.n_columns}, cells + begin * n_trees());
        };
    });
}

template <class Value, class Cell> void TreeMap::map_rows(const CsrRows<Value> &rows, Cell *cells, int threads) const {
    if (has_categories_)
        throw std::invalid_argument("rows with categories must be dense.");
    if (follow_zero_paths(rows))
        parallel_tiles(rows.n_rows, kTile, threads,
                       [&] { return ZeroPaths::Mapper<Value, Cell>(zero_paths_, rows, cells); });
    else
        parallel_tiles(rows.n_rows, packed_.tile(n_columns_), threads,
                       [&] { return DensifyingWorker<Value, Cell>(*this, rows, cells); });
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
