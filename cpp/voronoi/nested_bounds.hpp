// Bounds on the distances of rows to all points of a pool, for nested_search.hpp: by matrix products or inverted index.
//
// In: rows, and which of them are points. Out: for a row, a float32 bound per point, and how far bounds may be off. The
// interface (also of grid_bounds.hpp): enter takes a tile of rows, fill computes bounds of `group` rows at a time with
// panels of kPanel points, load and distance_to give exact distances of one row. A bound is the squared distance in
// some unit, less a number that is the same for all points. Two points whose bounds differ by more than `width` are in
// the right order; if width is infinite, bounds mean nothing. If has_exact_bounds, equal bounds mean equal distances.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "common/rows.hpp"
#include "simd/products.hpp"
#include "voronoi/frame.hpp"
#include "voronoi/inverted_index.hpp"
#include "voronoi/pool_search.hpp"

namespace isokern {

// Dense rows: float32 matrix products.  bound = |z|^2 - 2 x.z;  rounding errors as in voronoi/dense_layout.hpp.
template <class Value> class DenseBounds {
  public:
    DenseBounds(const DenseRows<Value> &rows, std::span<const std::int32_t> points)
        : rows_(rows), frame_(rows, points),
          kappa_(1.01 * static_cast<double>(n_roundings(rows.n_columns) + 16) * 0x1p-24),
          panels_((points.size() / kPanel + 1) * kPanel * static_cast<std::size_t>(rows.n_columns)),
          offsets_((points.size() / kPanel + 1) * kPanel) {
        std::vector<double> row(static_cast<std::size_t>(rows.n_columns));
        for (std::size_t p = 0; p < points.size(); ++p) {
            load_dense(rows, points[p], row);
            offsets_[p] = frame_.enter(row, panels_.data() + p / kPanel * kPanel * rows.n_columns + p % kPanel, kPanel);
            largest_square_ = std::max<double>(largest_square_, offsets_[p]);
        }
    }

    class Scratch;
    // Computes bounds of the rows, at most `tile` rows at a time; one for each thread.
    Scratch of_rows(std::int64_t tile) const { return {*this, tile}; }

    class Scratch {
      public:
        Scratch(const DenseBounds &table, std::int64_t tile)
            : table_(table), products_(best_products()), row_(static_cast<std::size_t>(table.rows_.n_columns)),
              packed_(static_cast<std::size_t>((tile + products_.group) * table.rows_.n_columns)),
              widths_(static_cast<std::size_t>(tile)) {}

        std::int64_t group() const { return products_.group; }

        // Packs rows begin to end, and computes their widths.
        void enter(std::int64_t begin, std::int64_t end) {
            const std::int64_t d = table_.rows_.n_columns, group = products_.group;
            std::fill(packed_.begin(), packed_.end(), 0.0f);
            for (std::int64_t k = 0; k < end - begin; ++k) {
                load_dense(table_.rows_, begin + k, row_);
                const double square =
                    table_.frame_.enter(row_, packed_.data() + k / group * group * d + k % group, group);
                // Each of two bounds is off by kappa (|x|^2 + |z|^2). The rest covers later roundings, and underflow.
                widths_[k] = static_cast<float>(2.1 * table_.kappa_ * (square + table_.largest_square_) + 0x1p-100);
            }
        }

        //  bounds[r, p] = |z_p|^2 - 2 x_r.z_p
        // For n_groups groups of the tile's rows, from the k-th row on, and n_panels panels from the panel-th on.
        void fill(std::int64_t k, std::int64_t n_groups, std::int64_t panel, std::int64_t n_panels, float *bounds,
                  std::int64_t stride) const {
            const std::int64_t d = table_.rows_.n_columns;
            products_.lower_bounds(packed_.data() + k * d, n_groups, d, table_.panels_.data() + panel * kPanel * d,
                                   n_panels, table_.offsets_.data() + panel * kPanel, bounds, stride);
        }

        float width(std::int64_t k) const { return widths_[k]; }
        bool has_exact_bounds(std::int64_t) const { return false; }

        void load(std::int64_t r) { load_dense(table_.rows_, r, row_); }
        double distance_to(std::int32_t point) const { return distance(row_, table_.rows_.row(point)); }

      private:
        const DenseBounds &table_;
        const Products &products_;
        std::vector<double> row_;
        std::vector<float> packed_, widths_;
    };

  private:
    DenseRows<Value> rows_;
    Frame frame_;
    double kappa_;
    std::vector<float> panels_, offsets_;
    double largest_square_ = 0.0;
};

// Sparse rows: float64 products from an inverted index, scaled by `unit` (a power of two) and rounded to float32.
template <class Value> class SparseBounds {
  public:
    SparseBounds(const CsrRows<Value> &rows, std::span<const std::int32_t> points) : rows_(rows), index_(rows, points) {
        for (const double square : index_.squares())
            largest_square_ = std::max(largest_square_, square);
        if (largest_square_ > 0.0 && std::isfinite(largest_square_))
            unit_ = std::ldexp(1.0, -std::ilogb(largest_square_));
    }

    class Scratch;
    // Computes bounds of the rows, at most `tile` rows at a time; one for each thread.
    Scratch of_rows(std::int64_t tile) const { return {*this, tile}; }

    class Scratch {
      public:
        Scratch(const SparseBounds &table, std::int64_t tile)
            : table_(table), widths_(static_cast<std::size_t>(tile)) {}

        std::int64_t group() const { return 1; }

        void enter(std::int64_t begin, std::int64_t) { begin_ = begin; }

        // Bounds of n rows, from the k-th of the tile on, to all points at once; panels are ignored.
        void fill(std::int64_t k, std::int64_t n, std::int64_t, std::int64_t, float *bounds, std::int64_t stride) {
            for (std::int64_t end = k + n; k < end; ++k, bounds += stride) {
                load_entries(table_.rows_, begin_ + k, row_);
                widths_[k] = fill_row(square_of(row_), bounds);
            }
        }

        float width(std::int64_t k) const { return widths_[k]; }
        bool has_exact_bounds(std::int64_t) const { return false; }

        void load(std::int64_t r) { load_entries(table_.rows_, r, row_); }
        double distance_to(std::int32_t point) const { return distance(row_, table_.rows_, point); }

      private:
        //  bounds[p] = (|z_p|^2 - 2 x.z_p) unit      in: row_, its squared length      returns the width
        float fill_row(double square, float *bounds) {
            if (!table_.index_.can_multiply(square) || square * table_.unit_ > 1e30)
                return HUGE_VALF;
            table_.index_.multiply(row_, products_);
            const std::vector<double> &squares = table_.index_.squares();
            for (std::size_t p = 0; p < squares.size(); ++p)
                bounds[p] = static_cast<float>((squares[p] - 2.0 * products_[p]) * table_.unit_);
            // A bound is at most twice |x|^2 + |z|^2, and is rounded twice more in float32, hence the 3 * 2^-24.
            const double kappa = table_.index_.kappa(row_) + 3.0 * 0x1p-24;
            return static_cast<float>(2.1 * kappa * (square + table_.largest_square_) * table_.unit_ + 0x1p-100);
        }

        const SparseBounds &table_;
        std::int64_t begin_ = 0;
        std::vector<Entry> row_;
        std::vector<double> products_;
        std::vector<float> widths_;
    };

  private:
    CsrRows<Value> rows_;
    InvertedIndex index_;
    double largest_square_ = 0.0, unit_ = 1.0;
};

} // namespace isokern
