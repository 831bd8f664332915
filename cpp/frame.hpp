// Dense points as float32, moved to their mean and scaled to at most 1, so that neither an offset nor a unit costs
// precision.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "rows.hpp"

namespace isokern {

// Beyond these magnitudes squares overflow or vanish; what counts then is the distance as it is defined.
constexpr double kTooLarge = 1e140, kTooSmall = 1e-140;

class Frame {
  public:
    // The points with these numbers.
    template <class Value>
    Frame(const DenseRows<Value> &points, std::span<const std::int32_t> numbers)
        : centre_(static_cast<std::size_t>(points.n_columns)) {
        std::vector<double> lows(centre_.size(), HUGE_VAL), highs(centre_.size(), -HUGE_VAL);
        for (const std::int32_t p : numbers) {
            const Value *point = points.row(p);
            for (std::size_t j = 0; j < centre_.size(); ++j) {
                const double value = point[j];
                centre_[j] += value;
                lows[j] = value < lows[j] ? value : lows[j];
                highs[j] = value > highs[j] ? value : highs[j];
            }
        }
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

    // Writes a row as it is here, at values[j * stride]; returns its squared length, infinite if float32 cannot hold
    // it.
    float enter(std::span<const double> row, float *values, std::int64_t stride = 1) const {
        double square = 0.0;
        for (std::size_t j = 0; j < centre_.size(); ++j) {
            const double value = (row[j] - centre_[j]) * scale_;
            values[static_cast<std::int64_t>(j) * stride] = static_cast<float>(value);
            square += value * value;
        }
        return is_usable_ && square < 1e30 ? static_cast<float>(square) : HUGE_VALF;
    }

  private:
    std::vector<double> centre_;
    double scale_ = 1.0;
    bool is_usable_ = true; // false: magnitudes that only the distance itself can handle
};

// The squared distance as it is defined: summed in float64, columns ascending.
template <class Value> double distance(std::span<const double> row, const Value *point) {
    double sum = 0.0;
    for (std::size_t j = 0; j < row.size(); ++j) {
        const double difference = row[j] - static_cast<double>(point[j]);
        sum += difference * difference;
    }
    return sum;
}

} // namespace isokern
