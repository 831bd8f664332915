// What nested.cpp asks of rows: bounds on a row's distances to all points of a pool, as float32, and how far they may
// be off.
//
// The k-th bound is the squared distance to the k-th point, in some unit, less the same number for all points; two
// points whose bounds differ by more than `width` are in the right order. A width that is infinite says that bounds
// mean nothing.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "frame.hpp"
#include "grid.hpp"
#include "inverted_index.hpp"
#include "products.hpp"
#include "rows.hpp"
#include "voronoi_search.hpp"

namespace isokern {

// Dense rows, by float32 products; see voronoi_dense.hpp for how far these are off.
template <class Value> class DenseBounds {
  public:
    // stride: room for a row's bounds, which is a multiple of kPanel
    DenseBounds(const DenseRows<Value> &rows, std::span<const std::int32_t> points, std::int64_t stride)
        : rows_(rows), frame_(rows, points), stride_(stride),
          kappa_(1.01 * static_cast<double>(n_roundings(rows.n_columns) + 16) * 0x1p-24),
          panels_(static_cast<std::size_t>(stride * rows.n_columns)), offsets_(static_cast<std::size_t>(stride)) {
        std::vector<double> row(static_cast<std::size_t>(rows.n_columns));
        for (std::size_t p = 0; p < points.size(); ++p) {
            load_dense(rows, points[p], row);
            offsets_[p] = frame_.enter(row, panels_.data() + p / kPanel * kPanel * rows.n_columns + p % kPanel, kPanel);
            largest_square_ = std::max<double>(largest_square_, offsets_[p]);
        }
    }

    class Scratch {
      public:
        Scratch(const DenseBounds &table, std::int64_t tile)
            : table_(table), products_(best_products()), row_(static_cast<std::size_t>(table.rows_.n_columns)),
              packed_(static_cast<std::size_t>((tile + products_.group) * table.rows_.n_columns)),
              widths_(static_cast<std::size_t>(tile)) {}

        std::int64_t n_spare_rows() const { return products_.group; } // whose bounds are written beyond the last row

        void fill(std::int64_t begin, std::int64_t end, float *bounds) {
            const std::int64_t d = table_.rows_.n_columns, group = products_.group;
            std::fill(packed_.begin(), packed_.end(), 0.0f);
            for (std::int64_t k = 0; k < end - begin; ++k) {
                load_dense(table_.rows_, begin + k, row_);
                const double square =
                    table_.frame_.enter(row_, packed_.data() + k / group * group * d + k % group, group);
                // The constants cover what is rounded later, and what underflows.
                widths_[k] = static_cast<float>(2.1 * table_.kappa_ * (square + table_.largest_square_) + 0x1p-100);
            }
            products_.lower_bounds(packed_.data(), (end - begin + group - 1) / group, d, table_.panels_.data(),
                                   table_.stride_ / kPanel, table_.offsets_.data(), bounds, table_.stride_);
        }

        float width(std::int64_t k) const { return widths_[k]; }

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
    std::int64_t stride_;
    double kappa_;
    std::vector<float> panels_, offsets_;
    double largest_square_ = 0.0;
};

// Dense rows on a grid, by products of bytes: a bound is the squared distance in steps.
template <class Value> class GridBounds {
  public:
    GridBounds(const DenseRows<Value> &rows, const Grid &grid, std::span<const std::int32_t> points,
               std::int64_t stride)
        : rows_(rows), grid_(grid), stride_(stride), n_quads_((rows.n_columns + 3) / 4),
          panels_(static_cast<std::size_t>(stride * n_quads_ * 4)), offsets_(static_cast<std::size_t>(stride)) {
        Entered point(*this);
        for (std::size_t p = 0; p < points.size(); ++p) {
            furthest_off_ = std::max(furthest_off_, point.enter(points[p]));
            // Rows are signed bytes, 128 less than their numbers.
            offsets_[p] = point.sum_of_squares - 256 * point.sum;
            point.write(panels_.data(), static_cast<std::int64_t>(p), kPanel);
        }
    }

    class Scratch {
      public:
        Scratch(const GridBounds &table, std::int64_t tile)
            : table_(table), products_(best_products()), row_(static_cast<std::size_t>(table.rows_.n_columns)),
              entered_(table), packed_(static_cast<std::size_t>((tile + products_.group) * table.n_quads_ * 4)),
              row_offsets_(static_cast<std::size_t>(tile + products_.group)), widths_(static_cast<std::size_t>(tile)) {}

        std::int64_t n_spare_rows() const { return products_.group; }

        void fill(std::int64_t begin, std::int64_t end, float *bounds) {
            const std::int64_t d = table_.rows_.n_columns, group = products_.group;
            for (std::int64_t k = 0; k < end - begin; ++k) {
                const double slack = Grid::slack(entered_.enter(begin + k), table_.furthest_off_, d);
                // Below 1, what differs at all is in the right order; else what is rounded to float32 counts too.
                widths_[k] =
                    slack < 0.5 ? 0.0f : static_cast<float>(slack + 0x1p-22 * 65025.0 * static_cast<double>(d));
                row_offsets_[k] = entered_.sum_of_squares;
                entered_.write(packed_.data(), k, group, 128);
            }
            products_.byte_distances(packed_.data(), row_offsets_.data(), (end - begin + group - 1) / group,
                                     table_.n_quads_, table_.panels_.data(), table_.stride_ / kPanel,
                                     table_.offsets_.data(), bounds, table_.stride_);
        }

        float width(std::int64_t k) const { return widths_[k]; }

        void load(std::int64_t r) { load_dense(table_.rows_, r, row_); }
        double distance_to(std::int32_t point) const { return distance(row_, table_.rows_.row(point)); }

      private:
        const GridBounds &table_;
        const Products &products_;
        std::vector<double> row_;
        typename GridBounds::Entered entered_;
        std::vector<std::int8_t> packed_;
        std::vector<std::int32_t> row_offsets_;
        std::vector<float> widths_;
    };

  private:
    // A row's numbers.
    struct Entered {
        const GridBounds &table;
        std::vector<double> row;
        std::vector<std::uint8_t> numbers;
        std::int32_t sum = 0, sum_of_squares = 0;

        explicit Entered(const GridBounds &table)
            : table(table), row(static_cast<std::size_t>(table.rows_.n_columns)), numbers(row.size()) {}

        double enter(std::int64_t r) {
            load_dense(table.rows_, r, row);
            const double off = table.grid_.enter(row, numbers);
            sum = sum_of_squares = 0;
            for (const std::int32_t number : numbers) {
                sum += number;
                sum_of_squares += number * number;
            }
            return off;
        }

        // As the k-th of groups of rows, or of panels of points.
        template <class Byte> void write(Byte *packed, std::int64_t k, std::int64_t group, int less = 0) const {
            packed += (k / group * table.n_quads_ * group + k % group) * 4;
            for (std::size_t j = 0; j < numbers.size(); ++j)
                packed[static_cast<std::int64_t>(j) / 4 * group * 4 + static_cast<std::int64_t>(j) % 4] =
                    static_cast<Byte>(numbers[j] - less);
        }
    };

    DenseRows<Value> rows_;
    Grid grid_;
    std::int64_t stride_, n_quads_;
    double furthest_off_ = 0.0;
    std::vector<std::uint8_t> panels_;
    std::vector<std::int32_t> offsets_;
};

// Sparse rows, by float64 products from an inverted index, then rounded to float32.
template <class Value> class SparseBounds {
  public:
    SparseBounds(const CsrRows<Value> &rows, std::span<const std::int32_t> points, std::int64_t stride)
        : rows_(rows), stride_(stride), index_(rows, points) {
        for (const double square : index_.squares())
            largest_square_ = std::max(largest_square_, square);
        if (largest_square_ > 0.0 && std::isfinite(largest_square_))
            unit_ = std::ldexp(1.0, -std::ilogb(largest_square_));
    }

    class Scratch {
      public:
        Scratch(const SparseBounds &table, std::int64_t tile)
            : table_(table), widths_(static_cast<std::size_t>(tile)) {}

        std::int64_t n_spare_rows() const { return 0; }

        void fill(std::int64_t begin, std::int64_t end, float *bounds) {
            for (std::int64_t k = 0; k < end - begin; ++k) {
                load_entries(table_.rows_, begin + k, row_);
                widths_[k] = fill_row(square_of(row_), bounds + k * table_.stride_);
            }
        }

        float width(std::int64_t k) const { return widths_[k]; }

        void load(std::int64_t r) { load_entries(table_.rows_, r, row_); }
        double distance_to(std::int32_t point) const { return distance(row_, table_.rows_, point); }

      private:
        float fill_row(double square, float *bounds) {
            if (!table_.index_.can_multiply(square) || square * table_.unit_ > 1e30)
                return HUGE_VALF;
            table_.index_.multiply(row_, products_);
            const std::vector<double> &squares = table_.index_.squares();
            for (std::size_t p = 0; p < squares.size(); ++p)
                bounds[p] = static_cast<float>((squares[p] - 2.0 * products_[p]) * table_.unit_);
            // No bound is larger than twice the squares, and each is rounded twice more.
            const double kappa = table_.index_.kappa(row_) + 3.0 * 0x1p-24;
            return static_cast<float>(2.1 * kappa * (square + table_.largest_square_) * table_.unit_ + 0x1p-100);
        }

        const SparseBounds &table_;
        std::vector<Entry> row_;
        std::vector<double> products_;
        std::vector<float> widths_;
    };

  private:
    CsrRows<Value> rows_;
    std::int64_t stride_;
    InvertedIndex index_;
    double largest_square_ = 0.0, unit_ = 1.0;
};

} // namespace isokern
