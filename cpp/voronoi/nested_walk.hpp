// Finds a row's nearest points in all samples, for all large sizes at once, by a scan in order of distance: a walk.
//
// In: the points that may be nearest, with bounds on their distances. Out: per size and sample, the place of the
// nearest point. The walk visits points nearest first. The first point whose place in sample i is below the size is the
// nearest of that sample. Larger sizes are complete earlier, and the walk ends with the smallest size.
//
// Bounds have rounding errors. Points whose bounds differ by no more than that form a run, which exact distances put in
// order. Points at equal distance are visited in one step, with the first of their places in each sample.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "voronoi/scans.hpp"

namespace isokern {

using NearPoint = std::pair<float, std::int32_t>; // (bound, number of the point in the pool)

class Walk {
  public:
    //   places: of each point in each sample, [pool][n_samples], n_samples a multiple of kTogether
    //   sizes: the large ones, ascending      found: the places of the nearest points, [size][sample]
    Walk(std::span<const std::uint16_t> places, std::int64_t n_samples, std::span<const std::int64_t> sizes,
         std::uint16_t *found)
        : places_(places), n_samples_(n_samples), scans_(best_scans()), sizes_(sizes), found_(found),
          tied_(kSteps * static_cast<std::size_t>(n_samples)) {}

    // Walks through the points of `near` until all sizes are complete; returns whether they are.
    //   in: near, points that may be nearest, with bounds; furthest, an upper limit of these bounds; width and
    //   has_exact_bounds, see bounds.hpp; distances of the row
    //   changed: found, which must be kNowhere at first
    template <class Distances>
    bool go(std::span<const NearPoint> near, float furthest, float width, bool has_exact_bounds, Distances &distances) {
        order(near, furthest);
        n_open_ = sizes_.size();
        for (std::size_t begin = 0, end = 1; n_open_ > 0 && is_ordered(begin); begin = end++) {
            while (is_ordered(end) && by_bound_[end].first - by_bound_[end - 1].first <= width)
                ++end;
            const std::span run(by_bound_.cbegin() + begin, by_bound_.cbegin() + end);
            if (run.size() == 1 || has_exact_bounds)
                add_step(run);
            else
                add_run(run, distances);
        }
        take_steps();
        return n_open_ == 0;
    }

  private:
    static constexpr std::size_t kSteps = 64; // steps that are collected before they are taken
    static constexpr std::size_t kMany = 16;  // tied points in a step, after which the walk is often complete
    static constexpr std::size_t kBuckets = 256;

    // Distributes points into equally wide buckets by their bounds (bucket sort). Buckets are sorted only when the walk
    // reaches them, since it usually ends early.
    void order(std::span<const NearPoint> near, float furthest) {
        const auto nearest = std::min_element(near.begin(), near.end());
        const float least = nearest == near.end() ? furthest : nearest->first;
        const float per_unit = furthest > least ? static_cast<float>(kBuckets) / (furthest - least) : 0.0f;
        const auto bucket_of = [&](const NearPoint &point) {
            return std::min(static_cast<std::size_t>((point.first - least) * per_unit), kBuckets - 1);
        };
        bucket_ends_.fill(0);
        for (const NearPoint &point : near)
            ++bucket_ends_[bucket_of(point)];
        std::exclusive_scan(bucket_ends_.begin(), bucket_ends_.end(), bucket_ends_.begin(), std::size_t{0});
        by_bound_.resize(near.size());
        for (const NearPoint &point : near)
            by_bound_[bucket_ends_[bucket_of(point)]++] = point;
        bucket_ = n_ordered_ = 0;
    }

    // Whether by_bound_ has a k-th point; sorts buckets until it is in its final position.
    bool is_ordered(std::size_t k) {
        for (; k >= n_ordered_ && bucket_ < kBuckets; n_ordered_ = bucket_ends_[bucket_++])
            std::sort(by_bound_.begin() + n_ordered_, by_bound_.begin() + bucket_ends_[bucket_]);
        return k < by_bound_.size();
    }

    const std::uint16_t *places_of(std::int32_t p) const { return places_.data() + p * n_samples_; }

    // Adds one step, to points at equal distance. Ties are merged into one array of first places; samples that are
    // complete need none.
    template <class Distance> void add_step(std::span<const std::pair<Distance, std::int32_t>> points) {
        const std::uint16_t *step = places_of(points.front().second);
        if (points.size() > 1) {
            if (points.size() > kMany)
                take_steps();
            tied_points_.clear();
            for (const auto &[distance, p] : points)
                tied_points_.push_back(places_of(p));
            std::uint16_t *first = tied_.data() + steps_.size() * static_cast<std::size_t>(n_samples_);
            for (std::int64_t i = 0; i < n_samples_; i += kTogether)
                if (are_open(i))
                    scans_.first_places(tied_points_.data(), static_cast<std::int64_t>(points.size()), i, first);
            step = first;
        } else
            for (std::int64_t i = 0; i < n_samples_; i += kTogether)
                __builtin_prefetch(step + i);
        steps_.push_back(step);
        if (steps_.size() == kSteps || points.size() > kMany)
            take_steps();
    }

    // Whether one of the samples i .. i + kTogether - 1 is not complete. The smallest size is so last.
    bool are_open(std::int64_t i) const {
        return std::find(found_ + i, found_ + i + kTogether, kNowhere) != found_ + i + kTogether;
    }

    // Adds the steps of a run, in order of exact distances.
    template <class Distances> void add_run(std::span<const NearPoint> run, Distances &distances) {
        by_distance_.clear();
        for (const auto &[bound, p] : run)
            by_distance_.emplace_back(distances.to(p), p);
        std::sort(by_distance_.begin(), by_distance_.end());
        for (auto begin = by_distance_.cbegin(); n_open_ > 0 && begin != by_distance_.cend();) {
            const auto end =
                std::find_if(begin, by_distance_.cend(), [&](const auto &p) { return p.first > begin->first; });
            add_step(std::span(begin, end));
            begin = end;
        }
    }

    // Takes the collected steps for all sizes that are not complete, the largest first. A size is closed only after all
    // larger ones, which are complete no later.
    void take_steps() {
        for (std::size_t k = n_open_; k-- > 0;)
            if (!scans_.walk(steps_.data(), static_cast<std::int64_t>(steps_.size()),
                             static_cast<std::uint16_t>(sizes_[k]), n_samples_, found_ + k * n_samples_) &&
                k + 1 == n_open_)
                --n_open_;
        steps_.clear();
    }

    std::span<const std::uint16_t> places_;
    std::int64_t n_samples_;
    const Scans &scans_;
    std::span<const std::int64_t> sizes_;
    std::size_t n_open_ = 0;                         // the first n_open_ sizes are not complete
    std::uint16_t *found_;                           // [size][sample]
    std::vector<const std::uint16_t *> steps_;       // collected steps: places in all samples
    std::vector<std::uint16_t> tied_;                // places of steps to tied points, [step][sample]
    std::vector<const std::uint16_t *> tied_points_; // scratch
    std::vector<NearPoint> by_bound_;                // in buckets; the first buckets are sorted
    std::array<std::size_t, kBuckets> bucket_ends_;
    std::size_t bucket_ = 0, n_ordered_ = 0; // the first bucket that is not sorted, and where it begins
    std::vector<std::pair<double, std::int32_t>> by_distance_;
};

} // namespace isokern
