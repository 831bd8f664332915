// Nearest points of each sample, for data on a grid with many columns: filter and refine along principal axes.
//
// In: dense points on a grid (grid.hpp), their samples of one size, principal axes; then rows near the grid. Out:
// cells. This is the search of a VA+-file (vector approximations of principal components):
//  - Filter: the coordinates of rows and points along the axes, quantised to bytes. Int8 products (VNNI) give the
//    squared distance between quantised coordinates to all points: the coarse bound. It limits the distance from below,
//    because a projection shortens distances and quantisation moves a point by no more than was measured.
//  - Refine: points that may be nearest by their coarse bounds get the squared distance between levels, by int8
//    products over all columns. The first to get it are those with the smallest coarse bounds; they limit how far the
//    search has to go. Exact distances decide among equals.
// Samples that overlap little are searched one by one, others all at once (search.hpp).
//
// The axes are rotated among themselves before coordinates are quantised: all then have about the same variance, and
// one step size suits them all.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "common/threads.hpp"
#include "simd/products.hpp"
#include "voronoi/chunk_search.hpp"
#include "voronoi/distance.hpp"
#include "voronoi/engine.hpp"
#include "voronoi/grid_bounds.hpp"
#include "voronoi/rounding.hpp"
#include "voronoi/scans.hpp"
#include "voronoi/search.hpp"

namespace isokern {

// Coordinates of levels along rotated principal axes.
class Projection {
  public:
    //   axes: orthonormal, n_columns x n      centre: about the mean of the levels
    Projection(const Axes &axes, std::vector<float> centre)
        : n_axes_(axes.n), centre_(std::move(centre)),
          panels_(static_cast<std::size_t>(n_panels(axes.n) * kPanel * n_columns())),
          no_offsets_(static_cast<std::size_t>(n_panels(axes.n) * kPanel)) {
        const std::vector<double> rotation = cosines(axes.n);
        for (std::int64_t j = 0; j < n_columns(); ++j)
            for (std::int64_t b = 0; b < axes.n; ++b)
                panels_[panel_index(b, j, n_columns())] = static_cast<float>(std::inner_product(
                    axes.values + j * axes.n, axes.values + (j + 1) * axes.n, rotation.begin() + b * axes.n, 0.0));
    }

    std::int64_t n_axes() const { return n_axes_; }
    std::int64_t n_columns() const { return std::ssize(centre_); }

    // How far the computed coordinates of levels can be from the true ones (rounding.hpp), for a row and a point
    // together.
    double error() const {
        const auto d = static_cast<double>(n_columns());
        return 2.02 * std::sqrt(static_cast<double>(n_axes_)) * static_cast<double>(n_roundings(n_columns()) + 2) *
               0x1p-24 * 255.0 * std::sqrt(d);
    }

    // Computes coordinates for a group of rows at a time; owns the scratch buffers of one thread.
    class Scratch {
      public:
        explicit Scratch(const Projection &projection)
            : projection_(projection), products_(best_products()),
              packed_(static_cast<std::size_t>(products_.group * projection.n_columns())),
              found_(static_cast<std::size_t>(products_.group) * projection.no_offsets_.size()) {}

        std::int64_t group() const { return products_.group; }

        // Enters the levels of row k < group().
        void enter(std::int64_t k, std::span<const std::uint8_t> levels) {
            for (std::size_t j = 0; j < levels.size(); ++j)
                packed_[j * static_cast<std::size_t>(products_.group) + k] = levels[j] - projection_.centre_[j];
        }

        //  coordinates[k, a] = sum_j axes[j, a] (levels[k, j] - centre[j]) for k < n
        // lower_bounds with offsets 0 gives this times -2.
        void project(std::int64_t n, float *coordinates) {
            const std::int64_t n_axes = projection_.n_axes_, stride = n_panels(n_axes) * kPanel;
            products_.lower_bounds(packed_.data(), 1, projection_.n_columns(), projection_.panels_.data(),
                                   n_panels(n_axes), projection_.no_offsets_.data(), found_.data(), stride);
            for (std::int64_t k = 0; k < n; ++k)
                std::transform(found_.begin() + k * stride, found_.begin() + k * stride + n_axes,
                               coordinates + k * n_axes, [](float x) { return -0.5f * x; });
        }

      private:
        const Projection &projection_;
        const Products &products_;
        std::vector<float> packed_, found_;
    };

  private:
    // The orthogonal n x n matrix of the discrete cosine transform (DCT-II).
    static std::vector<double> cosines(std::int64_t n) {
        std::vector<double> matrix;
        for (std::int64_t b = 0; b < n; ++b)
            for (std::int64_t a = 0; a < n; ++a)
                matrix.push_back(
                    std::sqrt((b == 0 ? 1.0 : 2.0) / static_cast<double>(n)) *
                    std::cos(std::numbers::pi * static_cast<double>((2 * a + 1) * b) / static_cast<double>(2 * n)));
        return matrix;
    }

    std::int64_t n_axes_;
    std::vector<float> centre_;
    std::vector<float> panels_, no_offsets_; // the axes, packed like points
};

template <class Value> class ReducedSearch final : public Engine {
  public:
    ReducedSearch(const DenseRows<Value> &points, const Samples &samples, const Grid &grid, const Axes &axes)
        : points_(points), pool_(points, samples), size_(samples.largest()), numbers_(coarse_numbers()), grid_(grid),
          width_((points.n_columns + kByteColumns - 1) / kByteColumns * kByteColumns),
          levels_(static_cast<std::size_t>(pool_.size() * width_)), offsets_(static_cast<std::size_t>(pool_.size())),
          furthest_off_(lay_out_points()), projection_(axes, mean_levels()), coarse_(coarse_bounds()) {}

    bool serves(const AnyRows &rows, int threads) const override {
        return std::visit([&](const auto &table) { return are_near(grid_, table, threads); }, rows);
    }

    void apply(const AnyRows &rows, std::span<const CellsOut> cells, int threads) const override {
        std::visit(
            [&]<class Rows>(const Rows &table) {
                const std::int64_t tile = std::min(table.n_rows, kTile);
                parallel_tiles(table.n_rows, tile, threads, [&] { return Worker<Rows>(*this, table, tile, cells[0]); });
            },
            rows);
    }

  private:
    template <class Rows> class Worker;

    static constexpr std::int64_t kTile = 16;

    // Whether samples overlap little. Each then has coarse bounds of its own, although some points are in several: a
    // search of one sample is so much simpler that this was faster up to this ratio.
    bool is_by_sample() const { return 2 * pool_.n_partitionings * size_ <= 3 * pool_.size(); }

    // By sample: its points, place by place. A place whose point repeats an earlier one repeats the sample's first.
    // Otherwise all points of the pool.
    std::vector<std::int32_t> coarse_numbers() const {
        std::vector<std::int32_t> numbers(static_cast<std::size_t>(pool_.size()));
        std::iota(numbers.begin(), numbers.end(), 0);
        if (!is_by_sample())
            return numbers;
        std::vector<std::int32_t> by_sample(static_cast<std::size_t>(pool_.n_partitionings * size_), -1);
        for (const std::int32_t p : numbers)
            for (std::int64_t k = pool_.member_starts[p]; k < pool_.member_ends[p]; ++k)
                by_sample[pool_.members[k].partitioning * size_ + pool_.members[k].place] = p;
        for (std::size_t k = 0; k < by_sample.size(); ++k)
            if (by_sample[k] < 0)
                by_sample[k] = by_sample[k / static_cast<std::size_t>(size_) * static_cast<std::size_t>(size_)];
        return by_sample;
    }

    // Writes the levels of all points and their offsets; returns the largest distance of a point from its levels.
    double lay_out_points() {
        std::vector<double> off(offsets_.size());
        parallel_tiles(pool_.size(), 256, 0, [&] {
            return [&, point = GridRow(grid_, points_.n_columns)](std::int64_t begin, std::int64_t end) mutable {
                for (std::int64_t p = begin; p < end; ++p) {
                    off[p] = point.enter(points_, pool_.points[p]);
                    offsets_[p] = point.offset();
                    std::copy(point.levels().begin(), point.levels().end(), levels_.begin() + p * width_);
                }
            };
        });
        return *std::max_element(off.begin(), off.end());
    }

    std::span<const std::uint8_t> levels(std::int64_t p) const {
        return std::span(levels_).subspan(static_cast<std::size_t>(p * width_),
                                          static_cast<std::size_t>(points_.n_columns));
    }

    std::int64_t n_axes() const { return projection_.n_axes(); }

    std::vector<float> mean_levels() const {
        std::vector<std::int64_t> sums(static_cast<std::size_t>(points_.n_columns));
        for (std::int64_t p = 0; p < pool_.size(); ++p)
            std::transform(sums.begin(), sums.end(), levels(p).begin(), sums.begin(), std::plus<std::int64_t>());
        std::vector<float> means(sums.size());
        std::transform(sums.begin(), sums.end(), means.begin(),
                       [&](std::int64_t sum) { return static_cast<float>(sum / static_cast<double>(pool_.size())); });
        return means;
    }

    // Quantises the coordinates of all points.
    GridBounds<float> coarse_bounds() const {
        std::vector<float> coordinates(static_cast<std::size_t>(pool_.size() * n_axes()));
        const std::int64_t group = best_products().group;
        parallel_tiles(pool_.size(), group, 0, [&] {
            return [&, projector = Projection::Scratch(projection_)](std::int64_t begin, std::int64_t end) mutable {
                for (std::int64_t p = begin; p < end; ++p)
                    projector.enter(p - begin, levels(p));
                projector.project(end - begin, coordinates.data() + begin * n_axes());
            };
        });
        return GridBounds<float>({coordinates.data(), pool_.size(), n_axes()}, numbers_, Grid::around(coordinates));
    }

    DenseRows<Value> points_;
    Pool pool_;
    std::int64_t size_;                 // of the samples
    std::vector<std::int32_t> numbers_; // the points that get coarse bounds
    Grid grid_;
    std::int64_t width_;                // n_columns, padded with zeros to a multiple of kByteColumns
    std::vector<std::uint8_t> levels_;  // of the points, n x width_
    std::vector<std::int32_t> offsets_; // by point (GridRow)
    double furthest_off_;               // the largest distance of a point from its levels, in steps
    Projection projection_;
    GridBounds<float> coarse_;
};

// Finds the cells of tiles of rows; owns the scratch buffers of one thread.
template <class Value> template <class Rows> class ReducedSearch<Value>::Worker {
  public:
    Worker(const ReducedSearch &engine, const Rows &rows, std::int64_t tile, CellsOut cells)
        : engine_(engine), rows_(rows), cells_(cells), products_(best_products()), scans_(best_scans()),
          n_points_(std::ssize(engine.numbers_)), stride_(n_panels(n_points_) * kPanel),
          row_(engine.grid_, rows.n_columns), bytes_(static_cast<std::size_t>(tile * engine.width_)),
          row_offsets_(static_cast<std::size_t>(tile)), off_(row_offsets_.size()), projector_(engine.projection_),
          coordinates_(static_cast<std::size_t>(tile * engine.n_axes())),
          projected_{coordinates_.data(), tile, engine.n_axes()}, coarse_(engine.coarse_.of(projected_, tile)),
          bounds_(static_cast<std::size_t>((tile + coarse_.group() - 1) / coarse_.group() * coarse_.group() * stride_)),
          indices_(static_cast<std::size_t>(n_points_ + kSpare)), ordered_(indices_.size()),
          coarse_limits_(static_cast<std::size_t>(engine.pool_.n_partitionings)), search_(engine.pool_),
          distances_(rows, engine.points_, engine.pool_.points), ends_(coarse_limits_.size()),
          found_(coarse_limits_.size()) {}

    void operator()(std::int64_t begin, std::int64_t end) {
        enter(begin, end);
        coarse_.enter(0, end - begin);
        coarse_.fill(0, (end - begin + coarse_.group() - 1) / coarse_.group(), 0, n_panels(n_points_), bounds_.data(),
                     stride_);
        for (std::int64_t r = begin; r < end; ++r) {
            begin_row(r, r - begin);
            if (engine_.is_by_sample())
                find_by_sample(bounds_.data() + (r - begin) * stride_);
            else
                find_in_pool(bounds_.data() + (r - begin) * stride_);
            write_cells(cells_, r, std::span(std::as_const(found_)));
        }
    }

  private:
    static constexpr std::size_t kBatch = 16;  // points that get distances before limits are lowered
    static constexpr std::int64_t kSome = 512; // points from which the first limit is estimated
    static constexpr std::int64_t kFirst = 8;  // points of a sample that are looked at first, on average
    static constexpr double kMargin = 1e-6;

    // Takes rows begin to end as the tile.
    //   out: bytes_, row_offsets_, off_, coordinates_
    void enter(std::int64_t begin, std::int64_t end) {
        for (std::int64_t first = begin; first < end; first += projector_.group()) {
            const std::int64_t last = std::min(first + projector_.group(), end);
            for (std::int64_t r = first; r < last; ++r) {
                off_[r - begin] = row_.enter(rows_, r);
                row_offsets_[r - begin] = row_.sum_of_squares();
                std::transform(row_.levels().begin(), row_.levels().end(),
                               bytes_.begin() + (r - begin) * engine_.width_,
                               [](std::uint8_t level) { return static_cast<std::int8_t>(level - 128); });
                projector_.enter(r - first, row_.levels());
            }
            projector_.project(last - first, coordinates_.data() + (first - begin) * engine_.n_axes());
        }
    }

    // In each sample, the point with the smallest coarse bound limits how far the nearest can be, and so which other
    // points can be nearest.
    //   in: coarse bounds of the current row      out: found_
    void find_by_sample(const float *bounds) {
        const std::int64_t t = engine_.pool_.n_partitionings, size = engine_.size_;
        points_.clear();
        for (std::int64_t i = 0; i < t; ++i)
            choose(engine_.numbers_[i * size + scans_.least_index(bounds + i * size, size)]);
        measure();
        std::transform(squares_.begin(), squares_.end(), coarse_limits_.begin(),
                       [&](float square) { return limit_of(square + width_); });
        points_.clear();
        places_.clear();
        for (std::int64_t i = 0; i < t; ++i) {
            const std::int64_t n = scans_.indices_within(bounds + i * size, size, coarse_limits_[i], indices_.data());
            places_.insert(places_.end(), indices_.begin(), indices_.begin() + n);
            ends_[i] = std::ssize(places_);
            for (std::int64_t l = 0; l < n; ++l)
                choose(engine_.numbers_[i * size + indices_[l]]);
        }
        measure();
        for (std::int64_t i = 0; i < t; ++i)
            found_[i] = nearest(i == 0 ? 0 : ends_[i - 1], ends_[i]);
    }

    // The place of the nearest among the chosen points begin to end. Exact distances decide if several are within the
    // rounding error; of equal ones the first place wins.
    std::int32_t nearest(std::int64_t begin, std::int64_t end) {
        const float limit = *std::min_element(squares_.begin() + begin, squares_.begin() + end) + width_;
        const auto is_open = [&](float square) { return square <= limit; };
        const auto first = std::find_if(squares_.begin() + begin, squares_.begin() + end, is_open);
        std::int64_t best = first - squares_.begin();
        for (std::int64_t l = best + 1; l < end; ++l)
            if (is_open(squares_[l]) && distances_.to(points_[l]) < distances_.to(points_[best]))
                best = l;
        return places_[best];
    }

    // Adds a point to those whose distances measure() computes, and prefetches it.
    void choose(std::int32_t p) {
        for (std::int64_t j = 0; j < engine_.width_; j += kByteColumns)
            __builtin_prefetch(engine_.levels_.data() + p * engine_.width_ + j);
        points_.push_back(p);
    }

    //  squares_[l] = the squared distance of the current row's levels to those of points_[l]
    void measure() {
        squares_.resize(points_.size());
        products_.byte_distances_at(bytes_here_, row_offset_, engine_.width_, engine_.levels_.data(),
                                    engine_.offsets_.data(), points_.data(), std::ssize(points_), squares_.data());
    }

    // First among the points with the smallest coarse bounds. If there is one of each sample among them, the nearest of
    // these limit how far the search has to go.
    //   in: coarse bounds of the current row      out: found_
    void find_in_pool(const float *bounds) {
        search_.begin();
        std::fill(coarse_limits_.begin(), coarse_limits_.end(), HUGE_VALF);
        float done = -1.0f, limit = first_limit(bounds);
        for (std::int64_t n = 0; n < n_points_ && done < limit;) {
            n = scans_.indices_within(bounds, n_points_, limit, indices_.data());
            look_at(bounds, order(bounds, n, done, limit));
            done = limit;
            limit = *std::max_element(coarse_limits_.begin(), coarse_limits_.end());
            if (limit == HUGE_VALF)
                limit = 1.5f * done + 1.0f;
        }
        search_.settle(distances_, found_);
    }

    void begin_row(std::int64_t r, std::int64_t k) {
        distances_.begin_row(r);
        bytes_here_ = bytes_.data() + k * engine_.width_;
        row_offset_ = row_offsets_[k];
        width_ = engine_.grid_.width(off_[k], engine_.furthest_off_, rows_.n_columns);
        steps_ = 1.0 / coarse_.step();
        slack_ = coarse_.off(k) + engine_.projection_.error() * steps_;
    }

    // A coarse bound that about kFirst points of each sample are within, from every n-th point.
    float first_limit(const float *bounds) {
        const std::int64_t step = std::max<std::int64_t>(1, n_points_ / kSome);
        some_.clear();
        for (std::int64_t p = 0; p < n_points_; p += step)
            some_.push_back(bounds[p]);
        const auto at = some_.begin() + std::min(kFirst * std::ssize(some_) / engine_.size_, std::ssize(some_) - 1);
        std::nth_element(some_.begin(), at, some_.end());
        return *at;
    }

    // Lists those of the first n of indices_ whose bounds are above `done`, in buckets by their bounds (counting sort).
    std::span<const std::int32_t> order(const float *bounds, std::int64_t n, float done, float limit) {
        constexpr std::size_t kBuckets = 64;
        const float per_unit = static_cast<float>(kBuckets - 1) / (limit + 1.0f);
        const auto bucket_of = [&](std::int32_t p) { return static_cast<std::size_t>(bounds[p] * per_unit); };
        const auto begin = indices_.begin();
        const auto end = std::remove_if(begin, begin + n, [&](std::int32_t p) { return bounds[p] <= done; });
        std::array<std::int32_t, kBuckets + 1> starts{};
        std::for_each(begin, end, [&](std::int32_t p) {
            ++starts[bucket_of(p) + 1];
            __builtin_prefetch(engine_.pool_.member_starts.data() + p);
            __builtin_prefetch(engine_.pool_.member_ends.data() + p);
        });
        std::partial_sum(starts.begin(), starts.end(), starts.begin());
        std::for_each(begin, end, [&](std::int32_t p) {
            ordered_[starts[bucket_of(p)]++] = p;
            __builtin_prefetch(engine_.pool_.members.data() + engine_.pool_.member_starts[p]);
        });
        return std::span(ordered_).first(static_cast<std::size_t>(end - begin));
    }

    // Enters those of the points into the search that may be nearest in one of their samples, kBatch at a time.
    void look_at(const float *bounds, std::span<const std::int32_t> points) {
        points_.clear();
        for (const std::int32_t p : points)
            if (may_be_nearest(p, bounds[p])) {
                choose(p);
                if (points_.size() == kBatch)
                    enter_points();
            }
        enter_points();
    }

    std::span<const Member> members(std::int32_t p) const {
        const Pool &pool = engine_.pool_;
        return {pool.members.begin() + pool.member_starts[p], pool.members.begin() + pool.member_ends[p]};
    }

    bool may_be_nearest(std::int32_t p, float bound) const {
        const std::span in = members(p);
        return std::any_of(in.begin(), in.end(),
                           [&](const Member &member) { return bound <= coarse_limits_[member.partitioning]; });
    }

    void enter_points() {
        measure();
        for (std::size_t l = 0; l < points_.size(); ++l) {
            search_.enter(points_[l], squares_[l], squares_[l] + width_);
            const float limit = limit_of(squares_[l] + width_);
            for (const Member &member : members(points_[l]))
                coarse_limits_[member.partitioning] = std::min(coarse_limits_[member.partitioning], limit);
        }
        points_.clear();
    }

    // The largest coarse bound of a point whose levels are within this squared distance. kMargin covers that axes are
    // orthonormal to 1e-10 only, and the rounding of the result.
    float limit_of(float square) const {
        const double steps = std::sqrt(static_cast<double>(square)) * steps_ * (1.0 + kMargin) + slack_;
        return static_cast<float>(steps * steps * (1.0 + kMargin));
    }

    const ReducedSearch &engine_;
    const Rows &rows_;
    CellsOut cells_;
    const Products &products_;
    const Scans &scans_;
    std::int64_t n_points_, stride_; // stride_ of a row in bounds_
    GridRow row_;
    std::vector<std::int8_t> bytes_;        // levels of the tile's rows less 128, width_ apart
    std::vector<std::int32_t> row_offsets_; // by row: the sum of its squared levels
    std::vector<double> off_;               // by row: its distance from its levels, in steps
    Projection::Scratch projector_;
    std::vector<float> coordinates_;
    DenseRows<float> projected_; // view of coordinates_
    GridBounds<float>::Scratch<DenseRows<float>> coarse_;
    std::vector<float> bounds_, some_;            // coarse bounds of the tile's rows to all points; some of one row's
    std::vector<std::int32_t> indices_, ordered_; // points within a limit; the new ones, in buckets
    float width_ = 0.0f;                          // of the current row: see Grid::width
    const std::int8_t *bytes_here_ = nullptr;     // of the current row
    std::int32_t row_offset_ = 0;
    double steps_ = 1.0, slack_ = 0.0; // coarse steps per unit; how many coarse distances of the row can be off
    std::vector<float> coarse_limits_; // by sample: the largest coarse bound of a point that may be nearest
    Search<float> search_;
    Distances<Rows, DenseRows<Value>> distances_;
    std::vector<std::int32_t> points_; // chosen points
    std::vector<float> squares_;       // their squared distances
    std::vector<std::int32_t> places_; // by sample: the places of the chosen points, and where they end
    std::vector<std::int64_t> ends_;
    std::vector<std::int32_t> found_; // by sample: the place of the nearest point
};

} // namespace isokern
