// Nearest points of rows in nested samples (prefixes of each other), for all sizes: brute force with shared distances.
//
// In: points, samples and sizes; then rows. Out: for each size, cells. Bounds (bounds.hpp) of a row to all points of
// the pool are computed once, whatever the number of samples and sizes. Then:
//  - Small sizes, up to n_few: running minima over the first points of each sample, read off at each size. Exact
//    distances decide where the two smallest bounds are closer than their rounding error.
//  - Large sizes: the minima of the first n_few points limit how far the nearest point of any larger prefix can be.
//    Points within that limit are visited nearest first (nested_walk.hpp). Without small sizes, and if bounds are
//    exact, the limit is first guessed from the number of points that such a walk usually visits, which is much faster.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/threads.hpp"
#include "simd/products.hpp"
#include "voronoi/distance.hpp"
#include "voronoi/engine.hpp"
#include "voronoi/nested_walk.hpp"
#include "voronoi/pool.hpp"
#include "voronoi/scans.hpp"

namespace isokern {

constexpr std::int64_t kLargestNestedSize = kNowhere; // places have 16 bits

// The samples, prepared for the search; shared by all threads.
struct NestedSamples {
    std::span<const std::int64_t> sizes; // ascending
    Pool pool;
    std::int64_t n_few;                // length of the prefix of each sample that running minima cover
    std::int64_t n_first;              // points of the pool that are in such a prefix, rounded up to whole panels
    std::vector<std::uint16_t> places; // of each point in each sample, for walks (scans.hpp), [pool][width()]
    // The first n_few points of each sample, as numbers in the pool: [n_samples / kMinima][n_few][kMinima]. n_first,
    // whose bound is infinite, stands for a point that repeats an earlier one, and for padding.
    std::vector<std::int32_t> numbers;
    // Points among the first n_first that a walk visits until it is complete, in all but few cases.
    double n_visited = 0.0;

    template <class Points>
    NestedSamples(const Points &points, const Samples &samples, bool are_all_first)
        : sizes(samples.sizes), pool(points, samples),
          n_few(std::min<std::int64_t>(samples.n > kManySamples ? 128 : 256, samples.largest())),
          n_first(are_all_first ? pool.size() : std::min(pool.size(), n_panels(count_first()) * kPanel)),
          numbers(static_cast<std::size_t>(n_minima() * n_few), static_cast<std::int32_t>(n_first)) {
        for (std::int64_t p = 0; p < n_first; ++p)
            for (std::int64_t k = pool.member_starts[p]; k < pool.member_ends[p]; ++k)
                if (pool.members[k].place < n_few)
                    number_at(pool.members[k]) = static_cast<std::int32_t>(p);
        if (sizes.back() <= n_few)
            return;
        places.assign(static_cast<std::size_t>(pool.size() * width()), kNowhere);
        for (std::int64_t p = 0; p < pool.size(); ++p)
            for (std::int64_t k = pool.member_starts[p]; k < pool.member_ends[p]; ++k)
                places[p * width() + pool.members[k].partitioning] = static_cast<std::uint16_t>(pool.members[k].place);
        // A point is among the first `size` of a sample with probability q, so that n points leave t (1 - q)^n samples
        // without one, on average. This is at most kFailures if n = log(t / kFailures) / q.
        const auto n_members =
            std::count_if(places.begin(), places.end(), [&](int place) { return place < sizes[n_small()]; });
        n_visited = std::log(static_cast<double>(n_samples()) / kFailures) *
                    static_cast<double>(n_first * n_samples()) / static_cast<double>(n_members);
    }

    static constexpr double kFailures = 0.02;         // mean number of samples that a guessed limit leaves open
    static constexpr std::int64_t kManySamples = 256; // with more, n_few is smaller: a walk serves all samples at once

    std::int64_t n_samples() const { return pool.n_partitionings; }

    // n_samples, rounded up for running minima and for walks.
    std::int64_t n_minima() const { return (n_samples() + kMinima - 1) / kMinima * kMinima; }
    std::int64_t width() const { return (n_samples() + kTogether - 1) / kTogether * kTogether; }

    // Floats for a row's bounds to the first n_first points, with at least one infinite bound behind them.
    std::int64_t stride() const { return (n_first / kPanel + 1) * kPanel; }

    // The number of small sizes.
    std::int64_t n_small() const { return std::upper_bound(sizes.begin(), sizes.end(), n_few) - sizes.begin(); }

  private:
    // The number of points that are in the prefix of some sample. Binary search: points are ordered by their first
    // place in any sample, which is that of their first member.
    std::int64_t count_first() const {
        const auto is_first = [&](std::int64_t start) { return pool.members[start].place < n_few; };
        const auto end = pool.member_starts.begin() + pool.size();
        return std::partition_point(pool.member_starts.begin(), end, is_first) - pool.member_starts.begin();
    }

    std::int32_t &number_at(Member member) {
        const std::int64_t i = member.partitioning;
        return numbers[(i / kMinima * n_few + member.place) * kMinima + i % kMinima];
    }
};

template <class Bounds> class NestedSearch final : public Engine {
  public:
    using Points = typename Bounds::Points;

    //   given: further arguments of Bounds
    template <class... Given>
    NestedSearch(const Points &points, const Samples &samples, const Given &...given)
        : points_(points), nested_(points, samples, Bounds::kAtOnce), bounds_(points, nested_.pool.points, given...) {}

    bool serves(const AnyRows &rows, int threads) const override {
        if constexpr (requires { bounds_.serves(std::get<0>(rows), threads); })
            return std::visit([&](const auto &table) { return bounds_.serves(table, threads); }, rows);
        return true;
    }

    void apply(const AnyRows &rows, std::span<const CellsOut> cells, int threads) const override {
        constexpr std::int64_t kTile = 192, kTileBytes = 1LL << 26; // at most so many rows, and bytes of their bounds
        std::visit(
            [&]<class Rows>(const Rows &table) {
                const std::int64_t row_bytes = nested_.stride() * static_cast<std::int64_t>(sizeof(float));
                const std::int64_t fitting = kTileBytes / row_bytes / kPanel * kPanel;
                const std::int64_t tile = std::min(table.n_rows, std::clamp<std::int64_t>(fitting, kPanel, kTile));
                parallel_tiles(table.n_rows, tile, threads, [&] { return Worker<Rows>(*this, table, tile, cells); });
            },
            rows);
    }

  private:
    template <class Rows> class Worker;

    Points points_;
    NestedSamples nested_;
    Bounds bounds_;
};

// Finds the cells of tiles of rows; owns the scratch buffers of one thread.
template <class Bounds> template <class Rows> class NestedSearch<Bounds>::Worker {
  public:
    Worker(const NestedSearch &engine, const Rows &rows, std::int64_t tile, std::span<const CellsOut> cells)
        : nested_(engine.nested_), cells_(cells), scans_(best_scans()), rows_(engine.bounds_.of(rows, tile)),
          n_small_(nested_.n_small()), n_large_(std::ssize(nested_.sizes) - n_small_), stride_(nested_.stride()),
          bounds_(static_cast<std::size_t>((tile + rows_.group()) * stride_)),
          block_(static_cast<std::size_t>(rows_.group() * kBlock * kPanel)), near_(static_cast<std::size_t>(tile)),
          limits_(near_.size()), indices_(static_cast<std::size_t>(nested_.pool.size() + kSpare)),
          least_(static_cast<std::size_t>(nested_.n_minima())), second_(least_.size()), at_(least_.size()),
          found_(nested_.sizes.size() * static_cast<std::size_t>(nested_.width())),
          distances_(rows, engine.points_, nested_.pool.points),
          walk_(nested_.places, nested_.width(), nested_.sizes.subspan(static_cast<std::size_t>(n_small_)),
                found(n_small_)) {}

    void operator()(std::int64_t begin, std::int64_t end) {
        rows_.enter(begin, end);
        rows_.fill(0, (end - begin + rows_.group() - 1) / rows_.group(), 0, n_panels(nested_.n_first), bounds_.data(),
                   stride_);
        for (std::int64_t r = begin; r < end; ++r)
            find_small(r, r - begin);
        if (n_large_ == 0)
            return;
        look_at_rest(0, end - begin);
        for (std::int64_t r = begin; r < end; ++r)
            find_large(r, r - begin);
    }

  private:
    static constexpr std::int64_t kBlock = 64; // panels of a block, whose bounds stay in the cache

    // Writes the cells of row r, the k-th of the tile, for the small sizes. For the large ones, finds the row's limit
    // and the candidates among the first points. Without usable bounds, all bounds are 0: all points are tied, and
    // exact distances decide.
    void find_small(std::int64_t r, std::int64_t k) {
        float *bounds = bounds_.data() + k * stride_;
        std::fill(bounds + nested_.n_first, bounds + stride_, HUGE_VALF);
        if (!(rows_.width(k) < HUGE_VALF))
            std::fill_n(bounds, nested_.n_first, 0.0f);
        begin_row(r, k);
        near_[k].clear();
        limits_[k] = can_guess() ? guessed_limit(bounds) : sure_limit(bounds);
        write(r, 0, n_small_);
        if (n_large_ > 0)
            add_near(k, bounds, 0, nested_.n_first);
    }

    // Writes the cells of row r, the k-th of the tile, for the large sizes. If a guessed limit was too low, the sure
    // one is found.
    void find_large(std::int64_t r, std::int64_t k) {
        begin_row(r, k);
        for (std::int64_t l = n_small_; l < n_small_ + n_large_; ++l)
            std::fill_n(found(l), nested_.n_samples(), kNowhere);
        if (!walk_.go(near_[k], limits_[k], width_, has_exact_bounds_, distances_)) {
            const float *bounds = bounds_.data() + k * stride_;
            limits_[k] = sure_limit(bounds);
            near_[k].clear();
            add_near(k, bounds, 0, nested_.n_first);
            look_at_rest(k, k + 1);
            walk_.go(near_[k], limits_[k], width_, has_exact_bounds_, distances_);
        }
        write(r, n_small_, n_small_ + n_large_);
    }

    // Whether the limit of the current row can be guessed. Exact bounds: a walk within any limit is right where it is
    // complete, because equal bounds are on the same side of the limit.
    bool can_guess() const { return n_small_ == 0 && has_exact_bounds_ && 2.0 * nested_.n_visited < kSubsets; }

    // The bound that about n_visited of the first points are within: that rank among the minima of kSubsets subsets,
    // which seldom have two of the smallest bounds.
    float guessed_limit(const float *bounds) {
        scans_.subset_minima(bounds, stride_, minima_.data());
        const auto at = minima_.begin() + static_cast<std::int64_t>(nested_.n_visited);
        std::nth_element(minima_.begin(), at, minima_.end());
        return *at;
    }

    // An upper limit of the bounds of the nearest points of all large sizes; finds the cells of the small sizes.
    float sure_limit(const float *bounds) {
        look_at_few(bounds);
        return *std::max_element(least_.begin(), least_.begin() + nested_.n_samples()) + width_;
    }

    void begin_row(std::int64_t r, std::int64_t k) {
        width_ = rows_.width(k);
        has_exact_bounds_ = rows_.has_exact_bounds(k);
        distances_.begin_row(r);
    }

    // Adds to near_[k] those of the n points from the begin-th on whose bounds are within the k-th row's limit.
    void add_near(std::int64_t k, const float *bounds, std::int64_t begin, std::int64_t n) {
        const std::int64_t n_near = scans_.indices_within(bounds, n, limits_[k], indices_.data());
        const std::size_t n_before = near_[k].size();
        near_[k].resize(n_before + static_cast<std::size_t>(n_near));
        NearPoint *added = near_[k].data() + n_before;
        for (std::int64_t i = 0; i < n_near; ++i)
            added[i] = {bounds[indices_[i]], static_cast<std::int32_t>(begin + indices_[i])};
    }

    // Computes bounds to the points of the pool that are in no sample's prefix, block by block, and keeps those that
    // are within the limits of the tile's rows first .. last - 1.
    void look_at_rest(std::int64_t first, std::int64_t last) {
        const std::int64_t end = nested_.pool.size();
        for (std::int64_t begin = nested_.n_first; begin < end; begin += kBlock * kPanel) {
            const std::int64_t n = std::min(kBlock * kPanel, end - begin);
            for (std::int64_t k = first / rows_.group() * rows_.group(); k < last; k += rows_.group()) {
                rows_.fill(k, 1, begin / kPanel, n_panels(n), block_.data(), kBlock * kPanel);
                for (std::int64_t l = std::max(k, first); l < std::min(k + rows_.group(), last); ++l) {
                    float *bounds = block_.data() + (l - k) * kBlock * kPanel;
                    if (!(rows_.width(l) < HUGE_VALF))
                        std::fill_n(bounds, n, 0.0f);
                    add_near(l, bounds, begin, n);
                }
            }
        }
    }

    std::uint16_t *found(std::int64_t k) { return found_.data() + k * nested_.width(); }

    // Runs the minima over the prefixes, and reads the cells of each small size off on the way.
    //   in: bounds of the current row      out: found of the small sizes; least_ of the first n_few points
    void look_at_few(const float *bounds) {
        std::fill(least_.begin(), least_.end(), HUGE_VALF);
        std::fill(second_.begin(), second_.end(), HUGE_VALF);
        std::fill(at_.begin(), at_.end(), 0);
        std::int64_t begin = 0;
        for (std::int64_t k = 0; k < n_small_; begin = nested_.sizes[k++]) {
            go_on(bounds, begin, nested_.sizes[k]);
            std::uint16_t *places = found(k);
            for (std::int64_t i = 0; i < nested_.n_samples(); ++i)
                places[i] = static_cast<std::uint16_t>(has_exact_bounds_ || second_[i] - least_[i] > width_
                                                           ? at_[i]
                                                           : settle(bounds, i, nested_.sizes[k]));
        }
        go_on(bounds, begin, nested_.n_few);
    }

    // Continues the running minima of all samples over places begin .. end - 1.
    void go_on(const float *bounds, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = 0; i < nested_.n_samples(); i += kMinima)
            scans_.running_minima(bounds, nested_.numbers.data() + i * nested_.n_few, begin, end, &least_[i],
                                  &second_[i], &at_[i]);
    }

    // The place of the nearest of the first `size` points of sample i, by the exact distances of those whose bounds are
    // within the rounding error of the smallest. Of equal distances the first place wins.
    std::int32_t settle(const float *bounds, std::int64_t i, std::int64_t size) {
        const std::int32_t *numbers = nested_.numbers.data() + i / kMinima * kMinima * nested_.n_few + i % kMinima;
        double nearest = HUGE_VAL;
        std::int32_t best = at_[i];
        for (std::int32_t place = 0; place < size; ++place) {
            const std::int32_t number = numbers[place * kMinima];
            if (number == nested_.n_first || !(bounds[number] - least_[i] <= width_))
                continue;
            const double d = distances_.to(number);
            if (d < nearest) {
                nearest = d;
                best = place;
            }
        }
        return best;
    }

    // Writes the cells of row r for sizes begin to end.
    void write(std::int64_t r, std::int64_t begin, std::int64_t end) {
        const auto n = static_cast<std::size_t>(nested_.n_samples());
        for (std::int64_t k = begin; k < end; ++k)
            write_cells(cells_[k], r, std::span<const std::uint16_t>(found(k), n));
    }

    const NestedSamples &nested_;
    std::span<const CellsOut> cells_;
    const Scans &scans_;
    typename Bounds::template Scratch<Rows> rows_;
    std::int64_t n_small_, n_large_;           // the numbers of small and large sizes
    std::int64_t stride_;                      // of a row in bounds_
    std::vector<float> bounds_;                // of the tile's rows to the first points
    std::vector<float> block_;                 // bounds of a group of rows to a block of points
    std::vector<std::vector<NearPoint>> near_; // by row: candidates for the large sizes
    std::vector<float> limits_;                // by row: an upper limit of the bounds of all nearest points
    std::vector<std::int32_t> indices_;        // scratch: candidates
    float width_ = 0.0f;                       // of the current row
    bool has_exact_bounds_ = false;            // of the current row
    std::vector<float> least_, second_;        // by sample: the smallest two bounds so far
    std::array<float, kSubsets> minima_;       // of subsets of the bounds
    std::vector<std::int32_t> at_;             // by sample: the place of the smallest bound
    std::vector<std::uint16_t> found_;         // [size][sample]: the place of the nearest point
    Distances<Rows, Points> distances_;
    Walk walk_;
};

} // namespace isokern
