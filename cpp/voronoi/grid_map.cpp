// Entry point of Voronoi maps on a grid: decides whether the grid pays, and quantises points and rows.
//
// In: points, samples; then rows. Out: cells. Distances of a row to all points of the pool come from int8 dot products
// (grid_bounds.hpp); the search among them is that of nested samples with a single size (nested_search.hpp).
#include "voronoi/grid_map.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include "common/densify.hpp"
#include "common/threads.hpp"
#include "voronoi/grid_bounds.hpp"
#include "voronoi/nested_search.hpp"

namespace isokern {
namespace {

// With fewer columns than kFewestColumns and more cells than kFewCells, VoronoiMap is faster: it prunes whole chunks of
// points by their bounding boxes, while the grid compares all of them.
constexpr std::int64_t kFewestColumns = 48, kFewCells = 256;

template <class Value> struct Points {
    std::vector<Value> written_out; // sparse points, densified; empty for dense ones
    NestedSamples nested;
    GridBounds<Value> bounds;
};

// Whether all rows are near enough to the grid for tight bounds: 0.01 steps in the root mean square over columns.
template <class Rows> bool lie_on(const Grid &grid, const Rows &rows, int threads) {
    const double most = 0.01 * std::sqrt(static_cast<double>(rows.n_columns));
    std::atomic<bool> are_on{true};
    parallel_tiles(rows.n_rows, 64, threads, [&] {
        return [&, row = GridRow(grid, rows.n_columns)](std::int64_t begin, std::int64_t end) mutable {
            for (std::int64_t r = begin; are_on && r < end; ++r)
                if (!(row.enter(rows, r) <= most))
                    are_on = false;
        };
    });
    return are_on;
}

} // namespace

struct GridMap::Layout {
    std::variant<Points<float>, Points<double>> any;
};

GridMap::GridMap(std::unique_ptr<const Layout> layout) : layout_(std::move(layout)) {}
GridMap::~GridMap() = default;

std::int64_t GridMap::n_partitionings() const {
    return std::visit([](const auto &points) { return points.nested.n_samples; }, layout_->any);
}

namespace {

template <class Value>
Points<Value> lay_out(const DenseRows<Value> &points, const Grid &grid, std::span<const std::int32_t> samples,
                      std::int64_t n_partitionings, std::vector<Value> written_out = {}) {
    const std::int64_t n_cells = static_cast<std::int64_t>(samples.size()) / n_partitionings;
    NestedSamples nested(find_equal_points(points), samples, n_partitionings, std::span(&n_cells, 1), false);
    GridBounds<Value> bounds(points, grid, nested.pool.points);
    return {std::move(written_out), std::move(nested), std::move(bounds)};
}

template <class Value>
Points<Value> lay_out(const CsrRows<Value> &points, const Grid &grid, std::span<const std::int32_t> samples,
                      std::int64_t n_partitionings) {
    auto values = write_out(points);
    const DenseRows<Value> rows{values.data(), points.n_rows, points.n_columns};
    return lay_out(rows, grid, samples, n_partitionings, std::move(values));
}

template <class Value> bool is_narrow(const DenseRows<Value> &) { return true; }
template <class Value> bool is_narrow(const CsrRows<Value> &rows) { return rows.n_columns <= kFewColumns; }

// The grid of the points, if there is one and it pays.
template <class Rows> std::optional<Grid> find_grid(const Rows &points, std::int64_t n_cells) {
    if (!is_narrow(points) || n_cells > (points.n_columns < kFewestColumns ? kFewCells : kLargestNestedSize))
        return std::nullopt;
    return find_usable_grid(points);
}

} // namespace

std::unique_ptr<const GridMap> GridMap::find(const AnyRows &points, std::span<const std::int32_t> samples,
                                             std::int64_t n_partitionings) {
    return std::visit(
        [&](const auto &rows) -> std::unique_ptr<const GridMap> {
            const auto is_known = [&](std::int32_t p) { return p >= 0 && p < rows.n_rows; };
            if (samples.empty() || !std::all_of(samples.begin(), samples.end(), is_known))
                throw std::invalid_argument("samples must be numbers of points.");
            const auto grid = find_grid(rows, static_cast<std::int64_t>(samples.size()) / n_partitionings);
            if (!grid)
                return nullptr;
            auto laid_out = std::make_unique<const Layout>(lay_out(rows, *grid, samples, n_partitionings));
            return std::unique_ptr<const GridMap>(new GridMap(std::move(laid_out)));
        },
        points);
}

template <class Rows, class Cell> bool GridMap::apply(const Rows &rows, Cell *cells, int threads) const {
    return std::visit(
        [&](const auto &points) {
            if (rows.n_columns != points.bounds.n_columns())
                throw std::invalid_argument("rows must have as many columns as the points; got another number of "
                                            "columns.");
            if (!lie_on(points.bounds.grid(), rows, threads))
                return false;
            const CellsOut out = cells;
            search_nested(points.nested, rows.n_rows, std::span(&out, 1), threads,
                          [&](std::int64_t tile) { return points.bounds.of(rows, tile); });
            return true;
        },
        layout_->any);
}

#define ISOKERN_INSTANTIATE(Rows)                                                                                      \
    template bool GridMap::apply(const Rows &, std::uint8_t *, int) const;                                             \
    template bool GridMap::apply(const Rows &, std::uint16_t *, int) const;                                            \
    template bool GridMap::apply(const Rows &, std::uint32_t *, int) const;
ISOKERN_INSTANTIATE(DenseRows<float>)
ISOKERN_INSTANTIATE(DenseRows<double>)
ISOKERN_INSTANTIATE(CsrRows<float>)
ISOKERN_INSTANTIATE(CsrRows<double>)

} // namespace isokern
