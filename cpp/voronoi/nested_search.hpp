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

#include "common/raw_vector.hpp"
#include "common/threads.hpp"
#include "simd/products.hpp"
#include "voronoi/distance.hpp"
#include "voronoi/engine.hpp"
#include "voronoi/nested_minima.hpp"
#include "voronoi/nested_samples.hpp"
#include "voronoi/nested_walk.hpp"
#include "voronoi/scans.hpp"

namespace isokern {

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
          limits_(near_.size()), indices_(static_cast<std::size_t>(nested_.pool.size() + kSpare)), minima_(nested_),
          found_(static_cast<std::size_t>(n_large_ * nested_.width())),
          distances_(rows, engine.points_, nested_.pool.points),
          walk_(nested_.places, nested_.width(), nested_.sizes.subspan(static_cast<std::size_t>(n_small_)),
                found_.data()) {}

    void operator()(std::int64_t begin, std::int64_t end) {
        rows_.enter(begin, end);
        rows_.fill(0, end - begin, 0, n_panels(nested_.n_first), bounds_.data(), stride_);
        const std::int64_t n = end - begin < kFewRows ? 1 : kAbreast;
        for (std::int64_t r = begin; r < end; r += n)
            find_small(r, r - begin, std::min(n, end - r));
        if (n_large_ == 0)
            return;
        look_at_rest(0, end - begin);
        for (std::int64_t r = begin; r < end; ++r)
            find_large(r, r - begin);
    }

  private:
    static constexpr std::int64_t kBlock = 64;  // panels of a block, whose bounds stay in the cache
    static constexpr std::int64_t kFewRows = 4; // fewer rows of a tile than this are faster one by one

    // Writes the cells of n <= kAbreast rows from row r on, the k-th of the tile, for the small sizes. For the large
    // ones, finds the rows' limits and the candidates among the first points.
    void find_small(std::int64_t r, std::int64_t k, std::int64_t n) {
        for (std::int64_t l = k; l < k + n; ++l)
            end_bounds(l);
        const bool can_guess = can_guess_all(k, n);
        if (!can_guess)
            run_minima(r, k, n);
        for (std::int64_t l = k; n_large_ > 0 && l < k + n; ++l) {
            limits_[l] = can_guess ? guessed_limit(bounds_of(l)) : minima_.furthest(l - k) + rows_.width(l);
            near_[l].clear();
            add_near(l, bounds_of(l), 0, nested_.n_first);
        }
    }

    // Makes the bounds behind the first points infinite. Without usable bounds, all bounds are 0: all points are tied,
    // and exact distances decide.
    void end_bounds(std::int64_t k) {
        float *bounds = bounds_of(k);
        std::fill(bounds + nested_.n_first, bounds + stride_, HUGE_VALF);
        if (!(rows_.width(k) < HUGE_VALF))
            std::fill_n(bounds, nested_.n_first, 0.0f);
    }

    // Runs the minima of n rows from row r on, the k-th of the tile, and writes their cells for the small sizes.
    void run_minima(std::int64_t r, std::int64_t k, std::int64_t n) {
        std::array<float, kAbreast> widths;
        for (std::int64_t l = 0; l < n; ++l) // of equal bounds, the first is the nearest point's if they are exact
            widths[l] = rows_.has_exact_bounds(k + l) ? -1.0f : rows_.width(k + l);
        minima_.find(bounds_of(k), stride_, n, widths);
        for (std::int64_t l = 0; n_small_ > 0 && l < n; ++l)
            if (minima_.is_unsure(l)) {
                distances_.begin_row(r + l);
                minima_.settle(l, widths[l], distances_);
            }
        for (std::int64_t s = 0; s < n_small_; ++s)
            for (std::int64_t l = 0; l < n; ++l)
                write_cells(cells_[s], r + l, minima_.places(s, l));
    }

    // Writes the cells of row r, the k-th of the tile, for the large sizes. If a guessed limit was too low, the sure
    // one is found.
    void find_large(std::int64_t r, std::int64_t k) {
        const auto n_samples = static_cast<std::size_t>(nested_.n_samples());
        distances_.begin_row(r);
        for (std::int64_t s = 0; s < n_large_; ++s)
            std::fill_n(found(s), nested_.n_samples(), kNowhere);
        if (!walk(k)) {
            minima_.find(bounds_of(k), stride_, 1, {-1.0f});
            limits_[k] = minima_.furthest(0) + rows_.width(k);
            near_[k].clear();
            add_near(k, bounds_of(k), 0, nested_.n_first);
            look_at_rest(k, k + 1);
            walk(k);
        }
        for (std::int64_t s = 0; s < n_large_; ++s)
            write_cells(cells_[n_small_ + s], r, std::span<const std::uint16_t>(found(s), n_samples));
    }

    bool walk(std::int64_t k) {
        return walk_.go(near_[k], limits_[k], rows_.width(k), rows_.has_exact_bounds(k), distances_);
    }

    // Whether the limits of n rows from the k-th on can be guessed. Exact bounds: a walk within any limit is right
    // where it is complete, because equal bounds are on the same side of the limit.
    bool can_guess_all(std::int64_t k, std::int64_t n) const {
        bool are_exact = true;
        for (std::int64_t l = k; l < k + n; ++l)
            are_exact = are_exact && rows_.has_exact_bounds(l);
        return n_small_ == 0 && are_exact && 2.0 * nested_.n_visited < kSubsets;
    }

    // The bound that about n_visited of the first points are within: that rank among the minima of kSubsets subsets,
    // which seldom have two of the smallest bounds.
    float guessed_limit(const float *bounds) {
        scans_.subset_minima(bounds, stride_, subset_minima_.data());
        const auto at = subset_minima_.begin() + static_cast<std::int64_t>(nested_.n_visited);
        std::nth_element(subset_minima_.begin(), at, subset_minima_.end());
        return *at;
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
                const std::int64_t here = std::min(k + rows_.group(), last);
                rows_.fill(k, here - k, begin / kPanel, n_panels(n), block_.data(), kBlock * kPanel);
                for (std::int64_t l = std::max(k, first); l < here; ++l) {
                    float *bounds = block_.data() + (l - k) * kBlock * kPanel;
                    if (!(rows_.width(l) < HUGE_VALF))
                        std::fill_n(bounds, n, 0.0f);
                    add_near(l, bounds, begin, n);
                }
            }
        }
    }

    float *bounds_of(std::int64_t k) { return bounds_.data() + k * stride_; }
    std::uint16_t *found(std::int64_t s) { return found_.data() + s * nested_.width(); }

    const NestedSamples &nested_;
    std::span<const CellsOut> cells_;
    const Scans &scans_;
    typename Bounds::template Scratch<Rows> rows_;
    std::int64_t n_small_, n_large_;           // the numbers of small and large sizes
    std::int64_t stride_;                      // of a row in bounds_
    RawVector<float> bounds_;                  // of the tile's rows to the first points
    std::vector<float> block_;                 // bounds of a group of rows to a block of points
    std::vector<std::vector<NearPoint>> near_; // by row: candidates for the large sizes
    std::vector<float> limits_;                // by row: an upper limit of the bounds of all nearest points
    std::vector<std::int32_t> indices_;        // scratch: candidates
    std::array<float, kSubsets> subset_minima_;
    PrefixMinima minima_;
    std::vector<std::uint16_t> found_; // [large size][sample]: the place of the nearest point
    Distances<Rows, Points> distances_;
    Walk walk_;
};

} // namespace isokern
