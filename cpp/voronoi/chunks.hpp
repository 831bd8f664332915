// Groups points spatially for nearest-neighbour search: the leaves of a k-d tree, with bounding boxes.
//
// In: coordinates of points, the number of points in a chunk. Out: an order of the points in which each chunk is
// contiguous, the chunk for a row, and squared distances from a row to all bounding boxes. A range of points is split
// at the median of the coordinate with the largest variance until it is one chunk, that is one leaf. No point of a
// chunk is nearer to x than its bounding box, so the search visits chunks nearest first and prunes by the box distance.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

namespace isokern {

constexpr std::int64_t kBoxSides = 16; // splits and bounding boxes use the first kBoxSides coordinates only

class Chunks {
  public:
    // coordinates: n x n_coordinates      length: points of a chunk; the last chunk may be shorter
    Chunks(const float *coordinates, std::int64_t n, std::int64_t n_coordinates, std::int64_t length)
        : length_(length), n_axes_(std::min(n_coordinates, kBoxSides)), order_(static_cast<std::size_t>(n)) {
        std::iota(order_.begin(), order_.end(), 0);
        n_chunks_ = (n + length_ - 1) / length_;
        lows_.assign(static_cast<std::size_t>(n_axes_ * n_chunks_), std::numeric_limits<float>::infinity());
        highs_.assign(lows_.size(), -std::numeric_limits<float>::infinity());
        halve(coordinates, n_coordinates, 0, n_chunks_);
        for (std::int64_t k = 0; k < n; ++k)
            widen(coordinates + order_[k] * n_coordinates, k / length_);
    }

    std::int64_t size() const { return n_chunks_; }

    // The points' numbers, chunk after chunk.
    const std::vector<std::int32_t> &order() const { return order_; }

    // The chunk (leaf) in whose part of space x lies, by descending the k-d tree.
    std::int64_t find(const float *x) const {
        std::int64_t at = 0, begin = 0, end = n_chunks_;
        while (end - begin > 1) {
            const std::int64_t middle = begin + (end - begin) / 2;
            const Cut &cut = cuts_[at];
            const bool is_below = x[cut.axis] < cut.value;
            at = is_below ? cut.below : cut.above;
            (is_below ? end : begin) = middle;
        }
        return begin;
    }

    //  squares[c] = sum_j max(low[j, c] - x[j], x[j] - high[j, c], 0)^2, the squared distance of x to the chunk's box
    void distances(const float *x, float *squares) const {
        std::fill_n(squares, n_chunks_, 0.0f);
        for (std::int64_t j = 0; j < n_axes_; ++j) {
            const float *low = lows_.data() + j * n_chunks_, *high = highs_.data() + j * n_chunks_;
            for (std::int64_t c = 0; c < n_chunks_; ++c) {
                const float outside = std::max(std::max(low[c] - x[j], x[j] - high[c]), 0.0f);
                squares[c] += outside * outside;
            }
        }
    }

  private:
    struct Cut {
        std::int64_t axis;
        float value;
        std::int64_t below = 0, above = 0; // the cuts of the two halves; unused if a half is a chunk
    };

    // Partitions the points of chunks begin .. end - 1 at their median chunk boundary, recursively (quickselect).
    //   changed: order_, cuts_      returns the number of the cut
    std::int64_t halve(const float *coordinates, std::int64_t stride, std::int64_t begin, std::int64_t end) {
        if (end - begin <= 1)
            return 0;
        const auto first = order_.begin() + begin * length_;
        const auto last = order_.begin() + std::min(end * length_, static_cast<std::int64_t>(order_.size()));
        const std::int64_t middle = begin + (end - begin) / 2;
        const std::int64_t axis = widest(coordinates, stride, first, last);
        const auto cut = order_.begin() + middle * length_;
        std::nth_element(first, cut, last, [&](std::int32_t a, std::int32_t b) {
            return coordinates[a * stride + axis] < coordinates[b * stride + axis];
        });
        const auto number = static_cast<std::int64_t>(cuts_.size());
        cuts_.push_back({axis, coordinates[*cut * stride + axis]});
        const std::int64_t below = halve(coordinates, stride, begin, middle);
        const std::int64_t above = halve(coordinates, stride, middle, end);
        cuts_[number].below = below;
        cuts_[number].above = above;
        return number;
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
            float &low = lows_[j * n_chunks_ + chunk], &high = highs_[j * n_chunks_ + chunk];
            low = std::min(low, point[j]);
            high = std::max(high, point[j]);
        }
    }

    std::int64_t length_, n_axes_, n_chunks_ = 0;
    std::vector<std::int32_t> order_;
    std::vector<Cut> cuts_;
    std::vector<float> lows_, highs_; // [axis][chunk]
};

} // namespace isokern
