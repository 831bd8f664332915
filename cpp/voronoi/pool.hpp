// The pool: the distinct points of all samples, each with the samples that it is in.
//
// In: points, samples of their numbers. Out: the points of the pool, and for each its members: (sample, place in it).
// Equal points are found with a hash table. The t samples overlap, so one comparison of a row with a point of the pool
// serves all samples that the point is in.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "common/hash_table.hpp"
#include "common/random.hpp"
#include "common/rows.hpp"
#include "common/threads.hpp"
#include "voronoi/distance.hpp"

namespace isokern {

// A hash of the non-zero values of point p and their columns.
template <class Rows> std::uint64_t hash_of(const Rows &points, std::int64_t p) {
    std::uint64_t hash = 0;
    for_each_nonzero(points, p, [&](std::int32_t column, double value) {
        hash = mix(hash + kStep * static_cast<std::uint64_t>(column)) ^ mix(std::bit_cast<std::uint64_t>(value));
    });
    return hash;
}

// first[p] = the number of the first point that equals point p.
template <class Rows> std::vector<std::int32_t> find_equal_points(const Rows &points) {
    const auto n = static_cast<std::size_t>(points.n_rows);
    std::vector<std::uint64_t> hashes(n);
    parallel_tiles(points.n_rows, 1024, 0, [&] {
        return [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t p = begin; p < end; ++p)
                hashes[p] = hash_of(points, p);
        };
    });
    HashTable<std::uint64_t, std::int32_t> by_hash(n);
    std::vector<std::int32_t> first(n);
    std::vector<Entry> one, other;
    const auto are_equal = [&](std::int32_t p, std::int32_t q) {
        load(points, p, one);
        load(points, q, other);
        return one == other;
    };
    for (std::int32_t p = 0; p < points.n_rows; ++p) {
        // Should points with the same hash differ, the next hash is tried.
        for (std::uint64_t hash = hashes[p];; ++hash) {
            first[p] = by_hash.get_or_insert(hash, p);
            if (first[p] == p || are_equal(first[p], p))
                break;
        }
    }
    return first;
}

// Nested samples of points: the first sizes[k] points of a sample are a sample of their own.
struct Samples {
    std::span<const std::int32_t> numbers; // n x the largest size: numbers of points
    std::int64_t n;
    std::span<const std::int64_t> sizes; // ascending

    std::int64_t largest() const { return sizes.back(); }
};

// One occurrence of a point in a sample.
struct Member {
    std::int32_t partitioning;
    std::int32_t place; // in that partitioning's sample
};

// The distinct points of all samples, ordered by their first place in any sample, with the samples that each is in.
struct Pool {
    std::int64_t n_partitionings;
    std::vector<std::int32_t> points; // their row numbers in the table of points
    std::vector<Member> members;
    std::vector<std::int64_t> member_starts, member_ends; // point -> its range of members, in order of place

    // Counting sort of all places of all samples by point: counts members, sums the counts up, then fills them in.
    template <class Points>
    Pool(const Points &table, const Samples &samples)
        : n_partitionings(samples.n), members(samples.numbers.size()), member_starts{0} {
        const std::vector<std::int32_t> first_equal = find_equal_points(table);
        std::vector<std::int32_t> number(first_equal.size(), -1);
        const auto for_each = [&](auto visit) {
            for (std::int32_t place = 0; place < samples.largest(); ++place)
                for (std::int32_t i = 0; i < n_partitionings; ++i)
                    visit(first_equal[samples.numbers[i * samples.largest() + place]], Member{i, place});
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

} // namespace isokern
