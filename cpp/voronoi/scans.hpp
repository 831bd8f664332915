// Scans over the bounds of a row's distances, and over the places of points in samples, for each SIMD instruction set.
//
// In: bounds, or places. Out: the candidates among the bounds, the nearest points of prefixes of a sample, and the
// first points of a walk (nested_walk.hpp). The functions are compiled once per instruction set (scans_kernel.cpp) and
// chosen at run time; all give the same results.
#pragma once

#include <cstdint>

namespace isokern {

constexpr std::int64_t kSpare = 16;        // room behind the indices of indices_within
constexpr std::int64_t kAbreast = 16;      // rows whose minima run side by side
constexpr std::int64_t kSubsets = 256;     // subsets of subset_minima
constexpr std::int64_t kBoxes = 16;        // box_distances needs a multiple of this many boxes
constexpr std::int64_t kTogether = 32;     // samples processed together by first_places and walk
constexpr std::uint16_t kNowhere = 0xffff; // the place of a point that is not in a sample

struct Scans {
    // Writes the indices k < n with bounds[k] <= limit, ascending; returns their number. There must be room for kSpare
    // more than n indices.
    std::int64_t (*indices_within)(const float *bounds, std::int64_t n, float limit, std::int32_t *indices);

    // The first k < n with the smallest bounds[k]; n > 0.
    std::int64_t (*least_index)(const float *bounds, std::int64_t n);

    //  minima[l] = the smallest bounds[k], k < n, of those with k = l modulo kSubsets
    void (*subset_minima)(const float *bounds, std::int64_t n, float *minima);

    //  abreast[p, l] = rows[l][p] for p < n, l < kAbreast
    // Transposes the bounds of kAbreast rows.
    void (*put_abreast)(const float *const *rows, std::int64_t n, float *abreast);

    // Finds the nearest points of a sample's prefixes, for n_rows = kAbreast rows l at once, or for one row. With
    // b[k, l] = bounds[numbers[k], l]:
    //  places[s, l] = the first place k < ends[s] with the smallest b[k, l]
    //  furthest[l] = max(furthest[l], the smallest b[k, l] of all)
    // Returns the rows, as bits, of which the smallest two bounds of some prefix differ by no more than widths[l].
    //  in: bounds [p][n_rows]; numbers; ends, ascending; widths      out: places [n_ends][n_rows]
    //  changed: furthest
    using PrefixMinima = std::uint32_t (*)(const float *bounds, const std::int32_t *numbers, const std::int64_t *ends,
                                           std::int64_t n_ends, const float *widths, std::uint16_t *places,
                                           float *furthest);
    PrefixMinima prefix_minima, prefix_minima_of_one;

    //  squares[c] = sum_j max(lows[j, c] - x[j], x[j] - highs[j, c], 0)^2 for c < n, a multiple of kBoxes
    // The squared distances of x to n boxes.      in: x; lows, highs, [n_axes][n]
    void (*box_distances)(const float *x, std::int64_t n_axes, const float *lows, const float *highs, std::int64_t n,
                          float *squares);

    //  first[i + l] = min_k points[k][i + l] for l < kTogether: the first place, in these samples, of any of n points
    //  in: places as in walk
    void (*first_places)(const std::uint16_t *const *points, std::int64_t n, std::int64_t i, std::uint16_t *first);

    // Continues a walk (nested_walk.hpp): for each sample i with nothing found so far,
    //  found[i] = steps[k][i] for the first k with steps[k][i] < size
    //  in: steps, each the places of a point in n_samples (a multiple of kTogether), kNowhere if it is not in a sample
    //  changed: found, kNowhere where nothing has been found; returns whether there is such a sample
    bool (*walk)(const std::uint16_t *const *steps, std::int64_t n_steps, std::uint16_t size, std::int64_t n_samples,
                 std::uint16_t *found);
};

// The implementation for the widest instruction set that this CPU supports.
const Scans &best_scans();

} // namespace isokern
