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
#include <vector>

#include "voronoi/scans.hpp"

namespace isokern {

constexpr std::int64_t kBoxSides = 16; // splits and bounding boxes use the first kBoxSides coordinates only

class Chunks {
  public:
    // coordinates: n x n_coordinates      length: points of a chunk; the last chunk may be shorter
    Chunks(const float *coordinates, std::int64_t n, std::int64_t n_coordinates, std::int64_t length)
        : length_(length), n_axes_(std::min(n_coordinates, kBoxSides)), order_(static_cast<std::size_t>(n)) {
        std::iota(order_.begin(), order_.end(), 0);
        n_chunks_ = (n + length_ - 1) / length_;
        n_boxes_ = (n_chunks_ + kBoxes - 1) / kBoxes * kBoxes;
        lows_.assign(static_cast<std::size_t>(n_axes_ * n_boxes_), std::numeric_limits<float>::infinity());
        highs_.assign(lows_.size(), -std::numeric_limits<float>::infinity());
        halve(coordinates, n_coordinates, 0, n_chunks_);
        for (std::int64_t k = 0; k < n; ++k)
            widen(coordinates + order_[k] * n_coordinates, k / length_);
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
    // Partitions the points of chunks begin .. end - 1 at their median chunk boundary, recursively (quickselect).
    //   changed: order_
    void halve(const float *coordinates, std::int64_t stride, std::int64_t begin, std::int64_t end) {
        if (end - begin <= 1)
            return;
        const auto first = order_.begin() + begin * length_;
        const auto last = order_.begin() + std::min(end * length_, static_cast<std::int64_t>(order_.size()));
        const std::int64_t middle = begin + (end - begin) / 2;
        const std::int64_t axis = widest(coordinates, stride, first, last);
        std::nth_element(first, order_.begin() + middle * length_, last, [&](std::int32_t a, std::int32_t b) {
            return coordinates[a * stride + axis] < coordinates[b * stride + axis];
        });
        halve(coordinates, stride, begin, middle);
        halve(coordinates, stride, middle, end);
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
