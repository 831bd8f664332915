// Bounds on the distances of rows to all points of a pool, by an inverted index.
//
// In: sparse points and which of them are in the pool; then rows. Out: what bounds.hpp describes, with
// bound = (|z|^2 - 2 x.z) unit. Products are float64 (inverted_index.hpp); the unit, a power of two, brings bounds into
// the range of float32. Errors: rounding.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "common/rows.hpp"
#include "voronoi/distance.hpp"
#include "voronoi/inverted_index.hpp"
#include "voronoi/rounding.hpp"

namespace isokern {

template <class Value> class IndexBounds {
  public:
    using Points = CsrRows<Value>;
    static constexpr bool kAtOnce = true;
    template <class Rows> class Scratch;

    IndexBounds(const Points &points, std::span<const std::int32_t> numbers) : index_(points, numbers) {
        for (const double square : index_.squares())
            largest_square_ = std::max(largest_square_, square);
        // The unit of smaller squares would overflow. With unit 1 all their bounds are tied: exact distances decide.
        if (largest_square_ > kTooSmall * kTooSmall && std::isfinite(largest_square_))
            unit_ = std::ldexp(1.0, -std::ilogb(largest_square_));
    }

    template <class Rows> Scratch<Rows> of(const Rows &rows, std::int64_t tile) const { return {*this, rows, tile}; }

  private:
    InvertedIndex index_;
    double largest_square_ = 0.0, unit_ = 1.0;
};

template <class Value> template <class Rows> class IndexBounds<Value>::Scratch {
  public:
    Scratch(const IndexBounds &table, const Rows &rows, std::int64_t tile)
        : table_(table), rows_(rows), widths_(static_cast<std::size_t>(tile)) {}

    std::int64_t group() const { return 1; }

    void enter(std::int64_t begin, std::int64_t) { begin_ = begin; }

    void fill(std::int64_t k, std::int64_t n, std::int64_t, std::int64_t, float *bounds, std::int64_t stride) {
        for (std::int64_t end = k + n; k < end; ++k, bounds += stride) {
            load(rows_, begin_ + k, row_);
            widths_[k] = fill_row(bounds);
        }
    }

    float width(std::int64_t k) const { return widths_[k]; }
    bool has_exact_bounds(std::int64_t) const { return false; }

  private:
    // Writes the bounds of row_; returns its width.
    float fill_row(float *bounds) {
        const double square = square_of(row_);
        if (!table_.index_.can_multiply(square) || square * table_.unit_ > kLargestSquare)
            return HUGE_VALF;
        table_.index_.multiply(row_, products_);
        const std::vector<double> &squares = table_.index_.squares();
        for (std::size_t p = 0; p < squares.size(); ++p)
            bounds[p] = static_cast<float>((squares[p] - 2.0 * products_[p]) * table_.unit_);
        // A bound is at most twice |x|^2 + |z|^2, and is rounded twice more in float32, hence the 3 * 2^-24.
        const double kappa = index_error(std::ssize(row_) + table_.index_.most_stored()) + 3.0 * 0x1p-24;
        return static_cast<float>(2.1 * kappa * (square + table_.largest_square_) * table_.unit_ + kUnderflow);
    }

    const IndexBounds &table_;
    const Rows &rows_;
    std::int64_t begin_ = 0;
    std::vector<Entry> row_;
    std::vector<double> products_;
    std::vector<float> widths_;
};

} // namespace isokern
