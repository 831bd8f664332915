// Nearest points of rows in the first points of all samples, for all small sizes: running minima over the prefixes.
//
// In: bounds of kAbreast rows to the first points. Out: per size, sample and row, the place of the nearest point; and
// the largest of a row's minima, which limits its bounds to the nearest points of all larger sizes. A sample's points
// are anywhere in the pool. The bounds of kAbreast rows to one point lie side by side, so that one load serves them
// all.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "voronoi/nested_samples.hpp"
#include "voronoi/scans.hpp"

namespace isokern {

// Owns the scratch buffers of one thread.
class PrefixMinima {
  public:
    explicit PrefixMinima(const NestedSamples &nested)
        : nested_(nested), scans_(best_scans()), ends_(nested.sizes.begin(), nested.sizes.begin() + nested.n_small()),
          unsure_(static_cast<std::size_t>(nested.n_samples())), row_(unsure_.size()) {
        if (ends_.empty() || ends_.back() < nested.n_few)
            ends_.push_back(nested.n_few);
        places_.resize(unsure_.size() * ends_.size() * kAbreast);
    }

    // Finds the nearest points of n <= kAbreast rows.
    //   in: bounds, `stride` apart, infinite from the n_first-th on; by row how close two bounds can be for their
    //   points to be in the wrong order, negative if ties mean nothing but equal distances
    void find(const float *bounds, std::int64_t stride, std::int64_t n, std::array<float, kAbreast> widths) {
        n_rows_ = n == 1 ? 1 : kAbreast;
        bounds_ = n == 1 ? bounds : abreast(bounds, stride, n);
        std::fill(widths.begin() + n, widths.end(), -1.0f);
        furthest_.fill(-HUGE_VALF);
        any_unsure_ = 0;
        const auto prefix_minima = n == 1 ? scans_.prefix_minima_of_one : scans_.prefix_minima;
        for (std::int64_t i = 0; i < nested_.n_samples(); ++i) {
            unsure_[i] = prefix_minima(bounds_, numbers_of(i), ends_.data(), std::ssize(ends_), widths.data(),
                                       &place(i, 0, 0), furthest_.data());
            any_unsure_ |= unsure_[i];
        }
    }

    // The largest minimum of the l-th row over all first points of a sample.
    float furthest(std::int64_t l) const { return furthest_[l]; }

    // By sample, the place in its first sizes[k] points of the point nearest to the l-th row. Valid until the next
    // call.
    std::span<const std::uint16_t> places(std::int64_t k, std::int64_t l) {
        for (std::size_t i = 0; i < row_.size(); ++i)
            row_[i] = place(static_cast<std::int64_t>(i), k, l);
        return row_;
    }

    // Whether exact distances must decide in a sample for the l-th row.
    bool is_unsure(std::int64_t l) const { return any_unsure_ >> l & 1; }

    // Decides by the exact distances of the l-th row. Of equal distances the first place wins.
    template <class Distances> void settle(std::int64_t l, float width, Distances &distances) {
        for (std::int64_t i = 0; i < nested_.n_samples(); ++i)
            if (unsure_[i] >> l & 1)
                settle_in(i, l, width, distances);
    }

  private:
    const std::int32_t *numbers_of(std::int64_t i) const { return nested_.numbers.data() + i * nested_.n_few; }
    std::uint16_t &place(std::int64_t i, std::int64_t k, std::int64_t l) {
        return places_[(i * std::ssize(ends_) + k) * n_rows_ + l];
    }

    // The bounds of n rows, point by point. The last row stands in for missing ones.
    const float *abreast(const float *bounds, std::int64_t stride, std::int64_t n) {
        std::array<const float *, kAbreast> rows;
        for (std::int64_t l = 0; l < kAbreast; ++l)
            rows[l] = bounds + std::min(l, n - 1) * stride;
        abreast_.resize(static_cast<std::size_t>((nested_.n_first + 1) * kAbreast));
        scans_.put_abreast(rows.data(), nested_.n_first + 1, abreast_.data());
        return abreast_.data();
    }

    // A point whose bound is larger than an earlier one by more than their rounding error is not nearest.
    template <class Distances> void settle_in(std::int64_t i, std::int64_t l, float width, Distances &distances) {
        float least = HUGE_VALF;
        double nearest = HUGE_VAL;
        std::int64_t best = 0, next = 0;
        for (std::int64_t k = 0; k < std::ssize(ends_); ++k) {
            for (; next < ends_[k]; ++next) {
                const std::int32_t number = numbers_of(i)[next];
                const float bound = bounds_[number * n_rows_ + l];
                if (number == nested_.n_first || bound - least > width)
                    continue;
                least = std::min(least, bound);
                if (const double d = distances.to(number); d < nearest) {
                    nearest = d;
                    best = next;
                }
            }
            place(i, k, l) = static_cast<std::uint16_t>(best);
        }
    }

    const NestedSamples &nested_;
    const Scans &scans_;
    std::vector<std::int64_t> ends_;    // the small sizes, then n_few
    std::int64_t n_rows_ = kAbreast;    // kAbreast or 1
    const float *bounds_ = nullptr;     // [point][row]
    std::vector<float> abreast_;        // the same, if there are several rows
    std::vector<std::uint16_t> places_; // [sample][size][row]
    std::vector<std::uint32_t> unsure_; // by sample: the rows that exact distances decide, as bits
    std::vector<std::uint16_t> row_;    // places of one row and size
    std::uint32_t any_unsure_ = 0;      // in any sample
    std::array<float, kAbreast> furthest_{};
};

} // namespace isokern
