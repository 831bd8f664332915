// Nearest points of each sample, for dense points: pruned brute-force search by float32 matrix products (GEMM).
//
// In: dense points, their pool, principal axes or none; then rows. Out: cells. Points are grouped into chunks (k-d tree
// leaves, chunks.hpp), and so are rows, so that the rows of a tile need the same chunks. A tile visits the chunks
// nearest first. Chunks whose bounding box is too far are pruned; for the others a matrix product
// gives lower bounds on distances, with a proven bound on their rounding error. With more than kBoxSides axes (PCA),
// the product is first taken along the axes only, which gives cheap lower bounds, and the full product only for the
// points that these do not rule out. Exact distances decide among the remaining candidates (search.hpp).
#pragma once

#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "common/raw_vector.hpp"
#include "common/threads.hpp"
#include "simd/products.hpp"
#include "voronoi/axes.hpp"
#include "voronoi/chunks.hpp"
#include "voronoi/engine.hpp"
#include "voronoi/frame.hpp"
#include "voronoi/rounding.hpp"
#include "voronoi/scans.hpp"
#include "voronoi/search.hpp"

namespace isokern {

// With kappa and kappa' of rounding.hpp,
//   lower(x, z) = (1 - kappa) |z|^2 - 2 x.z   and   upper(x, z) = lower(x, z) + 2 kappa (|x|^2 + |z|^2)
// bound the squared distance less (1 - kappa) |x|^2, which is the same for all points. Along k < d axes, with
// coordinates x' and z',
//   lower'(x, z) = |z'|^2 - kappa' |z|^2 - 2 x'.z'
// bounds the squared distance less |x'|^2 - kappa' |x|^2.
template <class Value> class ChunkSearch final : public Engine {
  public:
    ChunkSearch(const DenseRows<Value> &points, const Samples &samples, const Axes &axes)
        : points_(points), pool_(points, samples), n_axes_(axes.n), is_reduced_(axes.n > kBoxSides),
          width_(is_reduced_ ? (points.n_columns + kPadding - 1) / kPadding * kPadding : points.n_columns),
          frame_(points, pool_.points), kappa_(product_error(points.n_columns)),
          kappa_few_(projected_product_error(points.n_columns, axes.n)) {
        pack_axes(axes);
        lay_out_points();
    }

    void apply(const AnyRows &rows, std::span<const CellsOut> cells, int threads) const override {
        std::visit([&](const auto &table) { search(table, cells.front(), threads); }, rows);
    }

  private:
    template <class Rows> class Worker;
    class Projector;
    struct Projected; // rows in coordinates

    // Rows of a tile, a multiple of every Products::group. The fewer they are, the better an order of the chunks suits
    // them all, but the more often a chunk is fetched from memory.
    static constexpr std::int64_t kTile = 24;
    static constexpr std::int64_t kChunk = 256; // points of a chunk, a multiple of kPanel

    // Coordinates (for the k-d tree) are along the axes or, without axes, the columns. Factors (of the first product)
    // are the coordinates in reduced mode, otherwise all columns.
    std::int64_t n_coordinates() const { return n_axes_ > 0 ? n_axes_ : points_.n_columns; }
    std::int64_t n_factors() const { return is_reduced_ ? n_axes_ : points_.n_columns; }

    // Packs axes as panels, like points, so that the same product gives coordinates.
    void pack_axes(const Axes &axes) {
        axis_panels_.assign(static_cast<std::size_t>(n_panels(axes.n) * kPanel * points_.n_columns), 0.0f);
        for (std::int64_t j = 0; j < points_.n_columns; ++j)
            for (std::int64_t a = 0; a < axes.n; ++a)
                axis_panels_[panel_index(a, j, points_.n_columns)] = static_cast<float>(axes.values[j * axes.n + a]);
        no_offsets_.assign(static_cast<std::size_t>(n_panels(axes.n) * kPanel), 0.0f);
    }

    void lay_out_points();
    void lay_out_point(const Projected &projected, std::int32_t from, std::int64_t p);
    template <class Rows, class Number>
    void project(const Rows &rows, std::int64_t n, Number number, Projected &projected, int threads) const;
    template <class Rows> void search(const Rows &rows, CellsOut cells, int threads) const;

    DenseRows<Value> points_;
    Pool pool_; // chunk after chunk
    std::int64_t n_axes_;
    bool is_reduced_;    // there are more than kBoxSides axes: bounds along the axes come first
    std::int64_t width_; // n_columns, in reduced mode padded with zeros to a multiple of kPadding
    Frame frame_;
    double kappa_, kappa_few_;
    std::vector<float> axis_panels_, no_offsets_;
    RawVector<float> values_;             // reduced mode: the points, centred and scaled, n x width_
    std::vector<float> offsets_, widths_; // by point: (1 - kappa) |z|^2 and 2 kappa |z|^2
    RawVector<float> panels_;             // factors of the points
    std::vector<float> offsets_few_;      // by point: |z'|^2 - kappa' |z|^2 (else offsets_)
    std::vector<float> largest_squares_;  // by chunk: the largest |z|^2
    std::unique_ptr<const Chunks> chunks_;
};

// Rows, or points, centred and scaled, with their coordinates along the axes.
template <class Value> struct ChunkSearch<Value>::Projected {
    std::int64_t width, n_axes;
    RawVector<float> values;         // n x width: the columns, padded with zeros
    RawVector<float> along_axes;     // n x n_axes
    std::vector<float> squares;      // |x|^2; infinite if beyond float32
    std::vector<float> axes_squares; // |x'|^2

    Projected(const ChunkSearch &engine, std::int64_t n)
        : width(engine.width_), n_axes(engine.n_axes_), values(static_cast<std::size_t>(n * width)),
          along_axes(static_cast<std::size_t>(n * n_axes)), squares(static_cast<std::size_t>(n)),
          axes_squares(squares.size()) {}

    const float *all(std::int64_t r) const { return values.data() + r * width; }
    const float *coordinates(std::int64_t r) const { return n_axes > 0 ? along_axes.data() + r * n_axes : all(r); }
};

// Computes Projected for groups of rows; owns the scratch buffers of one thread.
template <class Value> class ChunkSearch<Value>::Projector {
  public:
    explicit Projector(const ChunkSearch &engine)
        : engine_(engine), products_(best_products()), row_(static_cast<std::size_t>(engine.points_.n_columns)),
          packed_(static_cast<std::size_t>(products_.group) * row_.size()),
          found_(static_cast<std::size_t>(products_.group * n_panels(engine.n_axes_) * kPanel)) {}

    // Writes entries begin to end of projected; entry k is the row number(k).
    template <class Rows, class Number>
    void project(const Rows &rows, Number number, std::int64_t begin, std::int64_t end, Projected &projected) {
        for (std::int64_t r = begin; r < end; r += products_.group)
            project_group(rows, number, r, std::min(r + products_.group, end), projected);
    }

  private:
    //  x = (row - centre) * scale,  x' = axes' x
    // lower_bounds with offsets 0 gives -2 x', hence the factor -0.5.
    template <class Rows, class Number>
    void project_group(const Rows &rows, Number number, std::int64_t begin, std::int64_t end, Projected &projected) {
        const std::int64_t d = engine_.points_.n_columns, k = engine_.n_axes_, group = products_.group;
        std::fill(packed_.begin(), packed_.end(), 0.0f);
        for (std::int64_t r = begin; r < end; ++r) {
            load(rows, number(r), row_);
            float *values = projected.values.data() + r * projected.width;
            projected.squares[r] = engine_.frame_.enter(row_, values);
            if (projected.squares[r] == HUGE_VALF) // it may be infinite, which a k-d tree cannot sort
                std::fill_n(values, d, 0.0f);
            std::fill_n(values + d, projected.width - d, 0.0f);
            for (std::int64_t j = 0; j < d; ++j)
                packed_[j * group + r - begin] = values[j];
        }
        if (k == 0)
            return;
        const std::int64_t stride = n_panels(k) * kPanel;
        products_.lower_bounds(packed_.data(), 1, d, engine_.axis_panels_.data(), n_panels(k),
                               engine_.no_offsets_.data(), found_.data(), stride);
        for (std::int64_t r = begin; r < end; ++r) {
            double square = 0.0;
            for (std::int64_t a = 0; a < k; ++a) {
                const float value = -0.5f * found_[(r - begin) * stride + a];
                projected.along_axes[r * k + a] = value;
                square += static_cast<double>(value) * value;
            }
            projected.axes_squares[r] = static_cast<float>(square);
        }
    }

    const ChunkSearch &engine_;
    const Products &products_;
    std::vector<double> row_;
    std::vector<float> packed_, found_;
};

// Fills projected for n rows; the k-th is the row number(k).
template <class Value>
template <class Rows, class Number>
void ChunkSearch<Value>::project(const Rows &rows, std::int64_t n, Number number, Projected &projected,
                                 int threads) const {
    parallel_tiles(n, 256, threads, [&] {
        return [&, projector = Projector(*this)](std::int64_t begin, std::int64_t end) mutable {
            projector.project(rows, number, begin, end, projected);
        };
    });
}

// Builds the chunks, reorders the pool by them, and lays the points out in that order.
template <class Value> void ChunkSearch<Value>::lay_out_points() {
    const std::int64_t n = pool_.size(), m = n_factors();
    Projected projected(*this, n);
    project(points_, n, [&](std::int64_t p) { return pool_.points[p]; }, projected, 0);
    chunks_ = std::make_unique<const Chunks>(projected.coordinates(0), n, n_coordinates(), kChunk, 0);
    pool_.reorder(chunks_->order());
    const auto n_slots = static_cast<std::size_t>(n_panels(n) * kPanel);
    panels_.resize(n_slots * static_cast<std::size_t>(m));
    std::fill(panels_.end() - kPanel * m, panels_.end(), 0.0f); // the last panel need not be full
    offsets_few_.assign(n_slots, 0.0f);
    offsets_.assign(n_slots, 0.0f);
    widths_.assign(n_slots, 0.0f);
    largest_squares_.assign(static_cast<std::size_t>(chunks_->size()), 0.0f);
    values_.resize(is_reduced_ ? projected.values.size() : 0);
    parallel_tiles(n, kChunk, 0, [&] {
        return [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t p = begin; p < end; ++p)
                lay_out_point(projected, chunks_->order()[p], p);
        };
    });
}

// Writes all that is stored of a point, the from-th before reordering, as the p-th.
template <class Value>
void ChunkSearch<Value>::lay_out_point(const Projected &projected, std::int32_t from, std::int64_t p) {
    const std::int64_t m = n_factors();
    const double square = projected.squares[from];
    const float *factors = is_reduced_ ? projected.coordinates(from) : projected.all(from);
    for (std::int64_t a = 0; a < m; ++a)
        panels_[panel_index(p, a, m)] = factors[a];
    if (is_reduced_)
        std::copy_n(projected.all(from), width_, values_.begin() + p * width_);
    offsets_[p] = static_cast<float>((1.0 - kappa_) * square);
    offsets_few_[p] =
        is_reduced_ ? static_cast<float>(projected.axes_squares[from] - kappa_few_ * square) : offsets_[p];
    widths_[p] = static_cast<float>(2.0 * kappa_ * square);
    float &largest = largest_squares_[p / kChunk];
    largest = std::max(largest, projected.squares[from]);
}

// Searches the chunks for a tile of rows that are near each other; owns the scratch buffers of one thread.
template <class Value> template <class Rows> class ChunkSearch<Value>::Worker {
  public:
    Worker(const ChunkSearch &engine, const Rows &rows, const Projected &projected, std::span<const std::int32_t> order,
           CellsOut cells)
        : engine_(engine), projected_(projected), order_(order), cells_(cells), products_(best_products()),
          scans_(best_scans()),
          searches_(static_cast<std::size_t>(std::min(kTile, rows.n_rows)), Search<float>(engine.pool_)),
          packed_(static_cast<std::size_t>((kTile + products_.group) * engine.n_factors())),
          bounds_(static_cast<std::size_t>(products_.group * kChunk)),
          indices_(static_cast<std::size_t>(kChunk + kSpare)), lowers_(indices_.size()),
          nearness_(static_cast<std::size_t>(kTile * engine.chunks_->n_boxes())),
          turn_(static_cast<std::size_t>(engine.chunks_->size())), nearest_(turn_.size()),
          distances_(rows, engine.points_, engine.pool_.points) {}

    void operator()(std::int64_t begin, std::int64_t end) {
        order_here_ = order_.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
        n_rows_ = end - begin;
        begin_rows();
        for (const std::int32_t chunk : turn_)
            for (std::int64_t first = 0; first < n_rows_; first += products_.group)
                look_at(chunk, first, std::min(first + products_.group, n_rows_));
        for (std::int64_t k = 0; k < n_rows_; ++k)
            settle(searches_[k], order_here_[k]);
    }

  private:
    std::int64_t n_chunks() const { return engine_.chunks_->size(); }

    // Packs the rows' factors for the product, and sorts the chunks by the smallest distance of any row to their box.
    //   out: packed_, nearness_, turn_
    void begin_rows() {
        const std::int64_t m = engine_.n_factors();
        std::fill(nearest_.begin(), nearest_.end(), HUGE_VALF);
        for (std::int64_t k = 0; k < n_rows_; ++k) {
            searches_[k].begin();
            const std::int64_t r = order_here_[k];
            const float *factors = engine_.is_reduced_ ? projected_.coordinates(r) : projected_.all(r);
            float *packed = packed_.data() + k / products_.group * products_.group * m;
            for (std::int64_t a = 0; a < m; ++a)
                packed[a * products_.group + k % products_.group] = factors[a];
            float *squares = nearness_.data() + k * engine_.chunks_->n_boxes();
            engine_.chunks_->distances(projected_.coordinates(r), squares);
            for (std::int64_t c = 0; c < n_chunks(); ++c)
                nearest_[c] = std::min(nearest_[c], squares[c]);
        }
        std::iota(turn_.begin(), turn_.end(), 0);
        std::sort(turn_.begin(), turn_.end(), [&](std::int32_t a, std::int32_t b) {
            return std::pair(nearest_[a], a) < std::pair(nearest_[b], b);
        });
    }

    // Whether a chunk may hold a nearest point of the k-th row of the tile: its box is within the row's threshold,
    // after rounding errors are subtracted. A row without bounds (infinite square) visits no chunk; settle compares it
    // with all points.
    bool matters(std::int64_t chunk, std::int64_t k) const {
        const double square = projected_.squares[order_here_[k]];
        if (square == HUGE_VALF)
            return false;
        const double slack = engine_.kappa_few_ * (square + engine_.largest_squares_[chunk]) + kUnderflow;
        const double threshold = searches_[k].threshold() + (1.0 - engine_.kappa_) * square;
        return nearness_[k * engine_.chunks_->n_boxes() + chunk] * (1.0 - 0x1p-18) - slack <= threshold;
    }

    //  bounds_[k, p] = offsets[p] - 2 x_k.z_p for a group of rows and the points of a chunk, unless all rows prune it
    void look_at(std::int32_t chunk, std::int64_t first, std::int64_t last) {
        std::int64_t n_mattering = 0;
        for (std::int64_t k = first; k < last; ++k)
            n_mattering += matters(chunk, k);
        if (n_mattering == 0)
            return;
        const std::int64_t begin = chunk * kChunk, n = std::min(kChunk, engine_.pool_.size() - begin);
        const std::int64_t m = engine_.n_factors();
        products_.lower_bounds(packed_.data() + first * m, 1, m, engine_.panels_.data() + begin * m, n_panels(n),
                               engine_.offsets_few_.data() + begin, bounds_.data(), kChunk);
        for (std::int64_t k = first; k < last; ++k)
            if (matters(chunk, k))
                enter_chunk(searches_[k], bounds_.data() + (k - first) * kChunk, begin, n, order_here_[k]);
    }

    // Enters the points of a chunk into the search of row r. In reduced mode, the bounds are those along the axes; the
    // points that they do not rule out get bounds from all columns first.
    //   in: bounds of the n points from the begin-th on      changed: search
    void enter_chunk(Search<float> &search, const float *bounds, std::int64_t begin, std::int64_t n, std::int64_t r) {
        const float square = projected_.squares[r];
        const double gap = engine_.is_reduced_ ? gap_at(r) : 0.0;
        const std::int64_t n_close = indices_within(search, bounds, begin, n, gap);
        if (n_close == 0)
            return;
        if (engine_.is_reduced_)
            products_.lower_bounds_at(projected_.all(r), engine_.width_,
                                      engine_.values_.data() + begin * engine_.width_, engine_.offsets_.data() + begin,
                                      indices_.data(), n_close, lowers_.data());
        const float width = static_cast<float>(2.0 * engine_.kappa_) * square + kUnderflow;
        for (std::int64_t k = 0; k < n_close; ++k) {
            const std::int64_t p = begin + indices_[k];
            const float lower = engine_.is_reduced_ ? lowers_[k] : bounds[indices_[k]];
            if (lower <= search.threshold())
                search.enter(static_cast<std::int32_t>(p), lower, lower + (width + engine_.widths_[p]));
        }
        search.lower_threshold();
    }

    // Bounds along the axes lack |x'|^2 - kappa' |x|^2, those of all columns (1 - kappa) |x|^2. The difference, with a
    // margin for rounding, turns a limit for the latter into one for the former.
    double gap_at(std::int64_t r) const {
        const double square = projected_.squares[r];
        return (1.0 - engine_.kappa_ + engine_.kappa_few_ + 0x1p-20) * square - projected_.axes_squares[r] + kUnderflow;
    }

    // Writes to indices_ the points of a chunk that may be nearest in some partitioning, counted from the chunk's
    // start; returns their number. In reduced mode a point is also compared with the limits of its own partitionings,
    // because a full product costs more than that.
    std::int64_t indices_within(const Search<float> &search, const float *bounds, std::int64_t begin, std::int64_t n,
                                double gap) {
        const float limit = std::nextafter(static_cast<float>(search.threshold() + gap), HUGE_VALF);
        const std::int64_t n_found = scans_.indices_within(bounds, n, limit, indices_.data());
        if (!engine_.is_reduced_)
            return n_found;
        const auto end = std::remove_if(indices_.begin(), indices_.begin() + n_found, [&](std::int32_t index) {
            return !search.may_be_nearest(static_cast<std::int32_t>(begin + index), bounds[index] - gap);
        });
        return end - indices_.begin();
    }

    // Writes the cells of row r.
    void settle(Search<float> &search, std::int64_t r) {
        if (projected_.squares[r] == HUGE_VALF)
            search.enter_all();
        distances_.begin_row(r);
        search.settle(distances_, found_);
        write_cells(cells_, r, std::span(std::as_const(found_)));
    }

    const ChunkSearch &engine_;
    const Projected &projected_;
    std::span<const std::int32_t> order_; // the rows, so that those of a tile are near each other
    CellsOut cells_;
    const Products &products_;
    const Scans &scans_;
    std::span<const std::int32_t> order_here_;
    std::int64_t n_rows_ = 0;
    std::vector<Search<float>> searches_;
    std::vector<float> packed_, bounds_;
    std::vector<std::int32_t> indices_;
    std::vector<float> lowers_;
    std::vector<float> nearness_;    // squared distances to the boxes, [row of the tile][chunk]
    std::vector<std::int32_t> turn_; // chunks, nearest first
    std::vector<float> nearest_;     // by chunk: the smallest of nearness_
    Distances<Rows, DenseRows<Value>> distances_;
    std::vector<std::int32_t> found_;
};

template <class Value>
template <class Rows>
void ChunkSearch<Value>::search(const Rows &rows, CellsOut cells, int threads) const {
    Projected projected(*this, rows.n_rows);
    project(rows, rows.n_rows, [](std::int64_t r) { return r; }, projected, threads);
    const Chunks groups(projected.coordinates(0), rows.n_rows, n_coordinates(), best_products().group, threads);
    parallel_tiles(rows.n_rows, kTile, threads,
                   [&] { return Worker<Rows>(*this, rows, projected, groups.order(), cells); });
}

} // namespace isokern
