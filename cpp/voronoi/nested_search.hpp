// Nearest points of rows in nested samples (prefixes of each other), for all sizes: brute force with shared distances.
//
// In: the samples; rows whose distances are bounded as in nested_bounds.hpp. Out: for each size, cells. Bounds of a row
// to all points of the pool are computed once, whatever the number of samples and sizes. Then:
//  - Small sizes, up to n_few: running minima over the first points of each sample, read off at each size. Exact
//    distances decide where the two smallest bounds are closer than their rounding error.
//  - Large sizes: the minima of the first n_few points limit how far the nearest point of any larger prefix can be.
//    Points within that limit are visited nearest first (nested_walk.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/threads.hpp"
#include "simd/products.hpp"
#include "voronoi/nested.hpp"
#include "voronoi/nested_walk.hpp"
#include "voronoi/pool_search.hpp"

namespace isokern {

constexpr std::int64_t kLargestNestedSize = kNowhere;

// The samples, prepared for the search; shared by all threads.
struct NestedSamples {
    std::int64_t n_samples;
    std::vector<std::int64_t> sizes; // ascending
    Pool pool;
    std::int64_t n_few;                // length of the prefix of each sample that running minima cover
    std::int64_t n_first;              // points of the pool that are in such a prefix, rounded up to whole panels
    std::vector<std::uint16_t> places; // of each point in each sample, for walks (products.hpp), [pool][width()]
    // The first n_few points of each sample, as numbers in the pool: [n_samples / kPanel][n_few][kPanel]. n_first,
    // whose bound is infinite, stands for a point that repeats an earlier one, and for padding.
    std::vector<std::int32_t> numbers;

    NestedSamples(const std::vector<std::int32_t> &first_equal, std::span<const std::int32_t> samples,
                  std::int64_t n_samples, std::span<const std::int64_t> sizes, bool are_all_first)
        : n_samples(n_samples), sizes(sizes.begin(), sizes.end()),
          pool(first_equal, samples.data(), n_samples, sizes.back()),
          n_few(std::min<std::int64_t>(n_samples > kManySamples ? 128 : 256, sizes.back())),
          n_first(are_all_first ? pool.size() : std::min(pool.size(), n_panels(count_first()) * kPanel)),
          numbers(static_cast<std::size_t>(n_panels(n_samples) * kPanel * n_few), static_cast<std::int32_t>(n_first)) {
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
    }

    static constexpr std::int64_t kManySamples = 256; // with more, n_few is smaller: a walk serves all samples at once

    static std::int64_t n_panels(std::int64_t n) { return (n + kPanel - 1) / kPanel; }

    // n_samples, rounded up for walks.
    std::int64_t width() const { return (n_samples + kTogether - 1) / kTogether * kTogether; }

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
        return numbers[(i / kPanel * n_few + member.place) * kPanel + i % kPanel];
    }
};

// Finds the cells of tiles of rows; Rows computes bounds (nested_bounds.hpp). Owns the scratch buffers of one thread.
template <class Rows> class NestedWorker {
  public:
    NestedWorker(const NestedSamples &nested, Rows rows, std::int64_t tile, std::span<const CellsOut> cells)
        : nested_(nested), cells_(cells), products_(best_products()), rows_(std::move(rows)),
          n_small_(nested.n_small()), n_large_(static_cast<std::int64_t>(nested.sizes.size()) - n_small_),
          stride_(nested.stride()), bounds_(static_cast<std::size_t>((tile + rows_.group()) * stride_)),
          block_(static_cast<std::size_t>(rows_.group() * kBlock * kPanel)), near_(static_cast<std::size_t>(tile)),
          limits_(near_.size()), places_(static_cast<std::size_t>(nested.pool.size())),
          least_(static_cast<std::size_t>(NestedSamples::n_panels(nested.n_samples) * kPanel)), second_(least_.size()),
          at_(least_.size()), found_(nested.sizes.size() * static_cast<std::size_t>(nested.width())),
          distances_(nested.pool),
          walk_(nested.places, nested.width(), std::span(nested.sizes).subspan(static_cast<std::size_t>(n_small_)),
                found(n_small_)) {}

    void operator()(std::int64_t begin, std::int64_t end) {
        rows_.enter(begin, end);
        rows_.fill(0, (end - begin + rows_.group() - 1) / rows_.group(), 0, NestedSamples::n_panels(nested_.n_first),
                   bounds_.data(), stride_);
        for (std::int64_t r = begin; r < end; ++r)
            find_small(r, r - begin);
        if (n_large_ == 0)
            return;
        look_at_rest(end - begin);
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
        look_at_few(bounds);
        write(r, 0, n_small_);
        limits_[k] = *std::max_element(least_.begin(), least_.begin() + nested_.n_samples) + width_;
        near_[k].clear();
        if (n_large_ > 0)
            add_near(k, bounds, 0, nested_.n_first);
    }

    // Writes the cells of row r, the k-th of the tile, for the large sizes.
    void find_large(std::int64_t r, std::int64_t k) {
        begin_row(r, k);
        for (std::int64_t l = n_small_; l < n_small_ + n_large_; ++l)
            std::fill_n(found(l), nested_.n_samples, kNowhere);
        walk_.go(near_[k], limits_[k], width_, has_exact_bounds_, [&](std::int32_t p) { return exact(p); });
        write(r, n_small_, n_small_ + n_large_);
    }

    void begin_row(std::int64_t r, std::int64_t k) {
        width_ = rows_.width(k);
        has_exact_bounds_ = rows_.has_exact_bounds(k);
        row_ = r;
        is_loaded_ = false;
        distances_.begin_row();
    }

    // Adds to near_[k] those of the n points from the begin-th on whose bounds are within the k-th row's limit.
    void add_near(std::int64_t k, const float *bounds, std::int64_t begin, std::int64_t n) {
        const std::int64_t n_near = products_.places_within(bounds, n, limits_[k], places_.data());
        const std::size_t n_before = near_[k].size();
        near_[k].resize(n_before + static_cast<std::size_t>(n_near));
        NearPoint *added = near_[k].data() + n_before;
        for (std::int64_t i = 0; i < n_near; ++i)
            added[i] = {bounds[places_[i]], static_cast<std::int32_t>(begin + places_[i])};
    }

    // Computes bounds to the points of the pool that are in no sample's prefix, block by block, and keeps those that
    // are within the rows' limits.
    void look_at_rest(std::int64_t n_rows) {
        const std::int64_t end = nested_.pool.size();
        for (std::int64_t begin = nested_.n_first; begin < end; begin += kBlock * kPanel) {
            const std::int64_t n = std::min(kBlock * kPanel, end - begin);
            for (std::int64_t k = 0; k < n_rows; k += rows_.group()) {
                rows_.fill(k, 1, begin / kPanel, NestedSamples::n_panels(n), block_.data(), kBlock * kPanel);
                for (std::int64_t l = k; l < std::min(k + rows_.group(), n_rows); ++l) {
                    float *bounds = block_.data() + (l - k) * kBlock * kPanel;
                    if (!(rows_.width(l) < HUGE_VALF))
                        std::fill_n(bounds, n, 0.0f);
                    add_near(l, bounds, begin, n);
                }
            }
        }
    }

    // The exact distance of the current row to a point of the pool, cached. The row is loaded on first use.
    double exact(std::int32_t point) {
        if (!std::exchange(is_loaded_, true))
            rows_.load(row_);
        return distances_.get(point, [&](std::int32_t p) { return rows_.distance_to(p); });
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
            for (std::int64_t i = 0; i < nested_.n_samples; ++i)
                places[i] = static_cast<std::uint16_t>(has_exact_bounds_ || second_[i] - least_[i] > width_
                                                           ? at_[i]
                                                           : settle(bounds, i, nested_.sizes[k]));
        }
        go_on(bounds, begin, nested_.n_few);
    }

    // Continues the running minima of all samples over places begin .. end - 1.
    void go_on(const float *bounds, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = 0; i < nested_.n_samples; i += kPanel)
            products_.running_minima(bounds, nested_.numbers.data() + i * nested_.n_few, begin, end, &least_[i],
                                     &second_[i], &at_[i]);
    }

    // The place of the nearest of the first `size` points of sample i, by the exact distances of those whose bounds are
    // within the rounding error of the smallest. Of equal distances the first place wins.
    std::int32_t settle(const float *bounds, std::int64_t i, std::int64_t size) {
        const std::int32_t *numbers = nested_.numbers.data() + i / kPanel * kPanel * nested_.n_few + i % kPanel;
        double nearest = HUGE_VAL;
        std::int32_t best = at_[i];
        for (std::int32_t place = 0; place < size; ++place) {
            const std::int32_t number = numbers[place * kPanel];
            if (number == nested_.n_first || !(bounds[number] - least_[i] <= width_))
                continue;
            const double d = exact(number);
            if (d < nearest) {
                nearest = d;
                best = place;
            }
        }
        return best;
    }

    // Writes the cells of row r for sizes begin to end.
    void write(std::int64_t r, std::int64_t begin, std::int64_t end) {
        for (std::int64_t k = begin; k < end; ++k)
            std::visit(
                [&]<class Cell>(Cell *cells) {
                    std::transform(found(k), found(k) + nested_.n_samples, cells + r * nested_.n_samples,
                                   [](std::uint16_t place) { return static_cast<Cell>(place); });
                },
                cells_[k]);
    }

    const NestedSamples &nested_;
    std::span<const CellsOut> cells_;
    const Products &products_;
    Rows rows_;
    std::int64_t n_small_, n_large_;           // the numbers of small and large sizes
    std::int64_t stride_;                      // of a row in bounds_
    std::vector<float> bounds_;                // of the tile's rows to the first points
    std::vector<float> block_;                 // bounds of a group of rows to a block of points
    std::vector<std::vector<NearPoint>> near_; // by row: candidates for the large sizes
    std::vector<float> limits_;                // by row: an upper limit of the bounds of all nearest points
    std::vector<std::int32_t> places_;         // scratch: indices of candidates
    float width_ = 0.0f;                       // of the current row
    bool has_exact_bounds_ = false;            // of the current row
    std::int64_t row_ = 0;
    bool is_loaded_ = false;            // whether rows_ has loaded the current row for exact distances
    std::vector<float> least_, second_; // by sample: the smallest two bounds so far
    std::vector<std::int32_t> at_;      // by sample: the place of the smallest bound
    std::vector<std::uint16_t> found_;  // [size][sample]: the place of the nearest point
    Distances distances_;
    Walk walk_;
};

// cells[k][r, i] = the place, among the first sizes[k] points of sample i, of the point nearest to row r.
//   in: make_rows(tile), which makes an object that computes bounds of at most `tile` rows at a time, for one thread
template <class MakeRows>
void search_nested(const NestedSamples &nested, std::int64_t n_rows, std::span<const CellsOut> cells, int threads,
                   MakeRows make_rows) {
    constexpr std::int64_t kTile = 192, kTileBytes = 1LL << 26; // at most so many rows, and bytes of their bounds
    const std::int64_t row_bytes = nested.stride() * static_cast<std::int64_t>(sizeof(float));
    const std::int64_t fitting = kTileBytes / row_bytes / kPanel * kPanel;
    const std::int64_t tile = std::min(n_rows, std::clamp<std::int64_t>(fitting, kPanel, kTile));
    parallel_tiles(n_rows, tile, threads, [&] { return NestedWorker(nested, make_rows(tile), tile, cells); });
}

} // namespace isokern
