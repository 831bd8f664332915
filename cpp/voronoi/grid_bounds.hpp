// Squared distances between quantised rows and points, from dot products of bytes.
//
// In: points on a grid (grid.hpp) and which of them are in the pool; then rows. Out: what bounds.hpp describes. With
// levels q, |q_x - q_z|^2 = |q_x|^2 + |q_z|^2 - 2 q_x.q_z. The instructions multiply unsigned by signed bytes, so
// rows are stored as s = q_x - c, and -2 q_x.q_z = -2 s.q_z - 2 c sum(q_z); the last term goes into the points'
// offsets.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/densify.hpp"
#include "common/rows.hpp"
#include "common/threads.hpp"
#include "simd/byte_products.hpp"
#include "voronoi/distance.hpp"
#include "voronoi/grid.hpp"

namespace isokern {

// The grid of all values, if there is one, the CPU multiplies bytes, and int32 can hold the squared distances.
template <class Value>
std::optional<Grid> find_usable_grid(std::span<const Value> values, std::int64_t n_columns, bool has_zeros) {
    const bool is_usable = best_byte_products() && n_columns <= Grid::kMostColumns;
    return is_usable ? Grid::find(values, has_zeros) : std::nullopt;
}

template <class Value> std::optional<Grid> find_usable_grid(const DenseRows<Value> &rows) {
    const std::span values(rows.values, static_cast<std::size_t>(rows.n_rows * rows.n_columns));
    return find_usable_grid(values, rows.n_columns, false);
}

// Sparse points of many columns are not densified, so they use no grid.
template <class Value> std::optional<Grid> find_usable_grid(const CsrRows<Value> &rows) {
    if (rows.n_columns > kFewColumns)
        return std::nullopt;
    const std::int64_t n_stored = rows.starts[rows.n_rows] - rows.starts[0];
    const std::span values(rows.values + rows.starts[0], static_cast<std::size_t>(n_stored));
    return find_usable_grid(values, rows.n_columns, n_stored < rows.n_rows * rows.n_columns);
}

// Quantises one row at a time, and packs it.
class GridRow {
  public:
    GridRow(const Grid &grid, std::int64_t n_columns) : grid_(grid), numbers_(static_cast<std::size_t>(n_columns)) {}

    // Quantises row r; returns its distance from the grid, in steps.
    template <class Rows> double enter(const Rows &rows, std::int64_t r) {
        load(rows, r, row_);
        const double off = grid_.enter(row_, numbers_);
        sum_ = sum_of_squares_ = 0;
        for (const std::int32_t number : numbers_) {
            sum_ += number;
            sum_of_squares_ += number * number;
        }
        return off;
    }

    std::span<const std::uint8_t> levels() const { return numbers_; }
    std::int32_t sum_of_squares() const { return sum_of_squares_; }

    // As a point: |q_z|^2 - 2 c sum(q_z), because rows are stored less c (see above).
    std::int32_t offset() const { return sum_of_squares_ - 2 * centre() * sum_; }

    // As a row: writes the levels less c.
    void write(std::int8_t *row) const {
        std::transform(numbers_.begin(), numbers_.end(), row,
                       [c = centre()](std::uint8_t level) { return static_cast<std::int8_t>(level - c); });
    }

    // As point k of panels, [k / kPanel][quad][k % kPanel][4]: writes the levels.
    void pack(std::uint8_t *panels, std::int64_t k) const {
        const auto d = static_cast<std::int64_t>(numbers_.size());
        std::uint8_t *packed = panels + k / kPanel * kPanel * byte_width(d) + k % kPanel * 4;
        for (std::int64_t j = 0; j < d; ++j)
            packed[j / 4 * kPanel * 4 + j % 4] = numbers_[j];
    }

  private:
    std::int32_t centre() const { return static_cast<std::int32_t>(byte_centre(grid_.n_steps())); }

    const Grid &grid_;
    std::vector<double> row_;
    std::vector<std::uint8_t> numbers_;
    std::int32_t sum_ = 0, sum_of_squares_ = 0;
};

// Whether all rows are near enough to the grid for tight bounds: 0.01 steps in the root mean square over columns.
template <class Rows> bool are_near(const Grid &grid, const Rows &rows, int threads) {
    const double most = 0.01 * std::sqrt(static_cast<double>(rows.n_columns));
    std::atomic<bool> are_on{true};
    parallel_tiles(rows.n_rows, 64, threads, [&] {
        return [&, row = GridRow(grid, rows.n_columns)](std::int64_t begin, std::int64_t end) mutable {
            for (std::int64_t r = begin; are_on && r < end; ++r)
                if (!(row.enter(rows, r) <= most))
                    are_on = false;
        };
    });
    return are_on;
}

template <class Value> class GridBounds {
  public:
    using Points = DenseRows<Value>;
    static constexpr bool kAtOnce = false;
    template <class Rows> class Scratch;

    GridBounds(const Points &points, std::span<const std::int32_t> numbers, const Grid &grid)
        : grid_(grid), offsets_(static_cast<std::size_t>(n_panels(std::ssize(numbers)) * kPanel)),
          panels_(offsets_.size() * static_cast<std::size_t>(byte_width(points.n_columns))) {
        std::vector<double> off(numbers.size());
        parallel_tiles(std::ssize(numbers), 16 * kPanel, 0, [&] {
            return [&, point = GridRow(grid_, points.n_columns)](std::int64_t begin, std::int64_t end) mutable {
                for (std::int64_t p = begin; p < end; ++p) {
                    off[p] = point.enter(points, numbers[p]);
                    offsets_[p] = point.offset();
                    point.pack(panels_.data(), p);
                }
            };
        });
        furthest_off_ = *std::max_element(off.begin(), off.end());
    }

    template <class Rows> Scratch<Rows> of(const Rows &rows, std::int64_t tile) const { return {*this, rows, tile}; }

    template <class Rows> bool serves(const Rows &rows, int threads) const { return are_near(grid_, rows, threads); }

  private:
    Grid grid_;
    std::vector<std::int32_t> offsets_; // by point (GridRow)
    std::vector<std::uint8_t> panels_;
    double furthest_off_ = 0.0; // the largest distance of a point from the grid, in steps
};

template <class Value> template <class Rows> class GridBounds<Value>::Scratch {
  public:
    Scratch(const GridBounds &table, const Rows &rows, std::int64_t tile)
        : table_(table), rows_(rows), products_(*best_byte_products()), numbers_(table.grid_, rows.n_columns),
          width_(byte_width(rows.n_columns)), bytes_(static_cast<std::size_t>((tile + group()) * width_)),
          row_offsets_(static_cast<std::size_t>(tile + group())), off_(static_cast<std::size_t>(tile)) {}

    std::int64_t group() const { return products_.group; }

    void enter(std::int64_t begin, std::int64_t end) {
        for (std::int64_t k = 0; k < end - begin; ++k) {
            off_[k] = numbers_.enter(rows_, begin + k);
            row_offsets_[k] = numbers_.sum_of_squares();
            numbers_.write(bytes_.data() + k * width_);
        }
    }

    void fill(std::int64_t k, std::int64_t n, std::int64_t panel, std::int64_t n_panels, float *bounds,
              std::int64_t stride) const {
        products_.distances(bytes_.data() + k * width_, row_offsets_.data() + k, n, rows_.n_columns,
                            table_.grid_.n_steps(), table_.panels_.data() + panel * kPanel * width_, n_panels,
                            table_.offsets_.data() + panel * kPanel, bounds, stride);
    }

    float width(std::int64_t k) const { return table_.grid_.width(off_[k], table_.furthest_off_, rows_.n_columns); }

    // The distance between two levels, and how many of these row and point can be from their levels, together.
    double step() const { return table_.grid_.step(); }
    double off(std::int64_t k) const { return off_[k] + table_.furthest_off_; }

    // Whether equal bounds mean equal distances: whole numbers exactly on the grid, small enough for float32.
    bool has_exact_bounds(std::int64_t k) const {
        return table_.grid_.is_whole() && off(k) == 0.0 && table_.grid_.longest_square(rows_.n_columns) < 0x1p24;
    }

  private:
    const GridBounds &table_;
    const Rows &rows_;
    const ByteProducts &products_;
    GridRow numbers_;
    std::int64_t width_;             // of a row in bytes_
    std::vector<std::int8_t> bytes_; // levels as GridRow writes them
    std::vector<std::int32_t> row_offsets_;
    std::vector<double> off_; // by row: its distance from the grid, in steps
};

} // namespace isokern
