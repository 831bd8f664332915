// Bounds on the distances of rows to all points of a pool, by float32 matrix products (GEMM).
//
// In: dense points and which of them are in the pool; then rows. Out: what bounds.hpp describes, with
// bound = |z|^2 - 2 x.z for centred and scaled rows x and points z (frame.hpp). Errors: rounding.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "common/rows.hpp"
#include "simd/products.hpp"
#include "voronoi/distance.hpp"
#include "voronoi/frame.hpp"
#include "voronoi/rounding.hpp"

namespace isokern {

template <class Value> class ProductBounds {
  public:
    using Points = DenseRows<Value>;
    static constexpr bool kAtOnce = false;
    template <class Rows> class Scratch;

    ProductBounds(const Points &points, std::span<const std::int32_t> numbers)
        : n_columns_(points.n_columns), frame_(points, numbers), kappa_(product_error(n_columns_)),
          offsets_(static_cast<std::size_t>(n_panels(std::ssize(numbers)) * kPanel)),
          panels_(offsets_.size() * static_cast<std::size_t>(n_columns_)) {
        std::vector<double> point;
        for (std::int64_t p = 0; p < std::ssize(numbers); ++p) {
            load(points, numbers[p], point);
            offsets_[p] = frame_.enter(point, &panels_[panel_index(p, 0, n_columns_)], kPanel);
            largest_square_ = std::max<double>(largest_square_, offsets_[p]);
        }
    }

    template <class Rows> Scratch<Rows> of(const Rows &rows, std::int64_t tile) const { return {*this, rows, tile}; }

  private:
    std::int64_t n_columns_;
    Frame frame_;
    double kappa_;
    std::vector<float> offsets_, panels_; // by point: |z|^2; the points
    double largest_square_ = 0.0;
};

template <class Value> template <class Rows> class ProductBounds<Value>::Scratch {
  public:
    Scratch(const ProductBounds &table, const Rows &rows, std::int64_t tile)
        : table_(table), rows_(rows), products_(best_products()),
          packed_(static_cast<std::size_t>((tile + products_.group) * rows.n_columns)),
          widths_(static_cast<std::size_t>(tile)) {}

    std::int64_t group() const { return products_.group; }

    void enter(std::int64_t begin, std::int64_t end) {
        const std::int64_t d = rows_.n_columns, group = products_.group;
        std::fill(packed_.begin(), packed_.end(), 0.0f);
        for (std::int64_t k = 0; k < end - begin; ++k) {
            load(rows_, begin + k, row_);
            const double square = table_.frame_.enter(row_, packed_.data() + k / group * group * d + k % group, group);
            // Each of two bounds is off by kappa (|x|^2 + |z|^2). The rest covers later roundings.
            widths_[k] = static_cast<float>(2.1 * table_.kappa_ * (square + table_.largest_square_) + kUnderflow);
        }
    }

    void fill(std::int64_t k, std::int64_t n, std::int64_t panel, std::int64_t n_panels, float *bounds,
              std::int64_t stride) const {
        const std::int64_t d = rows_.n_columns, n_groups = (n + group() - 1) / group();
        products_.lower_bounds(packed_.data() + k * d, n_groups, d, table_.panels_.data() + panel * kPanel * d,
                               n_panels, table_.offsets_.data() + panel * kPanel, bounds, stride);
    }

    float width(std::int64_t k) const { return widths_[k]; }
    bool has_exact_bounds(std::int64_t) const { return false; }

  private:
    const ProductBounds &table_;
    const Rows &rows_;
    const Products &products_;
    std::vector<double> row_;
    std::vector<float> packed_, widths_;
};

} // namespace isokern
