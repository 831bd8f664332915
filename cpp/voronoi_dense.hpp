// Voronoi cells of dense points: bounds by float32 matrix products.
#pragma once

#include <utility>

#include "products.hpp"
#include "voronoi_search.hpp"

namespace isokern {

// Points as float32 panels, moved to their mean and scaled to at most 1, so that neither an offset nor a unit costs
// precision. With u = 2^-24, d columns and |.| the length of what was moved and scaled, rounding of the inputs, of the
// d products and sums and of the rest changes a squared distance by at most kappa (|x|^2 + |z|^2), kappa = (d + 16) u.
//   lower(x, z) = (1 - kappa) |z|^2 - 2 x.z,   upper(x, z) = lower(x, z) + 2 kappa (|x|^2 + |z|^2),
// both less (1 - kappa) |x|^2, which is the same for all points.
template <class Value> class DenseLayout {
  public:
    DenseLayout(const DenseRows<Value> &points, Pool pool)
        : points_(points), pool_(std::move(pool)), centre_(static_cast<std::size_t>(points.n_columns)),
          kappa_(1.01 * static_cast<double>(points.n_columns + 16) * 0x1p-24) {
        find_centre();
        find_scale();
        pack();
    }

    template <class Rows, class Cell> class Worker;
    std::int64_t tile() const { return points_.n_columns <= 512 ? 96 : 48; }

  private:
    void find_centre() {
        for (const std::int32_t p : pool_.points)
            for (std::size_t j = 0; j < centre_.size(); ++j) {
                const double value = points_.row(p)[j];
                centre_[j] += value / static_cast<double>(pool_.size());
                is_usable_ = is_usable_ && std::abs(value) < kTooLarge;
            }
    }

    void find_scale() {
        double largest = 0.0;
        for (const std::int32_t p : pool_.points)
            for (std::size_t j = 0; j < centre_.size(); ++j)
                largest = std::max(largest, std::abs(points_.row(p)[j] - centre_[j]));
        is_usable_ = is_usable_ && (largest == 0.0 || largest > kTooSmall);
        if (is_usable_ && largest > 0.0)
            scale_ = std::ldexp(1.0, -std::ilogb(largest) - 1);
    }

    void pack() {
        const std::int64_t n_panels = (pool_.size() + kPanel - 1) / kPanel;
        panels_.assign(static_cast<std::size_t>(n_panels * kPanel * points_.n_columns), 0.0f);
        offsets_.assign(static_cast<std::size_t>(n_panels * kPanel), 0.0f);
        widths_.assign(offsets_.size(), 0.0f);
        for (std::int64_t p = 0; p < pool_.size(); ++p) {
            double square = 0.0;
            float *panel = panels_.data() + p / kPanel * kPanel * points_.n_columns + p % kPanel;
            for (std::int64_t j = 0; j < points_.n_columns; ++j) {
                const double value = (points_.row(pool_.points[p])[j] - centre_[j]) * scale_;
                panel[j * kPanel] = static_cast<float>(value);
                square += value * value;
            }
            offsets_[p] = static_cast<float>((1.0 - kappa_) * square);
            widths_[p] = static_cast<float>(2.0 * kappa_ * square);
        }
    }

    double distance(const double *row, std::int32_t point) const {
        const Value *values = points_.row(point);
        double sum = 0.0;
        for (std::int64_t j = 0; j < points_.n_columns; ++j) {
            const double difference = row[j] - static_cast<double>(values[j]);
            sum += difference * difference;
        }
        return sum;
    }

    DenseRows<Value> points_;
    Pool pool_;
    std::vector<double> centre_;
    double kappa_;
    double scale_ = 1.0;
    bool is_usable_ = true; // false: magnitudes that only the distance itself can handle
    std::vector<float> panels_, offsets_, widths_;
};

template <class Value> template <class Rows, class Cell> class DenseLayout<Value>::Worker {
  public:
    Worker(const DenseLayout &layout, const Rows &rows, std::int64_t n_partitionings, Cell *cells)
        : layout_(layout), rows_(rows), n_partitionings_(n_partitionings), cells_(cells), products_(best_products()),
          row_(static_cast<std::size_t>(rows.n_columns)),
          searches_(static_cast<std::size_t>(std::min(layout.tile(), rows.n_rows)),
                    Search<float>(layout.pool_, n_partitionings)),
          squares_(searches_.size()), places_(kChunk), distances_(layout.pool_) {
        const std::int64_t n_groups = (std::min(layout.tile(), rows.n_rows) + products_.group - 1) / products_.group;
        packed_.resize(static_cast<std::size_t>(n_groups * products_.group * rows.n_columns));
        bounds_.resize(static_cast<std::size_t>(n_groups * products_.group * kChunk));
    }

    void operator()(std::int64_t begin, std::int64_t end) {
        const std::int64_t n_groups = (end - begin + products_.group - 1) / products_.group;
        for (std::int64_t r = begin; r < end; ++r) {
            searches_[r - begin].begin();
            squares_[r - begin] = pack(r, r - begin);
        }
        const std::int64_t n_points = layout_.pool_.size();
        for (std::int64_t p = 0; p < n_points; p += kChunk) {
            const std::int64_t n = std::min(kChunk, n_points - p);
            products_.lower_bounds(packed_.data(), n_groups, rows_.n_columns,
                                   layout_.panels_.data() + p * rows_.n_columns, (n + kPanel - 1) / kPanel,
                                   layout_.offsets_.data() + p, bounds_.data(), kChunk);
            for (std::int64_t k = 0; k < end - begin; ++k)
                enter_chunk(searches_[k], bounds_.data() + k * kChunk, p, n, squares_[k]);
        }
        for (std::int64_t r = begin; r < end; ++r)
            settle(searches_[r - begin], r, squares_[r - begin]);
    }

  private:
    // Moves and scales a row into its group; returns its square, or infinity if it is beyond float32.
    float pack(std::int64_t r, std::int64_t k) {
        load_dense(rows_, r, row_);
        float *packed = packed_.data() + k / products_.group * products_.group * rows_.n_columns + k % products_.group;
        double square = 0.0;
        for (std::size_t j = 0; j < row_.size(); ++j) {
            const double value = (row_[j] - layout_.centre_[j]) * layout_.scale_;
            packed[static_cast<std::int64_t>(j) * products_.group] = static_cast<float>(value);
            square += value * value;
        }
        return layout_.is_usable_ && square < 1e30 ? static_cast<float>(square) : HUGE_VALF;
    }

    void enter_chunk(Search<float> &search, const float *bounds, std::int64_t first, std::int64_t n, float square) {
        if (square == HUGE_VALF)
            return;
        const std::int64_t n_places = products_.places_within(bounds, n, search.threshold(), places_.data());
        if (n_places == 0)
            return;
        // The small constant covers what underflows.
        const float width = static_cast<float>(2.0 * layout_.kappa_) * square + 0x1p-100f;
        for (std::int64_t k = 0; k < n_places; ++k) {
            const std::int64_t p = first + places_[k];
            const float lower = bounds[places_[k]];
            search.enter(static_cast<std::int32_t>(p), lower, lower + (width + layout_.widths_[p]));
        }
        search.lower_threshold();
    }

    void settle(Search<float> &search, std::int64_t r, float square) {
        if (square == HUGE_VALF)
            search.enter_all();
        load_dense(rows_, r, row_);
        search.settle(
            distances_, [&](std::int32_t point) { return layout_.distance(row_.data(), point); },
            cells_ + r * n_partitionings_);
    }

    const DenseLayout &layout_;
    const Rows &rows_;
    std::int64_t n_partitionings_;
    Cell *cells_;
    const Products &products_;
    std::vector<double> row_;
    std::vector<Search<float>> searches_;
    std::vector<float> squares_;
    std::vector<float> packed_, bounds_;
    std::vector<std::int32_t> places_;
    Distances distances_;
};

} // namespace isokern
