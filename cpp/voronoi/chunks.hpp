// Groups points spatially for nearest-neighbour search: the leaves of a k-d tree, with bounding boxes.
//
// In: coordinates of points, the number of points in a chunk. Out: an order of the points in which each chunk is
// contiguous, and squared distances from a row to all bounding boxes. A range of points is split at the median of the
// coordinate with the largest variance until it is one chunk, that is one leaf. No point of a chunk is nearer to x than
// its bounding box, so the search visits chunks nearest first and prunes by the box distance.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "common/threads.hpp"
#include "voronoi/scans.hpp"

namespace isokern {

constexpr std::int64_t kBoxSides = 16; // splits and bounding boxes use the first kBoxSides coordinates only

class Chunks {
  public:
    // coordinates: n x n_coordinates      length: points of a chunk; the last chunk may be shorter
    Chunks(const float *coordinates, std::int64_t n, std::int64_t n_coordinates, std::int64_t length, int threads)
        : length_(length), n_axes_(std::min(n_coordinates, kBoxSides)), order_(static_cast<std::size_t>(n)) {
        std::iota(order_.begin(), order_.end(), 0);
        n_chunks_ = (n + length_ - 1) / length_;
        n_boxes_ = (n_chunks_ + kBoxes - 1) / kBoxes * kBoxes;
        lows_.assign(static_cast<std::size_t>(n_axes_ * n_boxes_), std::numeric_limits<float>::infinity());
        highs_.assign(lows_.size(), -std::numeric_limits<float>::infinity());
        // Level by level, because the ranges of a level can be split in parallel.
        for (std::vector<Range> ranges{{0, n_chunks_}}, halves; !ranges.empty(); ranges.swap(halves)) {
            halves.assign(2 * ranges.size(), {});
            parallel_tiles(std::ssize(ranges), 1, n < kFewPoints ? 1 : threads, [&] {
                return [&](std::int64_t k, std::int64_t) {
                    std::tie(halves[2 * k], halves[2 * k + 1]) = halve(coordinates, n_coordinates, ranges[k]);
                };
            });
            std::erase_if(halves, [](const Range &range) { return range.end - range.begin <= 1; });
        }
        parallel_tiles(n_chunks_, 64, n < kFewPoints ? 1 : threads, [&] {
            return [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t k = begin * length_; k < std::min(end * length_, n); ++k)
                    widen(coordinates + order_[k] * n_coordinates, k / length_);
            };
        });
    }

    std::int64_t size() const { return n_chunks_; }

    // The points' numbers, chunk after chunk.
    const std::vector<std::int32_t> &order() const { return order_; }

    // Chunks, rounded up to what box_distances needs.
    std::int64_t n_boxes() const { return n_boxes_; }

    // squares[c] = the squared distance of x to the box of chunk c < n_boxes(); infinite where there is no such chunk.
    void distances(const float *x, float *squares) const {
        best_scans().box_distances(x, n_axes_, lows_.data(), highs_.data(), n_boxes_, squares);
    }

  private:
    struct Range {
        std::int64_t begin, end; // of chunks
    };

    static constexpr std::int64_t kFewPoints = 1 << 12; // fewer are split before a thread has started

    // Partitions the points of a range of chunks at their median chunk boundary (quickselect); returns its halves.
    //   changed: order_
    std::pair<Range, Range> halve(const float *coordinates, std::int64_t stride, Range range) {
        const auto [begin, end] = range;
        if (end - begin <= 1)
            return {};
        const auto first = order_.begin() + begin * length_;
        const auto last = order_.begin() + std::min(end * length_, static_cast<std::int64_t>(order_.size()));
        const std::int64_t middle = begin + (end - begin) / 2;
        const std::int64_t axis = widest(coordinates, stride, first, last);
        std::nth_element(first, order_.begin() + middle * length_, last, [&](std::int32_t a, std::int32_t b) {
            return coordinates[a * stride + axis] < coordinates[b * stride + axis];
        });
        return {{begin, middle}, {middle, end}};
    }

    // The coordinate with the largest variance, estimated from at most 2048 of the points.
    template <class Iterator>
    std::int64_t widest(const float *coordinates, std::int64_t stride, Iterator first, Iterator last) const {
        const std::int64_t step = (last - first + 2047) / 2048;
        std::int64_t best = 0;
        double largest = -1.0;
        for (std::int64_t j = 0; j < n_axes_; ++j) {
            double n = 0.0, sum = 0.0, squares = 0.0;
            for (std::int64_t k = 0; k < last - first; k += step) {
                const double x = coordinates[first[k] * stride + j];
                n += 1.0;
                sum += x;
                squares += x * x;
            }
            const double variance = squares - sum * sum / n;
            if (variance > largest) {
                largest = variance;
                best = j;
            }
        }
        return best;
    }

    // Extends the bounding box of a chunk to a point.
    void widen(const float *point, std::int64_t chunk) {
        for (std::int64_t j = 0; j < n_axes_; ++j) {
            float &low = lows_[j * n_boxes_ + chunk], &high = highs_[j * n_boxes_ + chunk];
            low = std::min(low, point[j]);
            high = std::max(high, point[j]);
        }
    }

    std::int64_t length_, n_axes_, n_chunks_ = 0, n_boxes_ = 0;
    std::vector<std::int32_t> order_;
    std::vector<float> lows_, highs_; // [axis][n_boxes_]
};

} // namespace isokern
