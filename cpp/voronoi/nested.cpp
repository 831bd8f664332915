// Entry point of nested Voronoi cells: checks samples and sizes, and chooses how distances are bounded.
//
// In: rows, samples, sizes. Out: cells for each size. Dense rows on a grid use int8 dot products (grid_bounds.hpp),
// other dense rows float32 matrix products, sparse rows an inverted index (both nested_bounds.hpp).
#include "voronoi/nested.hpp"

#include <algorithm>
#include <stdexcept>

#include "voronoi/grid_bounds.hpp"
#include "voronoi/nested_bounds.hpp"
#include "voronoi/nested_search.hpp"

namespace isokern {
namespace {

template <class Value>
void search(const NestedSamples &nested, const DenseRows<Value> &rows, std::span<const CellsOut> cells, int threads) {
    if (const auto grid = find_usable_grid(rows)) {
        const GridBounds<Value> table(rows, *grid, nested.pool.points);
        search_nested(nested, rows.n_rows, cells, threads, [&](std::int64_t tile) { return table.of(rows, tile); });
    } else {
        const DenseBounds<Value> table(rows, nested.pool.points);
        search_nested(nested, rows.n_rows, cells, threads, [&](std::int64_t tile) { return table.of_rows(tile); });
    }
}

// Whether bounds come for all points of the pool at once, not panel by panel: those of the inverted index do.
template <class Rows> constexpr bool kAtOnce = false;
template <class Value> constexpr bool kAtOnce<CsrRows<Value>> = true;

template <class Value>
void search(const NestedSamples &nested, const CsrRows<Value> &rows, std::span<const CellsOut> cells, int threads) {
    const SparseBounds<Value> table(rows, nested.pool.points);
    search_nested(nested, rows.n_rows, cells, threads, [&](std::int64_t tile) { return table.of_rows(tile); });
}

} // namespace

template <class Rows>
void nested_cells(const Rows &rows, std::span<const std::int32_t> samples, std::int64_t n_samples,
                  std::span<const std::int64_t> sizes, std::span<const CellsOut> cells, int threads) {
    const auto is_row = [&](std::int32_t p) { return p >= 0 && p < rows.n_rows; };
    const auto is_no_rise = [](std::int64_t a, std::int64_t b) { return a >= b; };
    if (sizes.empty() || sizes.front() < 1 || n_samples < 1 ||
        std::adjacent_find(sizes.begin(), sizes.end(), is_no_rise) != sizes.end() ||
        static_cast<std::int64_t>(samples.size()) != n_samples * sizes.back())
        throw std::invalid_argument("sizes must ascend strictly from at least 1 to the length of the samples.");
    if (sizes.back() > kLargestNestedSize)
        throw std::invalid_argument("samples must have fewer than 2^16 points.");
    if (!std::all_of(samples.begin(), samples.end(), is_row))
        throw std::invalid_argument("samples must be row numbers from 0 to n_rows - 1.");
    const NestedSamples nested(find_equal_points(rows), samples, n_samples, sizes, kAtOnce<Rows>);
    search(nested, rows, cells, threads);
}

#define ISOKERN_INSTANTIATE(Rows)                                                                                      \
    template void nested_cells(const Rows &, std::span<const std::int32_t>, std::int64_t,                              \
                               std::span<const std::int64_t>, std::span<const CellsOut>, int);
ISOKERN_INSTANTIATE(DenseRows<float>)
ISOKERN_INSTANTIATE(DenseRows<double>)
ISOKERN_INSTANTIATE(CsrRows<float>)
ISOKERN_INSTANTIATE(CsrRows<double>)

} // namespace isokern
