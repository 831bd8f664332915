// A row's walk through the points near to it, for all large sizes of nested samples at once.
//
// Points are met from near to far. The first of a sample is its nearest; from then on only those that lie further to
// its front matter, as nearest of a smaller size, until all samples have met one among their few first points.
//
// Bounds on distances are off by a little. Points that follow each other more closely than that make a run, within
// which distances themselves give the order. Points at the same distance are met as one that has, in each sample, the
// first of their places.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "products.hpp"
#include "voronoi_search.hpp"

namespace isokern {

using NearPoint = std::pair<float, std::int32_t>; // a bound, and the point's number in the pool

class Walk {
  public:
    // sizes: the large ones, ascending      found: for each of them the place of each sample's nearest point
    Walk(const Pool &pool, std::span<const NestedMember> members, std::int64_t n_samples,
         std::span<const std::int64_t> sizes, std::int32_t *found)
        : pool_(pool), members_(members), products_(best_products()), sizes_(sizes.begin(), sizes.end()),
          fronts_(static_cast<std::size_t>(n_samples)), lowest_(fronts_.size(), kNowhere), n_missing_(sizes.size()),
          met_{n_samples,        static_cast<std::int64_t>(sizes.size()), sizes_.data(), fronts_.data(), found,
               n_missing_.data()} {}

    // near: points that may be nearest, with their bounds      furthest: none of which is larger
    // width, has_exact_bounds: see nested_bounds.hpp      exact(p): the distance to point p
    template <class Exact>
    void go(std::span<const NearPoint> near, float furthest, float width, bool has_exact_bounds, Exact exact) {
        order(near, furthest);
        std::fill(fronts_.begin(), fronts_.end(), kNowhere);
        std::fill(n_missing_.begin(), n_missing_.end(), met_.n_samples);
        met_.n_open = static_cast<std::int64_t>(sizes_.size());
        for (std::size_t begin = 0, end = 0; met_.n_open > 0 && is_ordered(begin); begin = end) {
            do
                fetch_behind(end++);
            while (is_ordered(end) && by_bound_[end].first - by_bound_[end - 1].first <= width);
            const std::span run(by_bound_.begin() + begin, by_bound_.begin() + end);
            if (run.size() == 1)
                meet(members_of(run.front().second));
            else if (has_exact_bounds)
                meet_tied(run);
            else
                meet_run(run, exact);
        }
    }

  private:
    static constexpr std::int32_t kNowhere = 1 << 30;
    static constexpr std::size_t kAhead = 8; // points whose members are fetched meanwhile
    static constexpr std::size_t kBuckets = 256;

    // Puts points into buckets, from near to far.
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

    // Whether there is a k-th of the near points; orders buckets as far as it.
    bool is_ordered(std::size_t k) {
        for (; k >= n_ordered_ && bucket_ < kBuckets; n_ordered_ = bucket_ends_[bucket_++])
            std::sort(by_bound_.begin() + n_ordered_, by_bound_.begin() + bucket_ends_[bucket_]);
        return k < by_bound_.size();
    }

    // Members lie anywhere in memory. Fewer and fewer of a point's first are wanted.
    void fetch_behind(std::size_t next) const {
        if (next + kAhead < by_bound_.size()) {
            const std::int64_t begin = pool_.member_starts[by_bound_[next + kAhead].second];
            const std::int64_t n_lines = met_.n_open == static_cast<std::int64_t>(sizes_.size()) ? 8 : 2;
            for (std::int64_t line = 0; line < n_lines; ++line)
                __builtin_prefetch(members_.data() + begin + line * (64 / sizeof(NestedMember)));
        }
    }

    std::span<const NestedMember> members_of(std::int32_t p) const {
        return members_.subspan(pool_.member_starts[p], pool_.member_ends[p] - pool_.member_starts[p]);
    }

    void meet(std::span<const NestedMember> members) {
        products_.meet(members.data(), static_cast<std::int64_t>(members.size()), met_);
        while (met_.n_open > 0 && n_missing_[met_.n_open - 1] == 0)
            --met_.n_open;
    }

    template <class Exact> void meet_run(std::span<NearPoint> run, Exact exact) {
        by_distance_.clear();
        for (const auto &[bound, p] : run)
            by_distance_.emplace_back(exact(p), p);
        std::sort(by_distance_.begin(), by_distance_.end());
        for (auto begin = by_distance_.begin(); met_.n_open > 0 && begin != by_distance_.end();) {
            const auto end =
                std::find_if(begin, by_distance_.end(), [&](const auto &p) { return p.first > begin->first; });
            if (end - begin == 1)
                meet(members_of(begin->second));
            else
                meet_tied(std::span(begin, end));
            begin = end;
        }
    }

    template <class Distance> void meet_tied(std::span<std::pair<Distance, std::int32_t>> points) {
        const std::int32_t size = sizes_[met_.n_open - 1];
        for (const auto &[distance, p] : points)
            for (const NestedMember member : members_of(p)) {
                if (member.place >= size)
                    break;
                lowest_[member.sample] = std::min<std::int32_t>(lowest_[member.sample], member.place);
            }
        as_one_.clear();
        for (std::size_t i = 0; i < lowest_.size(); ++i)
            if (const std::int32_t place = std::exchange(lowest_[i], kNowhere); place < size)
                as_one_.push_back({static_cast<std::uint16_t>(i), static_cast<std::uint16_t>(place)});
        meet(as_one_);
    }

    const Pool &pool_;
    std::span<const NestedMember> members_;
    const Products &products_;
    std::vector<std::int32_t> sizes_;
    std::vector<NearPoint> by_bound_; // in buckets, of which the first are sorted
    std::array<std::size_t, kBuckets> bucket_ends_;
    std::size_t bucket_ = 0, n_ordered_ = 0; // the first that is not sorted, and where it begins
    std::vector<std::pair<double, std::int32_t>> by_distance_;
    std::vector<std::int32_t> fronts_; // by sample
    std::vector<std::int32_t> lowest_; // by sample, of points that are met together
    std::vector<NestedMember> as_one_;
    std::vector<std::int64_t> n_missing_; // by size
    Met met_;
};

} // namespace isokern
