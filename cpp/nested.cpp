// A row is compared with all points of all samples once, whatever the number of samples and sizes (nested_bounds.hpp).
// Few points of a sample are looked at one by one: running minima over the first 2, 4, 8, ... give the cells of all
// small sizes. For large sizes the points are walked from near to far, as far as the minima of the small ones reach.
// The first that belongs to a sample is its nearest; from then on only those that lie further to its front matter, as
// nearest of a smaller size, until all samples have met one among their few first points.
//
// Bounds on distances are off by a little: where two points are closer to each other than that, the distance itself
// decides.
#include "nested.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "nested_bounds.hpp"
#include "products.hpp"
#include "threads.hpp"
#include "voronoi_search.hpp"

namespace isokern {
namespace {

constexpr std::int64_t kFew = 128;             // the first points of a sample, which are looked at one by one
constexpr std::int64_t kTile = 192;            // rows at a time
constexpr std::int64_t kTileBytes = 1LL << 26; // of their products, at most
constexpr std::size_t kAhead = 4;              // points whose members are fetched meanwhile
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::int64_t n_panels(std::int64_t n) { return (n + kPanel - 1) / kPanel; }

// A pool's member in half the memory, since memory is what walks wait for.
struct Packed {
    std::uint16_t sample, place;
};
constexpr std::int64_t kMostSamples = 1 << 16, kLargestSize = 1 << 16;

// What all threads read: the samples.
struct Nested {
    std::int64_t n_samples;
    std::span<const std::int64_t> sizes;
    Pool pool;
    std::int64_t n_few;
    std::int64_t stride;               // of a row's bounds: a bound for each point, and at least one that is infinite
    std::vector<Packed> members;       // as the pool has them
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
          near_(static_cast<std::size_t>(n_large_ ? nested.pool.size() : 0)), walks_(near_.empty() ? 0 : least_.size()),
          n_missing_(static_cast<std::size_t>(n_large_)), complete_at_(n_missing_.size()), distances_(nested.pool) {
        for (std::int64_t place = 0, k = n_small_; n_large_ && place < nested.sizes.back(); ++place) {
            k += nested.sizes[k] <= place;
            size_above_.push_back(static_cast<std::int32_t>(k));
        }
    }

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
            if (n_large_)
                walk(bounds);
            write(r);
        }
    }

  private:
    // The last point that a sample has met that lies further to its front than those before.
    struct Walk {
        std::int64_t place;
        float bound;
        std::int32_t point;
        bool is_doubtful; // whether it is among the events
    };

    struct Event {
        std::int32_t sample;
        std::int64_t place;
        std::int32_t point;
        float bound;
    };

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

    void walk(const float *bounds) {
        order_near(bounds);
        events_.clear();
        std::fill(walks_.begin(), walks_.end(), Walk{nested_.sizes.back(), -kInfinity, 0, false});
        std::fill(n_missing_.begin(), n_missing_.end(), nested_.n_samples);
        std::int64_t n_open = n_large_; // sizes that are not done yet; the largest is done first
        for (std::size_t next = 0; next < by_bound_.size(); ++next) {
            const auto [bound, p] = by_bound_[next];
            while (n_open > 0 && n_missing_[n_open - 1] == 0 && bound - complete_at_[n_open - 1] > width_)
                --n_open;
            if (n_open == 0)
                break;
            const std::int64_t size = nested_.sizes[n_small_ + n_open - 1];
            if (next + kAhead < by_bound_.size())
                fetch(by_bound_[next + kAhead].second, size);
            const Packed *member = nested_.members.data() + nested_.pool.member_starts[p];
            const Packed *end = nested_.members.data() + nested_.pool.member_ends[p];
            for (; member != end && member->place < size; ++member) // their places ascend
                meet(*member, p, bound);
        }
        settle_doubts();
    }

    // Members lie anywhere in memory; about as many of a point's are needed as the size has of the points.
    void fetch(std::int32_t p, std::int64_t size) const {
        const std::int64_t begin = nested_.pool.member_starts[p], n = nested_.pool.member_ends[p] - begin;
        for (std::int64_t k = 0; k <= n * size / nested_.sizes.back(); k += 64 / sizeof(Packed))
            __builtin_prefetch(nested_.members.data() + begin + k);
    }

    // All points that may be nearest in a sample, from near to far.
    void order_near(const float *bounds) {
        const float furthest = *std::max_element(least_.begin(), least_.begin() + nested_.n_samples);
        const std::int64_t n = products_.places_within(bounds, nested_.pool.size(), furthest + width_, near_.data());
        by_bound_.resize(static_cast<std::size_t>(n));
        for (std::int64_t k = 0; k < n; ++k)
            by_bound_[k] = {bounds[near_[k]], near_[k]};
        std::sort(by_bound_.begin(), by_bound_.end());
    }

    void meet(Packed member, std::int32_t point, float bound) {
        Walk &walk = walks_[member.sample];
        const bool is_close = bound - walk.bound <= width_, is_further_front = member.place < walk.place;
        if (!is_close && !is_further_front)
            return;
        if (is_close) {
            if (!walk.is_doubtful)
                events_.push_back({member.sample, walk.place, walk.point, walk.bound});
            events_.push_back({member.sample, member.place, point, bound});
            walk.is_doubtful = true;
        }
        if (!is_further_front)
            return;
        const auto n_sizes = static_cast<std::int64_t>(nested_.sizes.size());
        for (std::int64_t k = size_above_[member.place]; k < n_sizes && nested_.sizes[k] <= walk.place; ++k) {
            found(k)[member.sample] = static_cast<std::int32_t>(member.place);
            if (--n_missing_[k - n_small_] == 0)
                complete_at_[k - n_small_] = bound;
        }
        walk = {member.place, bound, point, is_close};
    }

    // Events are those of samples where two points were close to each other.
    void settle_doubts() {
        std::stable_sort(events_.begin(), events_.end(),
                         [](const Event &a, const Event &b) { return a.sample < b.sample; });
        for (auto begin = events_.begin(); begin != events_.end();) {
            const auto end =
                std::find_if(begin, events_.end(), [&](const Event &e) { return e.sample != begin->sample; });
            for (std::int64_t k = n_small_; k < n_small_ + n_large_; ++k)
                settle({begin, end}, nested_.sizes[k], found(k)[begin->sample]);
            begin = end;
        }
    }

    // Finds the nearest that a sample of this size has met, if there was another as near as the first, found.
    void settle(std::span<const Event> events, std::int64_t size, std::int32_t &found) {
        const auto first = std::find_if(events.begin(), events.end(), [&](const Event &e) { return e.place == found; });
        double nearest = HUGE_VAL;
        for (auto event = first; event != events.end() && event->bound - first->bound <= width_; ++event) {
            if (event->place >= size)
                continue;
            const double d = exact(event->point);
            if (d < nearest || (d == nearest && event->place < found)) {
                nearest = d;
                found = static_cast<std::int32_t>(event->place);
            }
        }
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
    std::vector<std::int32_t> near_;
    std::vector<std::pair<float, std::int32_t>> by_bound_;
    std::vector<Walk> walks_;              // by sample
    std::vector<std::int64_t> n_missing_;  // by large size: the samples that have not met a point yet
    std::vector<float> complete_at_;       // by large size: the bound at which the last did
    std::vector<std::int32_t> size_above_; // by place: the number of the first large size that is larger
    std::vector<Event> events_;
    Distances distances_;
};

template <class Value> DenseBounds<Value> bounds_of(const DenseRows<Value> &rows, const Nested &nested) {
    return {rows, nested.pool.points, nested.stride};
}

template <class Value> SparseBounds<Value> bounds_of(const CsrRows<Value> &rows, const Nested &nested) {
    return {rows, nested.pool.points, nested.stride};
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
    const auto table = bounds_of(rows, nested);
    const auto row_bytes = nested.stride * static_cast<std::int64_t>(sizeof(float));
    const std::int64_t tile = std::clamp<std::int64_t>(kTileBytes / row_bytes / kPanel * kPanel, kPanel, kTile);
    parallel_tiles(rows.n_rows, tile, threads, [&] { return Worker(nested, table, tile, cells); });
}

#define ISOKERN_INSTANTIATE(Rows)                                                                                      \
    template void nested_cells(const Rows &, std::span<const std::int32_t>, std::int64_t,                              \
                               std::span<const std::int64_t>, std::span<const CellsOut>, int);
ISOKERN_INSTANTIATE(DenseRows<float>)
ISOKERN_INSTANTIATE(DenseRows<double>)
ISOKERN_INSTANTIATE(CsrRows<float>)
ISOKERN_INSTANTIATE(CsrRows<double>)

} // namespace isokern
