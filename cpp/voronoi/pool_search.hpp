// One row's nearest point in each of t samples, found in one pass over the pool of their points: filter and refine.
//
// In: the pool, and for each of its points a lower and an upper bound on the distance to the row. Out: the place of the
// nearest point in each sample. A partitioning's limit is the smallest upper bound so far of its points. A point is a
// candidate for it only if its lower bound is at most that limit. A point whose lower bound exceeds the largest limit
// (the threshold) is skipped without looking at its partitionings; soon that holds for nearly all points. Where more
// than one candidate remains, exact distances decide.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "common/random.hpp"
#include "common/rows.hpp"
#include "common/threads.hpp"
#include "voronoi/inverted_index.hpp"

namespace isokern {

// Copies row r to values, as doubles, zeros included.
template <class Rows> void load_dense(const Rows &rows, std::int64_t r, std::span<double> values) {
    std::fill(values.begin(), values.end(), 0.0);
    for_each_nonzero(rows, r, [&](std::int32_t column, double value) { values[column] = value; });
}

// A hash of the non-zero values of point p and their columns.
template <class Rows> std::uint64_t hash_of(const Rows &points, std::int64_t p) {
    std::uint64_t hash = 0;
    for_each_nonzero(points, p, [&](std::int32_t column, double value) {
        hash = mix(hash + kStep * static_cast<std::uint64_t>(column)) ^ mix(std::bit_cast<std::uint64_t>(value));
    });
    return hash;
}

// first[p] = the number of the first point that equals point p, by a hash table with linear probing.
template <class Rows> std::vector<std::int32_t> find_equal_points(const Rows &points) {
    const auto n = static_cast<std::size_t>(points.n_rows);
    std::vector<std::uint64_t> hashes(n);
    parallel_tiles(points.n_rows, 1024, 0, [&] {
        return [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t p = begin; p < end; ++p)
                hashes[p] = hash_of(points, p);
        };
    });
    std::vector<std::int32_t> table(std::bit_ceil(2 * n), -1), first(n); // hash table of points; -1: free
    std::vector<Entry> one, other;
    const auto are_equal = [&](std::int32_t p, std::int32_t q) {
        load_entries(points, p, one);
        load_entries(points, q, other);
        return one == other;
    };
    for (std::int32_t p = 0; p < points.n_rows; ++p) {
        std::size_t at = hashes[p] & (table.size() - 1);
        while (table[at] >= 0 && !(hashes[table[at]] == hashes[p] && are_equal(table[at], p)))
            at = (at + 1) & (table.size() - 1);
        if (table[at] < 0)
            table[at] = p;
        first[p] = table[at];
    }
    return first;
}

// One occurrence of a point in a sample.
struct Member {
    std::int32_t partitioning;
    std::int32_t place; // in that partitioning's sample
};

// The distinct points of all samples, ordered by their first place in any sample, with the samples that each is in.
struct Pool {
    std::vector<std::int32_t> points; // their row numbers in the table of points
    std::vector<Member> members;
    std::vector<std::int64_t> member_starts, member_ends; // point -> its range of members, in order of place

    // Counting sort of all places of all samples by point: counts members, sums the counts up, then fills them in.
    //   in: first_equal (find_equal_points), samples, n_partitionings x sample_size
    Pool(const std::vector<std::int32_t> &first_equal, const std::int32_t *samples, std::int64_t n_partitionings,
         std::int64_t sample_size)
        : members(static_cast<std::size_t>(n_partitionings * sample_size)), member_starts{0} {
        std::vector<std::int32_t> number(first_equal.size(), -1);
        const auto for_each = [&](auto visit) {
            for (std::int32_t place = 0; place < sample_size; ++place)
                for (std::int32_t i = 0; i < n_partitionings; ++i)
                    visit(first_equal[samples[i * sample_size + place]], Member{i, place});
        };
        for_each([&](std::int32_t row, Member) {
            if (number[row] < 0) {
                number[row] = static_cast<std::int32_t>(points.size());
                points.push_back(row);
                member_starts.push_back(0);
            }
            ++member_starts[number[row] + 1];
        });
        for (std::size_t p = 0; p < points.size(); ++p)
            member_starts[p + 1] += member_starts[p];
        member_ends = member_starts;
        // Of equal points in one sample, only the first counts, since it wins all ties. That is why a point's range of
        // members can be shorter than the room for it. Points without equals occur once in a sample: no check needed.
        std::vector<bool> has_equals(first_equal.size(), false);
        for (std::size_t row = 0; row < first_equal.size(); ++row)
            if (first_equal[row] != static_cast<std::int32_t>(row))
                has_equals[first_equal[row]] = true;
        for_each([&](std::int32_t row, Member member) {
            if (!has_equals[row] || !is_in(number[row], member.partitioning))
                members[member_ends[number[row]]++] = member;
        });
    }

    std::int64_t size() const { return static_cast<std::int64_t>(points.size()); }

    // Reorders the points: the k-th becomes the one that was order[k]-th. Their members move along.
    void reorder(const std::vector<std::int32_t> &order) {
        const Pool before = *this;
        std::int64_t n = 0;
        for (std::size_t k = 0; k < order.size(); ++k) {
            points[k] = before.points[order[k]];
            const auto begin = before.members.begin() + before.member_starts[order[k]];
            const auto end = before.members.begin() + before.member_ends[order[k]];
            std::copy(begin, end, members.begin() + n);
            member_starts[k] = n;
            member_ends[k] = n += end - begin;
        }
    }

  private:
    bool is_in(std::int32_t point, std::int32_t partitioning) const {
        return std::any_of(members.begin() + member_starts[point], members.begin() + member_ends[point],
                           [&](const Member &member) { return member.partitioning == partitioning; });
    }
};

// Caches the exact distances of one row, because a point is often a candidate in several partitionings.
class Distances {
  public:
    explicit Distances(const Pool &pool) : pool_(pool), known_(pool.points.size()), asked_(pool.points.size(), 0) {}

    void begin_row() { ++row_; } // invalidates the cache

    // The distance to a point of the pool; distance(row number) is called if it is not cached.
    template <class Distance> double get(std::int32_t point, Distance distance) {
        if (asked_[point] != row_) {
            asked_[point] = row_;
            known_[point] = distance(pool_.points[point]);
        }
        return known_[point];
    }

  private:
    const Pool &pool_;
    std::vector<double> known_;
    std::vector<std::int64_t> asked_; // point -> the row for which known_ was computed
    std::int64_t row_ = 0;
};

// The search of one row. Bounds are squared distances less a number that is the same for all points.
template <class Real> class Search {
  public:
    Search(const Pool &pool, std::int64_t n_partitionings)
        : pool_(&pool), limits_(static_cast<std::size_t>(n_partitionings)) {}

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

    // cells[i] = the place of the nearest point in sample i. Counts the candidates that the final limits leave; only
    // where there are several, computes distance(row number of a point). Of equal distances the first place wins.
    template <class Distance, class Cell> void settle(Distances &distances, Distance distance, Cell *cells) const {
        distances.begin_row();
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
                current.improve(distances.get(candidate.point, distance), candidate.member.place);
        }
        for (std::size_t i = 0; i < best.size(); ++i)
            cells[i] = static_cast<Cell>(best[i].place);
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
