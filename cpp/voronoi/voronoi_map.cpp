// Entry point of Voronoi maps: checks samples and axes, and chooses the layout of the points.
//
// In: points, samples, axes; then rows. Out: cells. Dense points, and sparse ones of few columns after densifying, are
// searched by blocked matrix products (voronoi/dense_layout.hpp); other sparse points by an inverted index
// (voronoi/sparse_layout.hpp). The layout depends on the points only; rows may be dense or sparse with either.
#include "voronoi/voronoi_map.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <stdexcept>
#include <utility>

#include "common/densify.hpp"
#include "common/threads.hpp"
#include "voronoi/dense_layout.hpp"
#include "voronoi/sparse_layout.hpp"

namespace isokern {
namespace {

template <class Rows> Pool pool_of(const Rows &points, std::span<const std::int32_t> samples, std::int64_t t) {
    return {find_equal_points(points), samples.data(), t, static_cast<std::int64_t>(samples.size()) / t};
}

//  |axes' axes - I| < 1e-10 in every entry      in: axes, n_columns x n
// The bounds of voronoi/dense_layout.hpp are only valid for orthonormal axes.
bool are_orthonormal(std::span<const double> axes, std::int64_t n_columns, std::int64_t n) {
    if (static_cast<std::int64_t>(axes.size()) != n_columns * n || n > n_columns)
        return false;
    std::vector<double> products(static_cast<std::size_t>(n * n), 0.0);
    for (std::int64_t j = 0; j < n_columns; ++j)
        for (std::int64_t a = 0; a < n; ++a)
            for (std::int64_t b = 0; b <= a; ++b)
                products[a * n + b] += axes[j * n + a] * axes[j * n + b];
    for (std::int64_t a = 0; a < n; ++a)
        for (std::int64_t b = 0; b <= a; ++b)
            if (!(std::abs(products[a * n + b] - (a == b)) < 1e-10))
                return false;
    return true;
}

} // namespace

struct VoronoiMap::Layout {
    template <class Value>
    Layout(const DenseRows<Value> &points, std::span<const std::int32_t> samples, std::int64_t t, const Axes &axes)
        : any(DenseLayout<Value>(points, pool_of(points, samples, t), axes)) {}

    template <class Value>
    Layout(const CsrRows<Value> &points, std::span<const std::int32_t> samples, std::int64_t t, const Axes &)
        : any(SparseLayout<Value>(points, pool_of(points, samples, t))) {}

    std::variant<DenseLayout<float>, DenseLayout<double>, SparseLayout<float>, SparseLayout<double>> any;
};

VoronoiMap::VoronoiMap(const AnyRows &points, std::span<const std::int32_t> samples, std::int64_t n_partitionings,
                       std::span<const double> axes)
    : n_partitionings_(n_partitionings) {
    std::visit([&](const auto &rows) { lay_out(rows, samples, axes); }, points);
}

template <class Value>
void VoronoiMap::lay_out(const CsrRows<Value> &points, std::span<const std::int32_t> samples,
                         std::span<const double> axes) {
    if (points.n_columns > kFewColumns)
        return lay_out<CsrRows<Value>>(points, samples, axes);
    written_out_ = write_out(points);
    const auto *values = std::get<std::vector<Value>>(written_out_).data();
    lay_out(DenseRows<Value>{values, points.n_rows, points.n_columns}, samples, axes);
}

template <class Rows>
void VoronoiMap::lay_out(const Rows &points, std::span<const std::int32_t> samples, std::span<const double> axes) {
    const auto is_known = [&](std::int32_t p) { return p >= 0 && p < points.n_rows; };
    if (samples.empty() || !std::all_of(samples.begin(), samples.end(), is_known))
        throw std::invalid_argument("samples must be numbers of points.");
    n_columns_ = points.n_columns;
    const auto n_axes = static_cast<std::int64_t>(axes.size()) / std::max<std::int64_t>(1, n_columns_);
    if (!are_orthonormal(axes, n_columns_, n_axes))
        throw std::invalid_argument("axes must be orthonormal directions.");
    layout_ = std::make_unique<const Layout>(points, samples, n_partitionings_, Axes{axes.data(), n_axes});
}

VoronoiMap::~VoronoiMap() = default;

template <class Rows, class Cell> void VoronoiMap::apply(const Rows &rows, Cell *cells, int threads) const {
    if (rows.n_columns != n_columns_)
        throw std::invalid_argument("rows must have as many columns as the points; got another number of columns.");
    std::visit([&](const auto &layout) { layout.apply(rows, n_partitionings_, cells, threads); }, layout_->any);
}

#define ISOKERN_INSTANTIATE(Rows)                                                                                      \
    template void VoronoiMap::apply(const Rows &, std::uint8_t *, int) const;                                          \
    template void VoronoiMap::apply(const Rows &, std::uint16_t *, int) const;                                         \
    template void VoronoiMap::apply(const Rows &, std::uint32_t *, int) const;
ISOKERN_INSTANTIATE(DenseRows<float>)
ISOKERN_INSTANTIATE(DenseRows<double>)
ISOKERN_INSTANTIATE(CsrRows<float>)
ISOKERN_INSTANTIATE(CsrRows<double>)

} // namespace isokern
