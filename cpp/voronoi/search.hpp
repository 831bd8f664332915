// One row's nearest point in each of t samples, found in one pass over the pool of their points: filter and refine.
//
// In: the pool, and for each of its points a lower and an upper bound on the distance to the row. Out: the place of the
// nearest point in each sample. A partitioning's limit is the smallest upper bound so far of its points. A point is a
// candidate for it only if its lower bound is at most that limit. A point whose lower bound exceeds the largest limit
// (the threshold) is skipped without looking at its partitionings; soon that holds for nearly all points. Where more
// than one candidate remains, exact distances decide.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "voronoi/pool.hpp"

namespace isokern {

// The search of one row. Bounds are squared distances less a number that is the same for all points.
template <class Real> class Search {
  public:
    explicit Search(const Pool &pool) : pool_(&pool), limits_(static_cast<std::size_t>(pool.n_partitionings)) {}

    void begin() {
        std::fill(limits_.begin(), limits_.end(), kInfinity);
        threshold_ = kInfinity;
        candidates_.clear();
    }

    // A point with a larger lower bound is nearest in no sample: the largest limit at the last call of lower_threshold.
    Real threshold() const { return threshold_; }
    void lower_threshold() { threshold_ = *std::max_element(limits_.begin(), limits_.end()); }

    // Whether a point with this lower bound may be nearest in one of its own partitionings.
    bool may_be_nearest(std::int32_t point, double lower) const {
        const auto begin = pool_->members.begin() + pool_->member_starts[point];
        const auto end = pool_->members.begin() + pool_->member_ends[point];
        return std::any_of(begin, end, [&](const Member &member) { return lower <= limits_[member.partitioning]; });
    }

    // Makes a point a candidate in those of its partitionings whose limit it does not exceed, and lowers their limits.
    void enter(std::int32_t point, Real lower, Real upper) {
        for (std::int64_t k = pool_->member_starts[point]; k < pool_->member_ends[point]; ++k) {
            const Member member = pool_->members[k];
            Real &limit = limits_[member.partitioning];
            if (lower <= limit) {
                candidates_.push_back({member, point, lower});
                limit = std::min(limit, upper);
            }
        }
    }

    // Makes every point a candidate, for rows without usable bounds.
    void enter_all() {
        for (std::int32_t p = 0; p < pool_->size(); ++p)
            enter(p, -kInfinity, kInfinity);
    }

    // places[i] = the place of the nearest point in sample i. Counts the candidates that the final limits leave; only
    // where there are several, asks for exact distances. Of equal distances the first place wins.
    template <class Distances> void settle(Distances &distances, std::vector<std::int32_t> &places) const {
        std::vector<Best> best(limits_.size());
        for (const Candidate &candidate : candidates_)
            if (is_open(candidate)) {
                Best &current = best[candidate.member.partitioning];
                current.place = candidate.member.place;
                ++current.n_candidates;
            }
        for (const Candidate &candidate : candidates_) {
            Best &current = best[candidate.member.partitioning];
            if (current.n_candidates > 1 && is_open(candidate))
                current.improve(distances.to(candidate.point), candidate.member.place);
        }
        places.resize(best.size());
        std::transform(best.begin(), best.end(), places.begin(), [](const Best &found) { return found.place; });
    }

  private:
    static constexpr Real kInfinity = std::numeric_limits<Real>::infinity();

    struct Candidate {
        Member member;
        std::int32_t point;
        Real lower;
    };

    struct Best {
        double distance = HUGE_VAL;
        std::int32_t place = 0;
        std::int32_t n_candidates = 0;

        void improve(double other, std::int32_t its_place) {
            if (other < distance || (other == distance && its_place < place)) {
                distance = other;
                place = its_place;
            }
        }
    };

    // Whether the final limit does not rule the candidate out.
    bool is_open(const Candidate &candidate) const { return candidate.lower <= limits_[candidate.member.partitioning]; }

    const Pool *pool_;
    Real threshold_ = kInfinity;
    std::vector<Real> limits_; // by partitioning: the smallest upper bound so far
    std::vector<Candidate> candidates_;
};

} // namespace isokern
