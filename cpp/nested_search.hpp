// The nearest points of rows in all samples, for all sizes: a smaller sample is the beginning of a larger one.
//
// A row is compared with all points of all samples once, whatever the number of samples and sizes (nested_bounds.hpp).
// Few points of a sample are looked at one by one: running minima over the first 2, 4, 8, ... give the cells of all
// small sizes, by distances themselves where bounds are too close. For large sizes a row walks through the points from
// near to far, as far as the minima of the small ones reach (nested_walk.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "nested.hpp"
#include "nested_walk.hpp"
#include "products.hpp"
#include "threads.hpp"
#include "voronoi_search.hpp"

namespace isokern {

constexpr std::int64_t kMostNestedSamples = 1 << 16, kLargestNestedSize = 1 << 16; // which members can number

// What all threads read: the samples.
struct NestedSamples {
    std::int64_t n_samples;
    std::vector<std::int64_t> sizes; // ascending
    Pool pool;
    std::int64_t n_few;
    std::int64_t stride;               // of a row's bounds: a bound for each point, and at least one that is infinite
    std::vector<NestedMember> members; // as the pool has them
    std::vector<std::int32_t> numbers; // of the first few points in the pool, [samples by kPanel][n_few][kPanel]

    NestedSamples(const std::vector<std::int32_t> &first_equal, std::span<const std::int32_t> samples,
                  std::int64_t n_samples, std::span<const std::int64_t> sizes)
        : n_samples(n_samples), sizes(sizes.begin(), sizes.end()),
          pool(first_equal, samples.data(), n_samples, sizes.back()), n_few(std::min<std::int64_t>(kFew, sizes.back())),
          stride((pool.size() / kPanel + 1) * kPanel),
          numbers(static_cast<std::size_t>(n_panels(n_samples) * kPanel * n_few),
                  static_cast<std::int32_t>(pool.size())) {
        for (std::int64_t p = 0; p < pool.size(); ++p)
            for (std::int64_t k = pool.member_starts[p]; k < pool.member_ends[p]; ++k)
                if (pool.members[k].place < n_few)
                    number_at(pool.members[k]) = static_cast<std::int32_t>(p);
        members.reserve(pool.members.size());
        for (const Member member : pool.members)
            members.push_back(
                {static_cast<std::uint16_t>(member.partitioning), static_cast<std::uint16_t>(member.place)});
    }

    std::int32_t &number_at(Member member) {
        const std::int64_t i = member.partitioning;
        return numbers[(i / kPanel * n_few + member.place) * kPanel + i % kPanel];
    }

    static constexpr std::int64_t kFew = 128;

    static std::int64_t n_panels(std::int64_t n) { return (n + kPanel - 1) / kPanel; }

    // How many of the sizes are no larger than the few.
    std::int64_t n_small() const { return std::upper_bound(sizes.begin(), sizes.end(), n_few) - sizes.begin(); }
};

// Finds the cells of rows, of which Rows knows bounds (nested_bounds.hpp).
template <class Rows> class NestedWorker {
  public:
    NestedWorker(const NestedSamples &nested, Rows rows, std::int64_t tile, std::span<const CellsOut> cells)
        : nested_(nested), cells_(cells), products_(best_products()), rows_(std::move(rows)),
          n_small_(nested.n_small()), n_large_(static_cast<std::int64_t>(nested.sizes.size()) - n_small_),
          bounds_(static_cast<std::size_t>((tile + rows_.n_spare_rows()) * nested.stride)),
          least_(static_cast<std::size_t>(NestedSamples::n_panels(nested.n_samples) * kPanel)), second_(least_.size()),
          at_(least_.size()), found_(nested.sizes.size() * static_cast<std::size_t>(nested.n_samples)),
          distances_(nested.pool),
          walk_(nested.pool, nested.members, nested.n_samples,
                std::span(nested.sizes).subspan(static_cast<std::size_t>(n_small_)), found(n_small_)) {}

    void operator()(std::int64_t begin, std::int64_t end) {
        rows_.fill(begin, end, bounds_.data());
        for (std::int64_t r = begin; r < end; ++r) {
            float *bounds = bounds_.data() + (r - begin) * nested_.stride;
            std::fill(bounds + nested_.pool.size(), bounds + nested_.stride, HUGE_VALF);
            width_ = rows_.width(r - begin);
            has_exact_bounds_ = rows_.has_exact_bounds(r - begin);
            if (!(width_ < HUGE_VALF))
                std::fill_n(bounds, nested_.pool.size(), 0.0f);
            rows_.load(r);
            distances_.begin_row();
            look_at_few(bounds);
            if (n_large_) {
                const float furthest = *std::max_element(least_.begin(), least_.begin() + nested_.n_samples);
                walk_.go(bounds, furthest + width_, width_, has_exact_bounds_,
                         [&](std::int32_t p) { return exact(p); });
            }
            write(r);
        }
    }

  private:
    double exact(std::int32_t point) {
        return distances_.get(point, [&](std::int32_t p) { return rows_.distance_to(p); });
    }

    std::int32_t *found(std::int64_t k) { return found_.data() + k * nested_.n_samples; }

    void look_at_few(const float *bounds) {
        std::fill(least_.begin(), least_.end(), HUGE_VALF);
        std::fill(second_.begin(), second_.end(), HUGE_VALF);
        std::fill(at_.begin(), at_.end(), 0);
        std::int64_t begin = 0;
        for (std::int64_t k = 0; k < n_small_; begin = nested_.sizes[k++]) {
            go_on(bounds, begin, nested_.sizes[k]);
            for (std::int64_t i = 0; i < nested_.n_samples; ++i)
                found(k)[i] =
                    has_exact_bounds_ || second_[i] - least_[i] > width_ ? at_[i] : settle(bounds, i, nested_.sizes[k]);
        }
        go_on(bounds, begin, nested_.n_few);
    }

    void go_on(const float *bounds, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = 0; i < nested_.n_samples; i += kPanel)
            products_.running_minima(bounds, nested_.numbers.data() + i * nested_.n_few, begin, end, &least_[i],
                                     &second_[i], &at_[i]);
    }

    // The nearest of the first points of sample i, by their distances where bounds are close.
    std::int32_t settle(const float *bounds, std::int64_t i, std::int64_t size) {
        const std::int32_t *numbers = nested_.numbers.data() + i / kPanel * kPanel * nested_.n_few + i % kPanel;
        double nearest = HUGE_VAL;
        std::int32_t best = at_[i];
        for (std::int32_t place = 0; place < size; ++place) {
            const std::int32_t number = numbers[place * kPanel];
            if (number == nested_.pool.size() || !(bounds[number] - least_[i] <= width_))
                continue;
            const double d = exact(number);
            if (d < nearest) {
                nearest = d;
                best = place;
            }
        }
        return best;
    }

    void write(std::int64_t r) {
        for (std::size_t k = 0; k < cells_.size(); ++k)
            std::visit(
                [&]<class Cell>(Cell *cells) {
                    std::transform(found(k), found(k) + nested_.n_samples, cells + r * nested_.n_samples,
                                   [](std::int32_t place) { return static_cast<Cell>(place); });
                },
                cells_[k]);
    }

    const NestedSamples &nested_;
    std::span<const CellsOut> cells_;
    const Products &products_;
    Rows rows_;
    std::int64_t n_small_, n_large_; // sizes
    std::vector<float> bounds_;
    float width_ = 0.0f;
    bool has_exact_bounds_ = false;
    std::vector<float> least_, second_; // by sample
    std::vector<std::int32_t> at_;
    std::vector<std::int32_t> found_; // [size][sample]
    Distances distances_;
    Walk walk_;
};

// cells[k][r, i] = the place, in the first sizes[k] points of sample i, of the point nearest to row r.
// make_rows(tile): what knows the bounds of at most so many rows at a time, one for each thread
template <class MakeRows>
void search_nested(const NestedSamples &nested, std::int64_t n_rows, std::span<const CellsOut> cells, int threads,
                   MakeRows make_rows) {
    constexpr std::int64_t kTile = 192, kTileBytes = 1LL << 26; // rows at a time, and their bounds, at most
    const std::int64_t fitting = kTileBytes / (nested.stride * static_cast<std::int64_t>(sizeof(float)));
    const std::int64_t tile = std::min(n_rows, std::clamp<std::int64_t>(fitting / kPanel * kPanel, kPanel, kTile));
    parallel_tiles(n_rows, tile, threads, [&] { return NestedWorker(nested, make_rows(tile), tile, cells); });
}

} // namespace isokern
