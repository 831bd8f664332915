// Finds the cells of trees at all scales. In: the nodes of trees; leaves of rows. Out: cells of leaves; cells of rows.
//
// Children come after their parent, so one pass over the nodes in order hands the cells of each node down to its
// children: no stack, and cells are numbered in the order of the nodes.
#include "trees/scales.hpp"

#include <algorithm>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "common/threads.hpp"

namespace isokern {
namespace {

// Calls visit(leaf's cell, its cells at the coarser scales) for each leaf of tree i, in the order of nodes.
//   out: sizes[l], the number of cells of each coarser scale
template <class Visit> void visit_leaves(const ScaledTrees &trees, std::int64_t i, std::int64_t *sizes, Visit visit) {
    constexpr std::int32_t kNone = -1;
    const std::int64_t first = trees.starts[i], n_nodes = trees.starts[i + 1] - first, n_coarse = trees.n_scales - 1;
    const std::int32_t *left = trees.left + first, *n_points = trees.n_points + first;
    std::vector<std::int32_t> cells(static_cast<std::size_t>(n_nodes * n_coarse), kNone); // [node][scale]
    std::fill_n(sizes, n_coarse, 0);
    for (std::int64_t k = 0; k < n_nodes; ++k) {
        std::int32_t *own = cells.data() + k * n_coarse;
        const bool is_leaf = left[k] < 0;
        if (is_leaf ? ~left[k] >= trees.n_cells : left[k] <= k || left[k] >= n_nodes - 1)
            throw std::invalid_argument("a tree's nodes must point to later nodes and existing cells.");
        for (std::int64_t l = 0; l < n_coarse; ++l)
            if (own[l] == kNone && (is_leaf || n_points[k] <= trees.n_cells >> 2 * (l + 1)))
                own[l] = static_cast<std::int32_t>(sizes[l]++);
        if (is_leaf)
            visit(~left[k], own);
        else
            for (std::int64_t child = left[k]; child <= left[k] + 1; ++child)
                std::copy_n(own, n_coarse, cells.data() + child * n_coarse);
    }
}

// Calls use(n), with a constant where n is at most kMost, for which the compiler copies without a call of memmove.
template <std::int64_t kMost = 8, class Use> void with_constant(std::int64_t n, Use use) {
    if constexpr (kMost == 0)
        use(n);
    else if (n == kMost)
        use(std::integral_constant<std::int64_t, kMost>());
    else
        with_constant<kMost - 1>(n, use);
}

} // namespace

void count_scale_cells(const ScaledTrees &trees, std::int64_t *sizes) {
    parallel_each(trees.n_trees(), trees.starts.back(), [&](std::int64_t i) {
        std::int64_t *own = sizes + i * trees.n_scales;
        visit_leaves(trees, i, own, [](std::int64_t, const std::int32_t *) {});
        own[trees.n_scales - 1] = trees.n_cells;
    });
}

template <class Cell> void find_paths(const ScaledTrees &trees, Cell *paths) {
    const std::int64_t n_scales = trees.n_scales;
    parallel_each(trees.n_trees(), trees.starts.back(), [&](std::int64_t i) {
        std::vector<std::int64_t> sizes(static_cast<std::size_t>(n_scales));
        visit_leaves(trees, i, sizes.data(), [&](std::int64_t leaf, const std::int32_t *coarse) {
            Cell *path = paths + (i * trees.n_cells + leaf) * n_scales;
            std::copy_n(coarse, n_scales - 1, path);
            path[n_scales - 1] = static_cast<Cell>(leaf);
        });
    });
}

// The paths of a row are fetched into the cache while those of the row before it are copied.
template <class Cell>
void expand_leaves(const Cell *leaves, std::int64_t n_rows, const Cell *paths, std::int64_t n_trees,
                   std::int64_t n_cells, std::int64_t n_scales, Cell *cells, int threads) {
    constexpr std::int64_t kTile = 64;
    if (std::any_of(leaves, leaves + n_rows * n_trees, [=](Cell leaf) { return leaf >= n_cells; }))
        throw std::invalid_argument("leaves must be below the number of cells; got larger ones.");
    const auto path = [=](std::int64_t r, std::int64_t i) {
        return paths + (i * n_cells + leaves[r * n_trees + i]) * n_scales;
    };
    with_constant(n_scales, [=](auto length) {
        parallel_tiles(n_rows, kTile, threads, [=] {
            return [=](std::int64_t begin, std::int64_t end) {
                for (std::int64_t r = begin; r < end; ++r) {
                    for (std::int64_t i = 0; i < n_trees && r + 1 < end; ++i)
                        __builtin_prefetch(path(r + 1, i));
                    for (std::int64_t i = 0; i < n_trees; ++i)
                        std::copy_n(path(r, i), length, cells + (r * n_trees + i) * length);
                }
            };
        });
    });
}

#define ISOKERN_INSTANTIATE(Cell)                                                                                      \
    template void find_paths(const ScaledTrees &, Cell *);                                                             \
    template void expand_leaves(const Cell *, std::int64_t, const Cell *, std::int64_t, std::int64_t, std::int64_t,    \
                                Cell *, int);
ISOKERN_INSTANTIATE(std::uint8_t)
ISOKERN_INSTANTIATE(std::uint16_t)
ISOKERN_INSTANTIATE(std::uint32_t)

} // namespace isokern
