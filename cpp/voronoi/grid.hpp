// Detects data on a grid and quantises it to bytes: uniform quantisation with at most 256 levels.
//
// In: all values of the points; then rows. Out: the grid, if there is one; a row's levels q as bytes, and how far the
// row is from them. A grid is a set of evenly spaced values low + q * step, 0 <= q <= 255, such as pixels, counts or
// 0/1 features. Squared distances between levels are sums of integers, hence exact, and one instruction computes
// several times as many products of bytes as of float32.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "common/hash_table.hpp"
#include "common/rows.hpp"
#include "common/threads.hpp"
#include "voronoi/rounding.hpp"

namespace isokern {

class Grid {
  public:
    // The grid that all values lie on, if there is one. has_zeros: zero is a value too, because some are not stored.
    // Each thread collects the distinct values of its tiles and merges them into `all`; more than 256 end the search.
    template <class Value> static std::optional<Grid> find(std::span<const Value> values, bool has_zeros) {
        const auto n = static_cast<std::int64_t>(values.size());
        Few all;
        std::mutex merging;
        std::atomic<bool> are_few{!has_zeros || all.add(0.0)};
        parallel_tiles(n, 1 << 16, threads_for(n), [&] {
            return [&, few = Few()](std::int64_t begin, std::int64_t end) mutable {
                const auto here = values.subspan(begin, end - begin);
                if (!are_few || !std::all_of(here.begin(), here.end(), [&](double x) { return few.add(x); }))
                    are_few = false;
                const std::lock_guard lock(merging);
                for (const double value : few.values())
                    are_few = are_few && all.add(value);
            };
        });
        return are_few && !all.values().empty() ? fit(all.values()) : std::nullopt;
    }

    // A grid from -m to m, m being the largest magnitude of the values.
    static Grid around(std::span<const float> values, std::int64_t n_steps) {
        double largest = 0.0;
        for (const double value : values)
            largest = std::max(largest, std::abs(value));
        const double end = largest > kTooSmall ? largest : 1.0;
        return {-end, end, static_cast<double>(n_steps), false};
    }

    // The distance between two levels.
    double step() const { return 1.0 / steps_per_unit_; }

    // The number of the highest level; that of the lowest is 0.
    std::int64_t n_steps() const { return static_cast<std::int64_t>(n_steps_); }

    // Whether the grid's values are consecutive whole numbers: float64 distances of rows on it are then exact.
    bool is_whole() const { return is_whole_; }

    // The largest possible squared distance between two rows of levels.
    double longest_square(std::int64_t n_columns) const { return static_cast<double>(n_columns) * n_steps_ * n_steps_; }

    //  numbers[j] = round((row[j] - low) / step), clamped to the grid
    // Quantises a row; returns the distance between the row and its levels, in steps.
    double enter(std::span<const double> row, std::span<std::uint8_t> numbers) const {
        double square = 0.0;
        for (std::size_t j = 0; j < row.size(); ++j) {
            const double steps = (row[j] - low_) * steps_per_unit_;
            numbers[j] = static_cast<std::uint8_t>(std::clamp(steps, 0.0, n_steps_) + 0.5);
            square += (steps - numbers[j]) * (steps - numbers[j]);
        }
        return std::sqrt(square);
    }

    // If two squared distances between levels differ by more than this, the exact distances are in the same order.
    // With `off`, the quantisation errors of row and point together, a distance changes by at most off, so a squared
    // distance changes by at most off (2 longest + off), for each of the two. The last term is the rounding error of
    // the exact distance in float64.
    //   in: the distances of the row and of the furthest point from their levels
    static double slack(double row_off, double points_off, std::int64_t n_columns) {
        const auto d = static_cast<double>(n_columns);
        const double longest = 255.0 * std::sqrt(d) + row_off + points_off;
        const double off = row_off + points_off + 1e-11 * std::sqrt(d); // row_off and points_off are rounded too
        return 2.0 * off * (2.0 * longest + off) + 4.0 * (d + 4.0) * 0x1p-53 * longest * longest;
    }

    // How close two squared distances between levels, as float32, can be for the exact ones to be in the wrong order.
    float width(double row_off, double points_off, std::int64_t n_columns) const {
        const double least = slack(row_off, points_off, n_columns);
        // Distinct integers differ by at least 1, so a smaller slack cannot change their order, and rounding to float32
        // keeps it. With a larger slack, the rounding to float32 must be added.
        return least < 0.5 ? 0.0f : static_cast<float>(least + 0x1p-22 * longest_square(n_columns));
    }

    static constexpr std::int64_t kMostColumns = 1 << 15; // n_columns * 255^2 must fit into int32

  private:
    // A set of at most 256 distinct values.
    class Few {
      public:
        // Adds a value; returns false if there are too many. The last value is tested first, as values often repeat.
        bool add(double value) {
            if (!values_.empty() && value == last_)
                return true;
            last_ = value;
            const auto key = std::bit_cast<std::uint64_t>(value + 0.0); // -0.0 + 0.0 is 0.0
            table_.get_or_insert(key, 0);
            if (table_.size() > values_.size())
                values_.push_back(value);
            return values_.size() <= kMost;
        }

        const std::vector<double> &values() const { return values_; }

      private:
        static constexpr std::size_t kMost = 256;
        HashTable<std::uint64_t, std::int32_t> table_{2 * kMost}; // the keys of values_
        std::vector<double> values_;
        double last_ = 0.0;
    };

    Grid(double low, double high, double n_steps, bool is_whole)
        : low_(low), n_steps_(n_steps), steps_per_unit_(n_steps / (high - low)), is_whole_(is_whole) {}

    // The coarsest grid from the smallest to the largest value that contains all values, to a thousandth of a step.
    // Whole numbers get a step of 1, which makes distances exact.
    static std::optional<Grid> fit(const std::vector<double> &values) {
        const auto [low, high] = std::minmax_element(values.begin(), values.end());
        const double range = *high - *low;
        if (!(range > kTooSmall && range < kTooLarge))
            return std::nullopt;
        if (range <= 255.0 &&
            std::all_of(values.begin(), values.end(), [](double value) { return value == std::rint(value); }))
            return Grid(*low, *high, range, true);
        for (int n_steps = 1; n_steps <= 255; ++n_steps) {
            const Grid grid(*low, *high, n_steps, false);
            if (std::all_of(values.begin(), values.end(), [&](double value) {
                    const double steps = (value - grid.low_) * grid.steps_per_unit_;
                    return std::abs(steps - std::rint(steps)) < 1e-3;
                }))
                return grid;
        }
        return std::nullopt;
    }

    double low_, n_steps_, steps_per_unit_;
    bool is_whole_;
};

} // namespace isokern
