// Entry point of Voronoi maps: checks samples, and chooses the engine.
//
// In: points, samples, sizes; then rows. Out: cells. The rule, by what was faster in measurements:
//   - Sparse points of up to kFewColumns columns are densified.
//   - Points on a grid (pixels, counts, 0/1; grid.hpp), if the CPU multiplies bytes, for rows on the grid too: with
//     one size, many cells, many columns and axes that explain most of the variance, ReducedSearch, which filters by
//     bytes along these axes; else NestedSearch<GridBounds>, brute force on bytes, if the grid has no more steps than
//     the CPU's products take. Not with few columns and many cells, where pruning wins.
//   - Several sizes: NestedSearch, brute force once for all sizes, with ProductBounds or IndexBounds.
//   - One size, dense points: ChunkSearch, matrix products pruned by bounding boxes and principal axes.
//   - One size, sparse points of many columns: IndexSearch, an inverted index.
// The general engine of a map on a grid is made when rows off the grid come first.
#include "voronoi/voronoi_map.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "common/densify.hpp"
#include "simd/byte_products.hpp"
#include "voronoi/axes.hpp"
#include "voronoi/bounds.hpp"
#include "voronoi/chunk_search.hpp"
#include "voronoi/index_search.hpp"
#include "voronoi/nested_search.hpp"
#include "voronoi/reduced_search.hpp"

namespace isokern {
namespace {

// With fewer columns than kFewestColumns and more cells than kFewCells, ChunkSearch beats brute force on the grid.
constexpr std::int64_t kFewestColumns = 48, kFewCells = 256;
// From so many cells and columns on, ReducedSearch beats brute force on the grid (measured on an AMD Zen 4).
constexpr std::int64_t kManyCells = 256, kManyColumns = 128;

// The number of axes in an array of n_columns x n.
std::int64_t n_of(const std::vector<double> &axes, std::int64_t n_columns) {
    return std::ssize(axes) / std::max<std::int64_t>(1, n_columns);
}

void check(const Samples &samples, std::int64_t n_points) {
    const auto is_no_rise = [](std::int64_t a, std::int64_t b) { return a >= b; };
    const auto &sizes = samples.sizes;
    if (sizes.empty() || sizes.front() < 1 || samples.n < 1 ||
        std::adjacent_find(sizes.begin(), sizes.end(), is_no_rise) != sizes.end() ||
        std::ssize(samples.numbers) != samples.n * samples.largest())
        throw std::invalid_argument("sizes must ascend strictly from at least 1 to the length of the samples.");
    if (sizes.size() > 1 && samples.largest() > kLargestNestedSize)
        throw std::invalid_argument("samples of several sizes must have fewer than 2^16 points.");
    const auto is_point = [&](std::int32_t p) { return p >= 0 && p < n_points; };
    if (!std::all_of(samples.numbers.begin(), samples.numbers.end(), is_point))
        throw std::invalid_argument("samples must be numbers of points.");
}

// The grid of the points, if there is one and it pays.
template <class Rows> std::optional<Grid> find_paying_grid(const Rows &points, const Samples &samples) {
    const bool can_prune = samples.sizes.size() == 1 && points.n_columns < kFewestColumns;
    if (samples.largest() > (can_prune ? kFewCells : kLargestNestedSize))
        return std::nullopt;
    return find_usable_grid(points);
}

using MadeEngine = std::unique_ptr<const Engine>;

// Principal axes, n_columns x n.
std::vector<double> find_checked_axes(const VoronoiMap::FindAxes &find_axes, std::int64_t n_columns) {
    std::vector<double> axes = find_axes();
    if (!are_orthonormal(axes, n_columns, n_of(axes, n_columns)))
        throw std::invalid_argument("axes must be orthonormal directions.");
    return axes;
}

template <class Value>
MadeEngine make_grid_engine(const DenseRows<Value> &points, const Samples &samples, const Grid &grid,
                            const VoronoiMap::FindAxes &find_axes) {
    if (samples.sizes.size() == 1 && samples.largest() >= kManyCells && points.n_columns >= kManyColumns) {
        const std::vector<double> axes = find_checked_axes(find_axes, points.n_columns);
        const std::int64_t n_axes = n_of(axes, points.n_columns);
        if (n_axes > kBoxSides)
            return std::make_unique<ReducedSearch<Value>>(points, samples, grid, Axes{axes.data(), n_axes});
    }
    if (grid.n_steps() > best_byte_products()->n_steps)
        return nullptr;
    return std::make_unique<NestedSearch<GridBounds<Value>>>(points, samples, grid);
}
template <class Value>
MadeEngine make_grid_engine(const CsrRows<Value> &, const Samples &, const Grid &, const VoronoiMap::FindAxes &) {
    return nullptr; // such points have no grid
}

template <class Value>
MadeEngine make_general_engine(const DenseRows<Value> &points, const Samples &samples,
                               const VoronoiMap::FindAxes &find_axes) {
    if (samples.sizes.size() > 1)
        return std::make_unique<NestedSearch<ProductBounds<Value>>>(points, samples);
    const std::vector<double> axes = find_checked_axes(find_axes, points.n_columns);
    return std::make_unique<ChunkSearch<Value>>(points, samples, Axes{axes.data(), n_of(axes, points.n_columns)});
}
template <class Value>
MadeEngine make_general_engine(const CsrRows<Value> &points, const Samples &samples, const VoronoiMap::FindAxes &) {
    if (samples.sizes.size() > 1)
        return std::make_unique<NestedSearch<IndexBounds<Value>>>(points, samples);
    return std::make_unique<IndexSearch<Value>>(points, samples);
}

} // namespace

VoronoiMap::VoronoiMap(const AnyRows &points, std::span<const std::int32_t> samples, std::int64_t n_partitionings,
                       std::span<const std::int64_t> sizes, FindAxes find_axes)
    : points_(points), sizes_(sizes.begin(), sizes.end()), samples_{samples, n_partitionings, sizes_},
      find_axes_(std::move(find_axes)) {
    const auto grid = std::visit(
        [&](const auto &rows) {
            n_columns_ = rows.n_columns;
            check(samples_, rows.n_rows);
            densify(rows);
            return find_paying_grid(rows, samples_);
        },
        points);
    if (grid)
        on_grid_ =
            std::visit([&](const auto &rows) { return make_grid_engine(rows, samples_, *grid, find_axes_); }, points_);
    if (!on_grid_)
        general();
}

VoronoiMap::~VoronoiMap() = default;

// Replaces sparse points of few columns by dense ones.
template <class Value> void VoronoiMap::densify(const CsrRows<Value> &points) {
    if (points.n_columns > kFewColumns)
        return;
    const auto &values = densified_.emplace<std::vector<Value>>(write_out(points));
    points_ = DenseRows<Value>{values.data(), points.n_rows, points.n_columns};
}

const Engine &VoronoiMap::general() const {
    const std::lock_guard lock(making_);
    if (!general_)
        general_ =
            std::visit([&](const auto &rows) { return make_general_engine(rows, samples_, find_axes_); }, points_);
    return *general_;
}

void VoronoiMap::apply(const AnyRows &rows, std::span<const CellsOut> cells, int threads) const {
    const auto [n_rows, n_columns] =
        std::visit([](const auto &table) { return std::pair(table.n_rows, table.n_columns); }, rows);
    if (n_columns != n_columns_)
        throw std::invalid_argument("rows must have as many columns as the points; got another number of columns.");
    if (cells.size() != sizes_.size())
        throw std::invalid_argument("cells must have an array for each size.");
    if (n_rows == 0)
        return;
    const bool is_on_grid = on_grid_ && on_grid_->serves(rows, threads);
    (is_on_grid ? *on_grid_ : general()).apply(rows, cells, threads);
}

} // namespace isokern
