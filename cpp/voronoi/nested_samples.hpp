// Nested samples (prefixes of each other), prepared for a search of all sizes at once (nested_search.hpp).
//
// In: points, samples, sizes. Out: their pool; the first points of each sample, for running minima; and the place of
// each point in each sample, for walks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "simd/products.hpp"
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
    // The first n_few points of each sample, as numbers in the pool, [n_samples][n_few]. n_first, whose bound is
    // infinite, stands for a point that repeats an earlier one.
    std::vector<std::int32_t> numbers;
    // Points among the first n_first that a walk visits until it is complete, in all but few cases.
    double n_visited = 0.0;

    template <class Points>
    NestedSamples(const Points &points, const Samples &samples, bool are_all_first)
        : sizes(samples.sizes), pool(points, samples), n_few(std::min(kFewPlaces, samples.largest())),
          n_first(are_all_first ? pool.size() : std::min(pool.size(), n_panels(count_first()) * kPanel)),
          numbers(static_cast<std::size_t>(n_samples() * n_few), static_cast<std::int32_t>(n_first)) {
        for (std::int64_t p = 0; p < n_first; ++p)
            for (std::int64_t k = pool.member_starts[p]; k < pool.member_ends[p]; ++k)
                if (const auto [i, place] = pool.members[k]; place < n_few)
                    numbers[i * n_few + place] = static_cast<std::int32_t>(p);
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

    static constexpr std::int64_t kFewPlaces = 256; // that running minima cover; more are faster by a walk
    static constexpr double kFailures = 0.02;       // mean number of samples that a guessed limit leaves open

    std::int64_t n_samples() const { return pool.n_partitionings; }

    // n_samples, rounded up for walks.
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
};

} // namespace isokern
