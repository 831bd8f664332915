// Nearest points of each sample, for data on a grid with many columns: filter and refine along principal axes.
//
// In: dense points on a grid (grid.hpp), their samples of one size, principal axes; then rows near the grid. Out:
// cells. This is the search of a VA+-file (vector approximations of principal components):
//  - Filter: the coordinates of rows and points along the axes, quantised to bytes. Their products give the squared
//    distance between quantised coordinates to all points: the coarse bound. It limits the distance from below,
//    because a projection shortens distances and quantisation moves a point by no more than was measured.
//  - Refine: points that may be nearest by their coarse bounds get the squared distance between levels, by
//    products of bytes over all columns. The first to get it are those with the smallest coarse bounds; they limit how
//    far the search has to go. Exact distances decide among equals.
// Samples that overlap little are searched one by one, each for a whole tile of rows while it is in the cache. Others
// are searched all at once, row by row (search.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "common/raw_vector.hpp"
#include "common/threads.hpp"
#include "simd/byte_products.hpp"
#include "simd/products.hpp"
#include "voronoi/axes.hpp"
#include "voronoi/distance.hpp"
#include "voronoi/engine.hpp"
#include "voronoi/grid_bounds.hpp"
#include "voronoi/projection.hpp"
#include "voronoi/scans.hpp"
#include "voronoi/search.hpp"

namespace isokern {

template <class Value> class ReducedSearch final : public Engine {
  public:
    ReducedSearch(const DenseRows<Value> &points, const Samples &samples, const Grid &grid, const Axes &axes)
        : points_(points), pool_(points, samples), size_(samples.largest()), numbers_(layout()), grid_(grid),
          width_(byte_width(points.n_columns)), levels_(numbers_.size() * static_cast<std::size_t>(width_)),
          offsets_(numbers_.size()), furthest_off_(lay_out_points()), projection_(axes, mean_levels()),
          coarse_(coarse_bounds()) {}

    bool serves(const AnyRows &rows, int threads) const override {
        return std::visit([&](const auto &table) { return are_near(grid_, table, threads); }, rows);
    }

    void apply(const AnyRows &rows, std::span<const CellsOut> cells, int threads) const override {
        std::visit(
            [&]<class Rows>(const Rows &table) {
                if (is_by_sample())
                    map<SampleWorker<Rows>>(table, cells[0], threads, 128);
                else
                    map<PoolWorker<Rows>>(table, cells[0], threads, 32);
            },
            rows);
    }

  private:
    template <class Rows> class Tile;
    template <class Rows> class SampleWorker;
    template <class Rows> class PoolWorker;

    //   most_rows: of a tile
    template <class Worker, class Rows>
    void map(const Rows &rows, CellsOut cells, int threads, std::int64_t most_rows) const {
        const std::int64_t tile = std::min(rows.n_rows, most_rows);
        parallel_tiles(rows.n_rows, tile, threads, [&] { return Worker(*this, rows, tile, cells); });
    }

    // Whether samples overlap little. Each is then laid out on its own, although some points are in several: a search
    // of one sample after another, each in the cache, was faster up to this ratio.
    bool is_by_sample() const { return 2 * pool_.n_partitionings * size_ <= 3 * pool_.size(); }

    // Coarse bounds of a row to the points of a sample: whole panels.
    std::int64_t sample_stride() const { return n_panels(size_) * kPanel; }

    // By sample: its points, place by place, sample_stride() apart. A place whose point repeats an earlier one, or that
    // fills a panel up, repeats the sample's first. Otherwise all points of the pool.
    std::vector<std::int32_t> layout() const {
        std::vector<std::int32_t> numbers(static_cast<std::size_t>(pool_.size()));
        std::iota(numbers.begin(), numbers.end(), 0);
        if (!is_by_sample())
            return numbers;
        const std::int64_t t = pool_.n_partitionings, stride = sample_stride();
        std::vector<std::int32_t> by_sample(static_cast<std::size_t>(t * stride), -1);
        for (const std::int32_t p : numbers)
            for (std::int64_t k = pool_.member_starts[p]; k < pool_.member_ends[p]; ++k)
                by_sample[pool_.members[k].partitioning * stride + pool_.members[k].place] = p;
        for (std::int64_t i = 0; i < t; ++i)
            std::replace(by_sample.begin() + i * stride, by_sample.begin() + (i + 1) * stride, -1,
                         by_sample[i * stride]);
        return by_sample;
    }

    std::int64_t n_points() const { return std::ssize(numbers_); }

    // Writes the levels of all points and their offsets; returns the largest distance of a point from its levels.
    double lay_out_points() {
        std::vector<double> off(offsets_.size());
        parallel_tiles(n_points(), 256, 0, [&] {
            return [&, point = GridRow(grid_, points_.n_columns)](std::int64_t begin, std::int64_t end) mutable {
                for (std::int64_t p = begin; p < end; ++p) {
                    off[p] = point.enter(points_, pool_.points[numbers_[p]]);
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
        for (std::int64_t p = 0; p < n_points(); ++p)
            std::transform(sums.begin(), sums.end(), levels(p).begin(), sums.begin(), std::plus<std::int64_t>());
        std::vector<float> means(sums.size());
        std::transform(sums.begin(), sums.end(), means.begin(),
                       [&](std::int64_t sum) { return static_cast<float>(sum / static_cast<double>(n_points())); });
        return means;
    }

    // Quantises the coordinates of all points.
    GridBounds<float> coarse_bounds() const {
        std::vector<float> coordinates(static_cast<std::size_t>(n_points() * n_axes()));
        std::vector<std::int32_t> all(numbers_.size());
        std::iota(all.begin(), all.end(), 0);
        constexpr std::int64_t kTile = 256;
        parallel_tiles(n_points(), kTile, 0, [&] {
            return
                [&, projector = Projection::Scratch(projection_, kTile)](std::int64_t begin, std::int64_t end) mutable {
                    for (std::int64_t p = begin; p < end; ++p)
                        projector.enter(p - begin, levels(p));
                    projector.project(end - begin, coordinates.data() + begin * n_axes());
                };
        });
        return GridBounds<float>({coordinates.data(), n_points(), n_axes()}, all,
                                 Grid::around(coordinates, best_byte_products()->n_steps));
    }

    DenseRows<Value> points_;
    Pool pool_;
    std::int64_t size_;                 // of the samples
    std::vector<std::int32_t> numbers_; // in the pool, of the points in the order in which they are laid out
    Grid grid_;
    std::int64_t width_;                // of a point in levels_
    std::vector<std::uint8_t> levels_;  // of the points, n x width_
    std::vector<std::int32_t> offsets_; // by point (GridRow)
    double furthest_off_;               // the largest distance of a point from its levels, in steps
    Projection projection_;
    GridBounds<float> coarse_;
};

// A tile of rows, prepared for the search; owns the scratch buffers of one thread.
template <class Value> template <class Rows> class ReducedSearch<Value>::Tile {
  protected:
    //   n_points: coarse bounds of a row that are computed at once
    Tile(const ReducedSearch &engine, const Rows &rows, std::int64_t tile, CellsOut cells, std::int64_t n_points)
        : engine_(engine), rows_(rows), cells_(cells), products_(*best_byte_products()), scans_(best_scans()),
          stride_(n_panels(n_points) * kPanel), row_(engine.grid_, rows.n_columns),
          bytes_(static_cast<std::size_t>(tile * engine.width_)), row_offsets_(static_cast<std::size_t>(tile)),
          widths_(row_offsets_.size()), slacks_(row_offsets_.size()), projector_(engine.projection_, tile),
          coordinates_(static_cast<std::size_t>(tile * engine.n_axes())),
          projected_{coordinates_.data(), tile, engine.n_axes()}, coarse_(engine.coarse_.of(projected_, tile)),
          bounds_(static_cast<std::size_t>((tile + coarse_.group()) * stride_)),
          distances_(rows, engine.points_, engine.pool_.points) {}

    // Takes rows begin to end as the tile.
    void enter(std::int64_t begin, std::int64_t end) {
        for (std::int64_t k = 0; k < end - begin; ++k) {
            const double off = row_.enter(rows_, begin + k);
            widths_[k] = engine_.grid_.width(off, engine_.furthest_off_, rows_.n_columns);
            row_offsets_[k] = row_.sum_of_squares();
            row_.write(bytes_.data() + k * engine_.width_);
            projector_.enter(k, row_.levels());
        }
        projector_.project(end - begin, coordinates_.data());
        coarse_.enter(0, end - begin);
        for (std::int64_t k = 0; k < end - begin; ++k)
            slacks_[k] = coarse_.off(k) + engine_.projection_.error() / coarse_.step();
        n_rows_ = end - begin;
    }

    // Computes the coarse bounds of all rows to n points from the begin-th on; begin is a multiple of kPanel.
    void fill(std::int64_t begin, std::int64_t n) {
        coarse_.fill(0, n_rows_, begin / kPanel, n_panels(n), bounds_.data(), stride_);
    }

    // Makes row r, the k-th of the tile, the current one; returns its coarse bounds.
    const float *begin_row(std::int64_t r, std::int64_t k) {
        distances_.begin_row(r);
        k_ = k;
        return bounds_.data() + k * stride_;
    }

    // How close two squared distances of the current row's levels can be for their points to be in the wrong order.
    float width() const { return widths_[k_]; }

    void prefetch(std::int32_t p) const {
        for (std::int64_t j = 0; j < engine_.width_; j += kByteColumns)
            __builtin_prefetch(engine_.levels_.data() + p * engine_.width_ + j);
    }

    //  squares[l] = the squared distance of the current row's levels to those of points[l]
    void measure(std::span<const std::int32_t> points, float *squares) const {
        products_.distances_at(bytes_.data() + k_ * engine_.width_, row_offsets_[k_], rows_.n_columns,
                               engine_.levels_.data(), engine_.offsets_.data(), points.data(), std::ssize(points),
                               squares);
    }

    // The largest coarse bound of a point whose levels are within this squared distance. kMargin covers that axes are
    // orthonormal to 1e-10 only, and the rounding of the result.
    float limit_of(float square) const {
        constexpr double kMargin = 1e-6;
        const double steps = std::sqrt(static_cast<double>(square)) / coarse_.step() * (1.0 + kMargin) + slacks_[k_];
        return static_cast<float>(steps * steps * (1.0 + kMargin));
    }

    const ReducedSearch &engine_;
    const Rows &rows_;
    CellsOut cells_;
    const ByteProducts &products_;
    const Scans &scans_;
    std::int64_t stride_; // of a row in bounds_
    std::int64_t n_rows_ = 0;
    GridRow row_;
    std::vector<std::int8_t> bytes_;        // levels of the tile's rows (GridRow), width_ of the engine apart
    std::vector<std::int32_t> row_offsets_; // by row: the sum of its squared levels
    std::vector<float> widths_;             // by row: see width()
    std::vector<double> slacks_;            // by row: how many coarse distances it can be off
    Projection::Scratch projector_;
    std::vector<float> coordinates_;
    DenseRows<float> projected_; // view of coordinates_
    GridBounds<float>::Scratch<DenseRows<float>> coarse_;
    RawVector<float> bounds_; // coarse bounds of the tile's rows
    Distances<Rows, DenseRows<Value>> distances_;
    std::int64_t k_ = 0; // the current row
};

// Searches one sample after another, each for all rows of the tile. The point with the smallest coarse bound limits how
// far the nearest can be, and so which other points can be nearest. A few rows take each step together, so that the
// levels which the next step reads are fetched meanwhile.
template <class Value>
template <class Rows>
class ReducedSearch<Value>::SampleWorker : private ReducedSearch<Value>::template Tile<Rows> {
    using Base = Tile<Rows>;
    using Base::engine_, Base::scans_, Base::distances_;

  public:
    SampleWorker(const ReducedSearch &engine, const Rows &rows, std::int64_t tile, CellsOut cells)
        : Base(engine, rows, tile, cells, engine.size_), t_(engine.pool_.n_partitionings),
          squares_(static_cast<std::size_t>(engine.size_)), found_(static_cast<std::size_t>(tile * t_)) {
        for (Candidates &of_row : candidates_)
            of_row.points.resize(static_cast<std::size_t>(engine.size_ + kSpare));
    }

    void operator()(std::int64_t begin, std::int64_t end) {
        Base::enter(begin, end);
        for (std::int64_t i = 0; i < t_; ++i) {
            const auto first = static_cast<std::int32_t>(i * engine_.sample_stride());
            Base::fill(first, engine_.size_);
            for (std::int64_t k = 0; k < end - begin; k += kTogether) {
                const std::int64_t n = std::min(kTogether, end - begin - k);
                for (std::int64_t l = 0; l < n; ++l)
                    find_closest(Base::begin_row(begin + k + l, k + l), first, candidates_[l]);
                for (std::int64_t l = 0; l < n; ++l)
                    add_candidates(Base::begin_row(begin + k + l, k + l), first, candidates_[l]);
                for (std::int64_t l = 0; l < n; ++l) {
                    Base::begin_row(begin + k + l, k + l);
                    found_[(k + l) * t_ + i] = nearest(candidates_[l]) - first;
                }
            }
        }
        for (std::int64_t k = 0; k < end - begin; ++k)
            write_cells(Base::cells_, begin + k, std::span(std::as_const(found_)).subspan(k * t_, t_));
    }

  private:
    static constexpr std::int64_t kTogether = 4;

    // Points of a sample that may be the nearest of a row, places ascending.
    struct Candidates {
        std::vector<std::int32_t> points;
        std::int64_t n = 0;
    };

    // Enters the point with the smallest of the current row's coarse bounds. first: the sample's first point.
    void find_closest(const float *bounds, std::int32_t first, Candidates &candidates) const {
        candidates.points.front() = first + static_cast<std::int32_t>(scans_.least_index(bounds, engine_.size_));
        Base::prefetch(candidates.points.front());
    }

    // Replaces the closest point by all that may be as near.
    void add_candidates(const float *bounds, std::int32_t first, Candidates &candidates) {
        std::vector<std::int32_t> &points = candidates.points;
        Base::measure(std::span(points).first(1), squares_.data());
        const float limit = Base::limit_of(squares_.front() + Base::width());
        candidates.n = scans_.indices_within(bounds, engine_.size_, limit, points.data());
        for (std::int64_t l = 0; l < candidates.n; ++l) {
            points[l] += first;
            Base::prefetch(points[l]);
        }
    }

    // The current row's nearest candidate. Exact distances decide if several are within the rounding error; of equal
    // ones the first place wins.
    std::int32_t nearest(const Candidates &candidates) {
        const std::span points = std::span(candidates.points).first(candidates.n);
        if (points.size() == 1)
            return points.front();
        Base::measure(points, squares_.data());
        const auto end = squares_.begin() + candidates.n;
        const float most = *std::min_element(squares_.begin(), end) + Base::width();
        const auto is_open = [&](float square) { return square <= most; };
        std::int64_t best = std::find_if(squares_.begin(), end, is_open) - squares_.begin();
        for (std::int64_t l = best + 1; l < candidates.n; ++l)
            if (is_open(squares_[l]) && exact(points[l]) < exact(points[best]))
                best = l;
        return points[best];
    }

    double exact(std::int32_t p) { return distances_.to(engine_.numbers_[p]); }

    std::int64_t t_;
    std::array<Candidates, kTogether> candidates_; // by row
    std::vector<float> squares_;                   // squared distances of candidates
    std::vector<std::int32_t> found_;              // [row][sample]: the place of the nearest point
};

// Searches all samples at once, row by row. The points with the smallest coarse bounds come first. If there is one of
// each sample among them, the nearest of these limit how far the search has to go.
template <class Value>
template <class Rows>
class ReducedSearch<Value>::PoolWorker : private ReducedSearch<Value>::template Tile<Rows> {
    using Base = Tile<Rows>;
    using Base::engine_, Base::scans_, Base::distances_;

  public:
    PoolWorker(const ReducedSearch &engine, const Rows &rows, std::int64_t tile, CellsOut cells)
        : Base(engine, rows, tile, cells, engine.pool_.size()), n_points_(engine.pool_.size()),
          indices_(static_cast<std::size_t>(n_points_ + kSpare)), ordered_(indices_.size()),
          coarse_limits_(static_cast<std::size_t>(engine.pool_.n_partitionings)), search_(engine.pool_),
          found_(coarse_limits_.size()) {}

    void operator()(std::int64_t begin, std::int64_t end) {
        Base::enter(begin, end);
        Base::fill(0, n_points_);
        for (std::int64_t r = begin; r < end; ++r) {
            find(Base::begin_row(r, r - begin));
            write_cells(Base::cells_, r, std::span(std::as_const(found_)));
        }
    }

  private:
    static constexpr std::size_t kBatch = 16;  // points that get distances before limits are lowered
    static constexpr std::int64_t kSome = 512; // points from which the first limit is estimated
    static constexpr std::int64_t kFirst = 8;  // points of a sample that are looked at first, on average

    //   in: coarse bounds of the current row      out: found_
    void find(const float *bounds) {
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
                Base::prefetch(p);
                points_.push_back(p);
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
        squares_.resize(points_.size());
        Base::measure(points_, squares_.data());
        for (std::size_t l = 0; l < points_.size(); ++l) {
            search_.enter(points_[l], squares_[l], squares_[l] + Base::width());
            const float limit = Base::limit_of(squares_[l] + Base::width());
            for (const Member &member : members(points_[l]))
                coarse_limits_[member.partitioning] = std::min(coarse_limits_[member.partitioning], limit);
        }
        points_.clear();
    }

    std::int64_t n_points_;
    std::vector<std::int32_t> indices_; // points within a limit
    std::vector<float> some_;           // coarse bounds of some points
    std::vector<std::int32_t> ordered_; // new points within a limit, in buckets
    std::vector<float> coarse_limits_;  // by sample: the largest coarse bound of a point that may be nearest
    Search<float> search_;
    std::vector<std::int32_t> points_; // that get distances next
    std::vector<float> squares_;       // their squared distances
    std::vector<std::int32_t> found_;  // by sample: the place of the nearest point
};

} // namespace isokern
