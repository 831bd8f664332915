// A row is compared with all points of all samples once, whatever the number of samples and sizes (nested_bounds.hpp).
// Few points of a sample are looked at one by one: running minima over the first 2, 4, 8, ... give the cells of all
// small sizes, by distances themselves where bounds are too close. For large sizes a row walks through the points from
// near to far, as far as the minima of the small ones reach (nested_walk.hpp).
#include "nested.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "nested_bounds.hpp"
#include "nested_walk.hpp"
#include "products.hpp"
#include "threads.hpp"
#include "voronoi_search.hpp"

namespace isokern {
namespace {

constexpr std::int64_t kFew = 128;             // the first points of a sample, which are looked at one by one
constexpr std::int64_t kTile = 192;            // rows at a time
constexpr std::int64_t kTileBytes = 1LL << 26; // of their products, at most
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::int64_t n_panels(std::int64_t n) { return (n + kPanel - 1) / kPanel; }

constexpr std::int64_t kMostSamples = 1 << 16, kLargestSize = 1 << 16;

// What all threads read: the samples.
struct Nested {
    std::int64_t n_samples;
    std::span<const std::int64_t> sizes;
    Pool pool;
    std::int64_t n_few;
    std::int64_t stride;               // of a row's bounds: a bound for each point, and at least one that is infinite
    std::vector<NestedMember> members; // as the pool has them
    std::vector<std::int32_t> numbers; // of the first few points in the pool, [samples by kPanel][n_few][kPanel]

    Nested(const std::vector<std::int32_t> &first_equal, std::span<const std::int32_t> samples, std::int64_t n_samples,
           std::span<const std::int64_t> sizes)
        : n_samples(n_samples), sizes(sizes), pool(first_equal, samples.data(), n_samples, sizes.back()),
          n_few(std::min(kFew, sizes.back())), stride((pool.size() / kPanel + 1) * kPanel),
          numbers(static_cast<std::size_t>(n_panels(n_samples) * kPanel * n_few),
                  static_cast<std::int32_t>(pool.size())) {
        for (std::int64_t p = 0; p < pool.size(); ++p)
            for (std::int64_t k = pool.member_starts[p]; k < pool.member_ends[p]; ++k)
                if (pool.members[k].place < n_few)
                    number_at(pool.members[k]) = static_cast<std::int32_t>(p);
        members.reserve(pool.members.size());
        for (const Member member : pool.members)
            members.push_back(
                {static_cast<std::uint16_t>(member.partitioning), static_cast<std::uint16_t>(member.place)});
    }

    std::int32_t &number_at(Member member) {
        const std::int64_t i = member.partitioning;
        return numbers[(i / kPanel * n_few + member.place) * kPanel + i % kPanel];
    }

    std::int64_t n_small() const { return std::upper_bound(sizes.begin(), sizes.end(), n_few) - sizes.begin(); }
};

template <class Bounds> class Worker {
  public:
    Worker(const Nested &nested, const Bounds &table, std::int64_t tile, std::span<const CellsOut> cells)
        : nested_(nested), cells_(cells), products_(best_products()), rows_(table, tile), n_small_(nested.n_small()),
          n_large_(static_cast<std::int64_t>(nested.sizes.size()) - n_small_),
          bounds_(static_cast<std::size_t>((tile + rows_.n_spare_rows()) * nested.stride)),
          least_(static_cast<std::size_t>(n_panels(nested.n_samples) * kPanel)), second_(least_.size()),
          at_(least_.size()), found_(nested.sizes.size() * static_cast<std::size_t>(nested.n_samples)),
          distances_(nested.pool), walk_(nested.pool, nested.members, nested.n_samples,
                                         nested.sizes.subspan(static_cast<std::size_t>(n_small_)), found(n_small_)) {}

    void operator()(std::int64_t begin, std::int64_t end) {
        rows_.fill(begin, end, bounds_.data());
        for (std::int64_t r = begin; r < end; ++r) {
            float *bounds = bounds_.data() + (r - begin) * nested_.stride;
            std::fill(bounds + nested_.pool.size(), bounds + nested_.stride, kInfinity);
            width_ = rows_.width(r - begin);
            if (!(width_ < kInfinity))
                std::fill_n(bounds, nested_.pool.size(), 0.0f);
            rows_.load(r);
            distances_.begin_row();
            look_at_few(bounds);
            if (n_large_) {
                const float furthest = *std::max_element(least_.begin(), least_.begin() + nested_.n_samples);
                walk_.go(bounds, furthest + width_, width_, [&](std::int32_t p) { return exact(p); });
            }
            write(r);
        }
    }

  private:
    double exact(std::int32_t point) {
        return distances_.get(point, [&](std::int32_t p) { return rows_.distance_to(p); });
    }

    std::int32_t *found(std::int64_t k) { return found_.data() + k * nested_.n_samples; }

    void look_at_few(const float *bounds) {
        std::fill(least_.begin(), least_.end(), kInfinity);
        std::fill(second_.begin(), second_.end(), kInfinity);
        std::fill(at_.begin(), at_.end(), 0);
        std::int64_t begin = 0;
        for (std::int64_t k = 0; k < n_small_; begin = nested_.sizes[k++]) {
            go_on(bounds, begin, nested_.sizes[k]);
            for (std::int64_t i = 0; i < nested_.n_samples; ++i)
                found(k)[i] = second_[i] - least_[i] > width_ ? at_[i] : settle(bounds, i, nested_.sizes[k]);
        }
        go_on(bounds, begin, nested_.n_few);
    }

    void go_on(const float *bounds, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = 0; i < nested_.n_samples; i += kPanel)
            products_.running_minima(bounds, nested_.numbers.data() + i * nested_.n_few, begin, end, &least_[i],
                                     &second_[i], &at_[i]);
    }

    // The nearest of the first points of sample i, by their distances where bounds are close.
    std::int32_t settle(const float *bounds, std::int64_t i, std::int64_t size) {
        const std::int32_t *numbers = nested_.numbers.data() + i / kPanel * kPanel * nested_.n_few + i % kPanel;
        double nearest = HUGE_VAL;
        std::int32_t best = at_[i];
        for (std::int32_t place = 0; place < size; ++place) {
            const std::int32_t number = numbers[place * kPanel];
            if (number == nested_.pool.size() || !(bounds[number] - least_[i] <= width_))
                continue;
            const double d = exact(number);
            if (d < nearest) {
                nearest = d;
                best = place;
            }
        }
        return best;
    }

    void write(std::int64_t r) {
        for (std::size_t k = 0; k < cells_.size(); ++k)
            std::visit(
                [&]<class Cell>(Cell *cells) {
                    std::transform(found(k), found(k) + nested_.n_samples, cells + r * nested_.n_samples,
                                   [](std::int32_t place) { return static_cast<Cell>(place); });
                },
                cells_[k]);
    }

    const Nested &nested_;
    std::span<const CellsOut> cells_;
    const Products &products_;
    typename Bounds::Scratch rows_;
    std::int64_t n_small_, n_large_; // sizes
    std::vector<float> bounds_;
    float width_ = 0.0f;
    std::vector<float> least_, second_; // by sample
    std::vector<std::int32_t> at_;
    std::vector<std::int32_t> found_; // [size][sample]
    Distances distances_;
    Walk walk_;
};

template <class Bounds>
void fill_cells(const Nested &nested, const Bounds &table, std::int64_t n_rows, std::span<const CellsOut> cells,
                int threads) {
    const auto row_bytes = nested.stride * static_cast<std::int64_t>(sizeof(float));
    const std::int64_t tile = std::clamp<std::int64_t>(kTileBytes / row_bytes / kPanel * kPanel, kPanel, kTile);
    parallel_tiles(n_rows, tile, threads, [&] { return Worker(nested, table, tile, cells); });
}

template <class Value>
void fill_cells(const Nested &nested, const DenseRows<Value> &rows, std::span<const CellsOut> cells, int threads) {
    if (best_products().byte_distances)
        if (const auto grid = Grid::find(rows))
            return fill_cells(nested, GridBounds<Value>(rows, *grid, nested.pool.points, nested.stride), rows.n_rows,
                              cells, threads);
    fill_cells(nested, DenseBounds<Value>(rows, nested.pool.points, nested.stride), rows.n_rows, cells, threads);
}

template <class Value>
void fill_cells(const Nested &nested, const CsrRows<Value> &rows, std::span<const CellsOut> cells, int threads) {
    fill_cells(nested, SparseBounds<Value>(rows, nested.pool.points, nested.stride), rows.n_rows, cells, threads);
}

} // namespace

template <class Rows>
void nested_cells(const Rows &rows, std::span<const std::int32_t> samples, std::int64_t n_samples,
                  std::span<const std::int64_t> sizes, std::span<const CellsOut> cells, int threads) {
    const auto is_row = [&](std::int32_t p) { return p >= 0 && p < rows.n_rows; };
    const auto is_no_rise = [](std::int64_t a, std::int64_t b) { return a >= b; };
    if (sizes.empty() || sizes.front() < 1 || n_samples < 1 ||
        std::adjacent_find(sizes.begin(), sizes.end(), is_no_rise) != sizes.end() ||
        static_cast<std::int64_t>(samples.size()) != n_samples * sizes.back())
        throw std::invalid_argument("sizes must ascend to that of the samples.");
    if (n_samples > kMostSamples || sizes.back() > kLargestSize)
        throw std::invalid_argument("there must be at most 2^16 samples, of at most 2^16 points.");
    if (!std::all_of(samples.begin(), samples.end(), is_row))
        throw std::invalid_argument("samples must be numbers of rows.");
    const Nested nested(find_equal_points(rows), samples, n_samples, sizes);
    fill_cells(nested, rows, cells, threads);
}

#define ISOKERN_INSTANTIATE(Rows)                                                                                      \
    template void nested_cells(const Rows &, std::span<const std::int32_t>, std::int64_t,                              \
                               std::span<const std::int64_t>, std::span<const CellsOut>, int);
ISOKERN_INSTANTIATE(DenseRows<float>)
ISOKERN_INSTANTIATE(DenseRows<double>)
ISOKERN_INSTANTIATE(CsrRows<float>)
ISOKERN_INSTANTIATE(CsrRows<double>)

} // namespace isokern
