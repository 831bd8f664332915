// Centres and scales dense points and rows before they become float32, so that offsets and units cost no precision.
//
// In: the points of a pool; then rows as doubles. Out: (x - centre) * scale as float32, and its squared length. The
// centre is the mean of the points; the scale is a power of two that brings their coordinates to at most 1, so scaling
// is exact.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "common/rows.hpp"
#include "common/threads.hpp"
#include "voronoi/rounding.hpp"

namespace isokern {

class Frame {
  public:
    // Finds the mean and the range of each column over the points with these numbers, and from them the scale.
    template <class Value>
    Frame(const DenseRows<Value> &points, std::span<const std::int32_t> numbers)
        : centre_(static_cast<std::size_t>(points.n_columns)) {
        // Tile by tile, and then the tiles in order, so that the number of threads does not change the sums.
        constexpr std::int64_t kTile = 4096;
        const auto n = std::ssize(numbers);
        std::vector<Range> tiles(static_cast<std::size_t>((n + kTile - 1) / kTile), Range(centre_.size()));
        parallel_tiles(n, kTile, 0, [&] {
            return [&](std::int64_t begin, std::int64_t end) {
                for (const std::int32_t p : numbers.subspan(begin, end - begin))
                    tiles[begin / kTile].add(points.row(p));
            };
        });
        Range all(centre_.size());
        for (const Range &tile : tiles)
            all.add(tile);
        centre_ = all.sums;
        const std::vector<double> &lows = all.lows, &highs = all.highs;
        double largest = 0.0;
        for (std::size_t j = 0; j < centre_.size(); ++j) {
            centre_[j] /= static_cast<double>(numbers.size());
            is_usable_ = is_usable_ && std::max(std::abs(lows[j]), std::abs(highs[j])) < kTooLarge;
            largest = std::max({largest, centre_[j] - lows[j], highs[j] - centre_[j]});
        }
        is_usable_ = is_usable_ && (largest == 0.0 || largest > kTooSmall);
        if (is_usable_ && largest > 0.0)
            scale_ = std::ldexp(1.0, -std::ilogb(largest) - 1);
    }

    //  values[j * stride] = (row[j] - centre[j]) * scale,  returns sum_j of their squares
    // The squared length is infinite if float32 cannot hold it or the points' magnitudes are extreme: the caller then
    // has no bounds for this row.
    float enter(std::span<const double> row, float *values, std::int64_t stride = 1) const {
        double square = 0.0;
        for (std::size_t j = 0; j < centre_.size(); ++j) {
            const double value = (row[j] - centre_[j]) * scale_;
            values[static_cast<std::int64_t>(j) * stride] = static_cast<float>(value);
            square += value * value;
        }
        return is_usable_ && square < kLargestSquare ? static_cast<float>(square) : HUGE_VALF;
    }

  private:
    // Sums and extremes of each column.
    struct Range {
        std::vector<double> sums, lows, highs;

        explicit Range(std::size_t n_columns)
            : sums(n_columns), lows(n_columns, HUGE_VAL), highs(n_columns, -HUGE_VAL) {}

        template <class Value> void add(const Value *point) {
            for (std::size_t j = 0; j < sums.size(); ++j) {
                const double value = point[j];
                sums[j] += value;
                lows[j] = value < lows[j] ? value : lows[j];
                highs[j] = value > highs[j] ? value : highs[j];
            }
        }

        void add(const Range &other) {
            for (std::size_t j = 0; j < sums.size(); ++j) {
                sums[j] += other.sums[j];
                lows[j] = std::min(lows[j], other.lows[j]);
                highs[j] = std::max(highs[j], other.highs[j]);
            }
        }
    };

    std::vector<double> centre_;
    double scale_ = 1.0;
    bool is_usable_ = true; // false: the points' magnitudes are beyond kTooLarge or kTooSmall
};

} // namespace isokern
