// Checks the trees that are to be explained, and numbers their columns. In: arrays. Out: ExplainedTrees.
#include "inspection/explained_trees.hpp"

namespace isokern {

// Throws unless the inner nodes of a tree point to later nodes of it, each node but the root has one parent, and inner
// nodes have the points of their children.
static void check_tree(const LeafForest &forest, std::int64_t begin, std::int64_t end) {
    std::vector<bool> has_parent(static_cast<std::size_t>(end - begin));
    bool is_sound = begin < end;
    for (std::int64_t k = begin; is_sound && k < end; ++k) {
        const std::int64_t left = forest.left[k];
        is_sound = forest.n_points[k] >= 1 && (k == begin || has_parent[k - begin]);
        if (left < 0) {
            is_sound &= ~left < forest.n_leaves;
        } else if (left <= k || left >= end - 1 || has_parent[left - begin] || has_parent[left - begin + 1]) {
            is_sound = false;
        } else {
            has_parent[left - begin] = has_parent[left - begin + 1] = true;
            const std::int64_t n_points = std::int64_t{forest.n_points[left]} + forest.n_points[left + 1];
            is_sound &= n_points == forest.n_points[k];
        }
    }
    if (!is_sound)
        throw std::invalid_argument("a tree's nodes must point to later nodes or existing leaves, have one parent, and "
                                    "as many points as their children.");
}

ExplainedTrees::ExplainedTrees(const LeafForest &forest, std::span<const std::int32_t> categorical,
                               std::span<const std::int32_t> used)
    : forest(forest), ranks(forest.n_columns) {
    if (forest.starts.front() != 0 || !std::is_sorted(forest.starts.begin(), forest.starts.end()))
        throw std::invalid_argument("the starts of the trees must ascend from 0.");
    for (std::int64_t tree = 0; tree < n_trees(); ++tree)
        check_tree(forest, forest.starts[tree], forest.starts[tree + 1]);
    const auto check_column = [&](std::int32_t column) {
        if (column < 0 || column >= forest.n_columns)
            throw std::invalid_argument("columns must be from 0 to the number of columns - 1.");
    };
    for (const std::int32_t column : used) {
        check_column(column);
        ranks.add(column);
    }
    ranks.number();
    for (std::int64_t k = 0; k < forest.starts.back(); ++k) {
        check_column(forest.column[k]);
        feature.push_back(forest.left[k] < 0 ? 0 : ranks.find(forest.column[k]));
        if (feature.back() < 0)
            throw std::invalid_argument("used must have the columns of all splits.");
    }
    is_categorical.resize(static_cast<std::size_t>(n_features()));
    for (const std::int32_t column : categorical) {
        check_column(column);
        if (const std::int32_t number = ranks.find(column); number >= 0)
            is_categorical[number] = 1;
    }
}

} // namespace isokern
