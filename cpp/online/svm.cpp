// Dual coordinate descent with shrinking (Hsieh et al., 2008, algorithm 3), on cells and linear columns.
//
// In: features of rows, classes, costs. Out: weights, intercepts, dual variables, numbers of passes. Each step
// minimises the dual over one alpha_r in closed form, from the weights of the row's features, and updates these. Rows
// are visited in random order (Fisher-Yates shuffle). Columns are independent problems with random streams of their
// own, so results do not depend on threads.
#include "online/svm.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "common/random.hpp"
#include "common/threads.hpp"
#include "online/svm_features.hpp"

namespace isokern {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNoStep = 1e-12;      // no step for smaller projected gradients
constexpr std::int64_t kRowsAhead = 2; // cells are prefetched for the row that comes so many rows later, weights for
                                       // the next row

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

//  K(x, x) = sum_l a_l^2 + |z|^2, by row
std::vector<double> diagonal_of(const SvmRows &rows) {
    double cells = 0.0;
    if (rows.cells)
        for (const float share : rows.shares)
            cells += static_cast<double>(share) * static_cast<double>(share);
    std::vector<double> diagonal(static_cast<std::size_t>(rows.n_rows), cells);
    if (rows.linear)
        std::visit(
            [&](const auto &table) {
                for (std::int64_t r = 0; r < rows.n_rows; ++r)
                    for_each_nonzero(table, r, [&](std::int32_t, double z) { diagonal[r] += z * z; });
            },
            rows.linear->rows);
    return diagonal;
}

// The problem of one column.
template <class Row, class Weight> class Machine {
  public:
    Machine(Features<Row, Weight> features, const std::vector<double> &diagonal, std::span<const std::int32_t> which,
            const ClassTarget &classes, const double *row_weights, const SvmRule &rule, std::int64_t column,
            double *alpha, double intercept)
        : features_(std::move(features)), diagonal_(diagonal), classes_(classes), row_weights_(row_weights),
          rule_(rule), column_(column), intercept_(intercept), alpha_(alpha),
          draws_(stream_key(rule.seed, Purpose::machine, static_cast<std::uint64_t>(column))) {
        if (!alpha_) {
            own_alpha_.resize(diagonal.size());
            alpha_ = own_alpha_.data();
        }
        order_.reserve(which.size());
        for (const std::int32_t r : which)
            if (std::isfinite(0.5 / cost(r))) // a row of cost 0 keeps alpha = 0
                order_.push_back(r);
        n_active_ = static_cast<std::int64_t>(order_.size());
        for (const std::int32_t r : order_)
            alpha_sum_ += alpha_[r];
    }

    double intercept() const { return intercept_; }

    // Hsieh et al., A Dual Coordinate Descent Method for Large-scale Linear SVM (2008), algorithm 3. Shrinking: rows
    // whose alpha seems to stay at its bound are left out. When the others have converged, all rows take part again;
    // the solution is found when a pass over all rows converges. Returns the number of passes.
    std::int64_t solve() {
        for (std::int64_t n_iter = 1; n_iter <= rule_.max_iter; ++n_iter) {
            shuffle();
            gain_ = 0.0;
            const Range range = pass();
            // At the optimum, the dual objective is half the sum of all alpha, at least.
            if (gain_ < rule_.gain * 0.5 * alpha_sum_)
                return n_iter;
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
            fetch(k);
            const std::int32_t r = order_[k];
            if (step(r, range))
                ++k;
            else
                std::swap(order_[k], order_[--n_active_]);
        }
        return range;
    }

    //  G = y f(x) - 1 + D alpha,   alpha <- min(max(alpha - G / (Q_rr + D), 0), U),   Q_rr = K(x, x) + s^2
    // Minimises the dual over alpha_r, and updates w and b. Returns false, without a step, if the row can be left out:
    // alpha is at a bound, and G points beyond it by more than any projected gradient of the last pass.
    bool step(std::int64_t r, Range &range) {
        const double y = classes_(r, column_), slack = rule_.is_squared ? 0.5 / cost(r) : 0.0;
        const double upper = rule_.is_squared ? kInfinity : cost(r), alpha = alpha_[r];
        const double gradient = y * (features_.score(r) + intercept_) - 1.0 + slack * alpha;
        if ((alpha == 0.0 && gradient > bounds_.highest) || (alpha == upper && gradient < bounds_.lowest))
            return false;
        const bool is_stuck = (alpha == 0.0 && gradient > 0.0) || (alpha == upper && gradient < 0.0);
        const double projected = is_stuck ? 0.0 : gradient;
        range.add(projected);
        if (std::abs(projected) > kNoStep) {
            const double curvature = diagonal_[r] + rule_.intercept + slack;
            alpha_[r] = std::min(std::max(alpha - gradient / curvature, 0.0), upper);
            const double change = alpha_[r] - alpha, delta = change * y;
            alpha_sum_ += change;
            gain_ -= change * (gradient + 0.5 * curvature * change);
            features_.move(r, delta);
            intercept_ += delta * rule_.intercept;
        }
        return true;
    }

    // Prefetches what the steps after the k-th active row need: rows come in random order, which hardware prefetchers
    // cannot predict.
    [[gnu::always_inline]] void fetch(std::int64_t k) const {
        if (k + 1 < n_active_)
            features_.fetch_weights(order_[k + 1]);
        if (k + kRowsAhead >= n_active_)
            return;
        const std::int64_t r = order_[k + kRowsAhead];
        features_.fetch(r);
        __builtin_prefetch(&alpha_[r]);
        __builtin_prefetch(&diagonal_[r]);
        __builtin_prefetch(classes_.column + r);
    }

    double cost(std::int64_t r) const { return row_weights_ ? rule_.cost * row_weights_[r] : rule_.cost; }

    Features<Row, Weight> features_;
    const std::vector<double> &diagonal_; // K(x, x), by row
    ClassTarget classes_;
    const double *row_weights_;
    SvmRule rule_;
    std::int64_t column_;
    double intercept_;
    double *alpha_;
    std::vector<double> own_alpha_;
    double alpha_sum_ = 0.0, gain_ = 0.0; // of all rows; of the dual objective in this pass
    Draws draws_;
    std::vector<std::int32_t> order_;
    std::int64_t n_active_;
    Range bounds_{-kInfinity, kInfinity}; // a row at a bound of alpha is left out if its gradient is beyond these
};

// Calls use(row) with the places of the first row's cells; without cells, there are no places.
template <class Use> void with_first_row(const std::optional<AnyCells> &cells, Use use) {
    static constexpr std::int64_t kStarts[] = {0, 0};
    if (cells)
        std::visit([&](const auto &rows) { with_places(rows, use); }, *cells);
    else
        use(UniformPlaces(CellRows<std::uint8_t>{nullptr, 0, 0, kStarts}));
}

} // namespace

template <class Weight>
void solve_svm(const SvmRows &rows, std::span<const std::int32_t> which, const ClassTarget &classes,
               const double *row_weights, const SvmRule &rule, std::int64_t n_columns,
               const SvmSolution<Weight> &solution, int threads) {
    const std::vector<double> diagonal = diagonal_of(rows);
    with_first_row(rows.cells, [&](auto first) {
        parallel_tiles(n_columns, 1, threads, [&] {
            return [&](std::int64_t k, std::int64_t) {
                Features features(first, rows, solution.weights + k * rows.n_weights());
                double *alpha = solution.alpha ? solution.alpha + k * rows.n_rows : nullptr;
                Machine machine(std::move(features), diagonal, which, classes, row_weights, rule, k, alpha,
                                solution.intercepts[k]);
                solution.n_iter[k] = machine.solve();
                solution.intercepts[k] = machine.intercept();
            };
        });
    });
}

template void solve_svm(const SvmRows &, std::span<const std::int32_t>, const ClassTarget &, const double *,
                        const SvmRule &, std::int64_t, const SvmSolution<double> &, int);
template void solve_svm(const SvmRows &, std::span<const std::int32_t>, const ClassTarget &, const double *,
                        const SvmRule &, std::int64_t, const SvmSolution<float> &, int);

} // namespace isokern
