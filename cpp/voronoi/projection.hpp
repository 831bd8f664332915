// Coordinates of quantised rows along principal axes, and how far they can be off.
//
// In: orthonormal axes and the mean of the levels (grid.hpp); then levels. Out: coordinates in float32, by a matrix
// product. The axes are rotated among themselves: all coordinates then have about the same variance, so that one step
// size suits them all when they are quantised.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "simd/products.hpp"
#include "voronoi/axes.hpp"
#include "voronoi/rounding.hpp"

namespace isokern {

// Coordinates of levels along rotated principal axes.
class Projection {
  public:
    //   axes: orthonormal, n_columns x n      centre: about the mean of the levels
    Projection(const Axes &axes, std::vector<float> centre)
        : n_axes_(axes.n), centre_(std::move(centre)),
          panels_(static_cast<std::size_t>(n_panels(axes.n) * kPanel * n_columns())),
          no_offsets_(static_cast<std::size_t>(n_panels(axes.n) * kPanel)) {
        const std::vector<double> rotation = cosines(axes.n);
        for (std::int64_t j = 0; j < n_columns(); ++j)
            for (std::int64_t b = 0; b < axes.n; ++b)
                panels_[panel_index(b, j, n_columns())] = static_cast<float>(std::inner_product(
                    axes.values + j * axes.n, axes.values + (j + 1) * axes.n, rotation.begin() + b * axes.n, 0.0));
    }

    std::int64_t n_axes() const { return n_axes_; }
    std::int64_t n_columns() const { return std::ssize(centre_); }

    // How far the computed coordinates of levels can be from the true ones (rounding.hpp), for a row and a point
    // together.
    double error() const {
        const auto d = static_cast<double>(n_columns());
        return 2.02 * std::sqrt(static_cast<double>(n_axes_)) * static_cast<double>(n_roundings(n_columns()) + 2) *
               0x1p-24 * 255.0 * std::sqrt(d);
    }

    // Computes coordinates of up to `tile` rows at a time; owns the scratch buffers of one thread.
    class Scratch {
      public:
        Scratch(const Projection &projection, std::int64_t tile)
            : projection_(projection), products_(best_products()),
              packed_(static_cast<std::size_t>((tile + products_.group) * projection.n_columns())),
              found_(static_cast<std::size_t>(tile + products_.group) * projection.no_offsets_.size()) {}

        // Enters the levels of row k.
        void enter(std::int64_t k, std::span<const std::uint8_t> levels) {
            const std::int64_t group = products_.group;
            float *packed = packed_.data() + k / group * group * projection_.n_columns() + k % group;
            for (std::size_t j = 0; j < levels.size(); ++j)
                packed[j * static_cast<std::size_t>(group)] = levels[j] - projection_.centre_[j];
        }

        //  coordinates[k, a] = sum_j axes[j, a] (levels[k, j] - centre[j]) for k < n
        // lower_bounds with offsets 0 gives this times -2.
        void project(std::int64_t n, float *coordinates) {
            const std::int64_t n_axes = projection_.n_axes_, stride = n_panels(n_axes) * kPanel;
            products_.lower_bounds(packed_.data(), (n + products_.group - 1) / products_.group, projection_.n_columns(),
                                   projection_.panels_.data(), n_panels(n_axes), projection_.no_offsets_.data(),
                                   found_.data(), stride);
            for (std::int64_t k = 0; k < n; ++k)
                std::transform(found_.begin() + k * stride, found_.begin() + k * stride + n_axes,
                               coordinates + k * n_axes, [](float x) { return -0.5f * x; });
        }

      private:
        const Projection &projection_;
        const Products &products_;
        std::vector<float> packed_, found_;
    };

  private:
    // The orthogonal n x n matrix of the discrete cosine transform (DCT-II).
    static std::vector<double> cosines(std::int64_t n) {
        std::vector<double> matrix;
        for (std::int64_t b = 0; b < n; ++b)
            for (std::int64_t a = 0; a < n; ++a)
                matrix.push_back(
                    std::sqrt((b == 0 ? 1.0 : 2.0) / static_cast<double>(n)) *
                    std::cos(std::numbers::pi * static_cast<double>((2 * a + 1) * b) / static_cast<double>(2 * n)));
        return matrix;
    }

    std::int64_t n_axes_;
    std::vector<float> centre_;
    std::vector<float> panels_, no_offsets_; // the axes, packed like points
};

} // namespace isokern
