// Dual coordinate descent with shrinking (Hsieh et al., 2008, algorithm 3), on cells.
//
// In: cells, classes, costs. Out: weights, intercepts, numbers of passes. Each step minimises the dual over one alpha_r
// in closed form, from the row's t weights, and updates these. Rows are visited in random order (Fisher-Yates shuffle).
// Columns are independent problems with random streams of their own, so results do not depend on threads.
#include "online/svm.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "common/random.hpp"
#include "common/threads.hpp"
#include "online/cell_places.hpp"

namespace isokern {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNoStep = 1e-12;      // no step for smaller projected gradients
constexpr std::int64_t kRowsAhead = 2; // cells are prefetched for the row that comes so many rows later

// The smallest and the largest projected gradient.
struct Range {
    double lowest = kInfinity;
    double highest = -kInfinity;

    void add(double value) {
        lowest = std::min(lowest, value);
        highest = std::max(highest, value);
    }
    double width() const { return highest - lowest; }
};

// The problem of one column.
template <class Row> class Machine {
  public:
    Machine(const Row &first, std::int64_t n_rows, const ClassTarget &classes, const double *row_weights,
            const SvmRule &rule, std::int64_t column, double *weights)
        : first_(first), classes_(classes), row_weights_(row_weights), rule_(rule), column_(column), weights_(weights),
          draws_(stream_key(rule.seed, Purpose::machine, static_cast<std::uint64_t>(column))),
          share_(1.0 / static_cast<double>(first.t)), alpha_(static_cast<std::size_t>(n_rows), 0.0) {
        order_.reserve(static_cast<std::size_t>(n_rows));
        for (std::int64_t r = 0; r < n_rows; ++r)
            if (std::isfinite(0.5 / cost(r))) // a row of cost 0 keeps alpha = 0
                order_.push_back(static_cast<std::int32_t>(r));
        n_active_ = static_cast<std::int64_t>(order_.size());
    }

    double intercept() const { return intercept_; }

    // Hsieh et al., A Dual Coordinate Descent Method for Large-scale Linear SVM (2008), algorithm 3. Shrinking: rows
    // whose alpha seems to stay at its bound are left out. When the others have converged, all rows take part again;
    // the solution is found when a pass over all rows converges. Returns the number of passes.
    std::int64_t solve() {
        for (std::int64_t n_iter = 1; n_iter <= rule_.max_iter; ++n_iter) {
            shuffle();
            const Range range = pass();
            if (range.width() > rule_.tolerance)
                bounds_ = {range.lowest < 0.0 ? range.lowest : -kInfinity,
                           range.highest > 0.0 ? range.highest : kInfinity};
            else if (n_active_ == static_cast<std::int64_t>(order_.size()))
                return n_iter;
            else
                take_all_rows();
        }
        return rule_.max_iter;
    }

  private:
    void take_all_rows() {
        n_active_ = static_cast<std::int64_t>(order_.size());
        bounds_ = {-kInfinity, kInfinity};
    }

    // Fisher-Yates shuffle of the active rows.
    void shuffle() {
        for (std::int64_t k = 0; k < n_active_; ++k) {
            const auto left = static_cast<std::uint64_t>(n_active_ - k);
            std::swap(order_[k], order_[k + static_cast<std::int64_t>(draws_.below(left))]);
        }
    }

    // One step for each active row; returns the range of their projected gradients. Rows that can be left out are
    // swapped behind the active ones.
    Range pass() {
        Range range;
        for (std::int64_t k = 0; k < n_active_;) {
            fetch(k + kRowsAhead);
            const std::int32_t r = order_[k];
            if (step(r, range))
                ++k;
            else
                std::swap(order_[k], order_[--n_active_]);
        }
        return range;
    }

    //  G = y f(x) - 1 + D alpha,   alpha <- min(max(alpha - G / (Q_rr + D), 0), U),   Q_rr = K(x, x) + s^2 = 1 + s^2
    // Minimises the dual over alpha_r, and updates w and b. Returns false, without a step, if the row can be left out:
    // alpha is at a bound, and G points beyond it by more than any projected gradient of the last pass.
    bool step(std::int64_t r, Range &range) {
        Row row = first_;
        row.cells += r * row.t;
        const double y = classes_(r, column_), diagonal = rule_.is_squared ? 0.5 / cost(r) : 0.0;
        const double upper = rule_.is_squared ? kInfinity : cost(r), alpha = alpha_[r];
        const double f = sum_over_cells(row, weights_) * share_ + intercept_;
        const double gradient = y * f - 1.0 + diagonal * alpha;
        if ((alpha == 0.0 && gradient > bounds_.highest) || (alpha == upper && gradient < bounds_.lowest))
            return false;
        const bool is_stuck = (alpha == 0.0 && gradient > 0.0) || (alpha == upper && gradient < 0.0);
        const double projected = is_stuck ? 0.0 : gradient;
        range.add(projected);
        if (std::abs(projected) > kNoStep) {
            alpha_[r] = std::min(std::max(alpha - gradient / (1.0 + rule_.intercept + diagonal), 0.0), upper);
            const double delta = (alpha_[r] - alpha) * y;
            add_to_cells(row, delta, weights_);
            intercept_ += delta * rule_.intercept;
        }
        return true;
    }

    // Prefetches what step needs of the k-th active row: rows come in random order, which hardware prefetchers cannot
    // predict. Always inlined, because GCC takes a function that only prefetches for one without effect, and removes
    // calls of it.
    [[gnu::always_inline]] void fetch(std::int64_t k) const {
        if (k >= n_active_)
            return;
        const std::int64_t r = order_[k];
        const auto *cells = reinterpret_cast<const char *>(first_.cells + r * first_.t);
        const std::int64_t n_bytes = first_.t * static_cast<std::int64_t>(sizeof *first_.cells);
        for (std::int64_t b = 0; b < n_bytes; b += 64)
            __builtin_prefetch(cells + b);
        __builtin_prefetch(&alpha_[r]);
        __builtin_prefetch(classes_.column + r);
    }

    double cost(std::int64_t r) const { return row_weights_ ? rule_.cost * row_weights_[r] : rule_.cost; }

    Row first_;
    ClassTarget classes_;
    const double *row_weights_;
    SvmRule rule_;
    std::int64_t column_;
    double *weights_;
    double intercept_ = 0.0;
    Draws draws_;
    double share_;
    std::vector<double> alpha_;
    std::vector<std::int32_t> order_;
    std::int64_t n_active_;
    Range bounds_{-kInfinity, kInfinity}; // a row at a bound of alpha is left out if its gradient is beyond these
};

} // namespace

template <class Cell>
void solve_svm(const CellRows<Cell> &rows, const ClassTarget &classes, const double *row_weights, const SvmRule &rule,
               std::int64_t n_columns, double *weights, double *intercepts, std::int64_t *n_iter, int threads) {
    std::fill_n(weights, n_columns * rows.n_cells(), 0.0);
    with_places(rows, [&](auto first) {
        parallel_tiles(n_columns, 1, threads, [&] {
            return [&](std::int64_t k, std::int64_t) {
                Machine machine(first, rows.n_rows, classes, row_weights, rule, k, weights + k * rows.n_cells());
                n_iter[k] = machine.solve();
                intercepts[k] = machine.intercept();
            };
        });
    });
}

#define ISOKERN_INSTANTIATE(Cell)                                                                                      \
    template void solve_svm(const CellRows<Cell> &, const ClassTarget &, const double *, const SvmRule &,              \
                            std::int64_t, double *, double *, std::int64_t *, int);
ISOKERN_INSTANTIATE(std::uint8_t)
ISOKERN_INSTANTIATE(std::uint16_t)
ISOKERN_INSTANTIATE(std::uint32_t)

} // namespace isokern
