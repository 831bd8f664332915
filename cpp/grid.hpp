// Dense rows as bytes, where all values are among few that are evenly spaced: pixels, counts, zeros and ones.
//
// A value is low + q steps, 0 <= q <= 255. Squared distances of the q are sums of integers: they are exact, and a CPU
// that multiplies bytes adds up four times as many at once as of float32.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "frame.hpp"
#include "random.hpp"
#include "rows.hpp"
#include "threads.hpp"

namespace isokern {

class Grid {
  public:
    // The grid of all values, if there is one, and of zero where some are not stored.
    template <class Value> static std::optional<Grid> find(std::span<const Value> values, bool has_zeros) {
        const auto n = static_cast<std::int64_t>(values.size());
        Few all;
        std::atomic<bool> are_few{!has_zeros || all.add(0.0)};
        parallel_tiles(n, 1 << 16, threads_for(n), [&] {
            return [&, few = Few()](std::int64_t begin, std::int64_t end) mutable {
                const auto here = values.subspan(begin, end - begin);
                if (!are_few || !std::all_of(here.begin(), here.end(), [&](double x) { return few.add(x); }))
                    are_few = false;
#pragma omp critical(isokern_grid)
                for (const double value : few.values())
                    are_few = are_few && all.add(value);
            };
        });
        return are_few && !all.values().empty() ? fit(all.values()) : std::nullopt;
    }

    // Whether the values are whole numbers, one apart, so that float64 has the distances of rows on the grid as they
    // are.
    bool is_whole() const { return is_whole_; }

    // No two rows of numbers are further from each other.
    double longest_square(std::int64_t n_columns) const { return static_cast<double>(n_columns) * n_steps_ * n_steps_; }

    // Writes a row's numbers; returns how far they are from the row, in steps.
    double enter(std::span<const double> row, std::span<std::uint8_t> numbers) const {
        double square = 0.0;
        for (std::size_t j = 0; j < row.size(); ++j) {
            const double steps = (row[j] - low_) * steps_per_unit_;
            numbers[j] = static_cast<std::uint8_t>(std::clamp(steps, 0.0, n_steps_) + 0.5);
            square += (steps - numbers[j]) * (steps - numbers[j]);
        }
        return std::sqrt(square);
    }

    // Squared distances of numbers that differ by more than this are in the order of the distances, if the row and the
    // points are so far from their numbers.
    static double slack(double row_off, double points_off, std::int64_t n_columns) {
        const auto d = static_cast<double>(n_columns);
        const double longest = 255.0 * std::sqrt(d) + row_off + points_off;
        const double off = row_off + points_off + 1e-11 * std::sqrt(d); // entering a row is itself rounded
        return 2.0 * off * (2.0 * longest + off) + 4.0 * (d + 4.0) * 0x1p-53 * longest * longest;
    }

    static constexpr std::int64_t kMostColumns = 1 << 15; // whose squares int32 holds

  private:
    // At most 256 different values.
    class Few {
      public:
        // False if there are too many.
        bool add(double value) {
            if (!values_.empty() && value == last_)
                return true;
            last_ = value;
            std::size_t at = mix(std::bit_cast<std::uint64_t>(value)) % table_.size();
            for (; table_[at] != 0; at = (at + 1) % table_.size())
                if (values_[table_[at] - 1] == value)
                    return true;
            if (values_.size() == 256)
                return false;
            values_.push_back(value);
            table_[at] = static_cast<std::uint16_t>(values_.size());
            return true;
        }

        const std::vector<double> &values() const { return values_; }

      private:
        std::array<std::uint16_t, 1024> table_{}; // open to the next free place; 0: free
        std::vector<double> values_;
        double last_ = 0.0;
    };

    Grid(double low, double high, double n_steps, bool is_whole)
        : low_(low), n_steps_(n_steps), steps_per_unit_(n_steps / (high - low)), is_whole_(is_whole) {}

    static std::optional<Grid> fit(const std::vector<double> &values) {
        const auto [low, high] = std::minmax_element(values.begin(), values.end());
        const double range = *high - *low;
        if (!(range > kTooSmall && range < kTooLarge))
            return std::nullopt;
        if (range <= 255.0 &&
            std::all_of(values.begin(), values.end(), [](double value) { return value == std::rint(value); }))
            return Grid(*low, *high, range, true);
        for (int n_steps = 1; n_steps <= 255; ++n_steps) { // the fewest that lead to all values, to a thousandth
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
