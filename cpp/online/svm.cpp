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

// The features of rows and one column of weights for them. first: the places of the first row's cells.
template <class Row> class Features {
  public:
    Features(const Row &first, const SvmRows &rows, double *weights)
        : first_(first), n_scales_(static_cast<std::int64_t>(rows.shares.size())), linear_(rows.linear),
          weights_(weights), linear_weights_(weights + rows.n_cells()) {
        share_ = first.t > 0 ? static_cast<double>(n_scales_) / static_cast<double>(first.t) : 0.0;
        for (const float share : rows.shares)
            squares_.push_back(static_cast<double>(share) * static_cast<double>(share));
        moves_.resize(squares_.size());
    }

    //  (1/t) sum_i sum_l u[i, l, phi_il(x)]  +  sum_j z_j v_j
    double score(std::int64_t r) const {
        const Row row = at(r);
        const double sum = n_scales_ == 1   ? sum_over_cells(row, weights_)
                           : n_scales_ == 2 ? sum_over_scales<2>(row)
                                            : sum_over_scales<0>(row);
        return sum * share_ + (linear_ ? linear_score(r) : 0.0);
    }

    //  w += delta phi(x), hence  u[i, l, phi_il(x)] += delta a_l^2,  v_j += delta z_j
    void move(std::int64_t r, double delta) {
        if (n_scales_ == 1)
            add_to_cells(at(r), delta * squares_[0], weights_);
        else if (n_scales_ == 2)
            add_to_scales<2>(at(r), delta);
        else
            add_to_scales<0>(at(r), delta);
        if (linear_)
            std::visit([&](const auto &rows) { add(rows, r, delta); }, linear_->rows);
    }

    // Prefetches the cells of a row. Always inlined, because GCC takes a function that only prefetches for one without
    // effect, and removes calls of it.
    [[gnu::always_inline]] void fetch(std::int64_t r) const {
        const auto *cells = reinterpret_cast<const char *>(first_.cells + r * first_.t);
        const std::int64_t n_bytes = first_.t * static_cast<std::int64_t>(sizeof *first_.cells);
        for (std::int64_t b = 0; b < n_bytes; b += 64)
            __builtin_prefetch(cells + b);
    }

  private:
    Row at(std::int64_t r) const {
        Row row = first_;
        row.cells += r * row.t;
        return row;
    }

    // Scales first, coarse to fine, then kParts partial sums over the partitionings, as in scale_weights.cpp. kScales:
    // their number, if the compiler shall know it, else 0.
    template <std::int64_t kScales> double sum_over_scales(const Row &row) const {
        const std::int64_t n_scales = kScales ? kScales : n_scales_;
        double parts[kParts] = {};
        for (std::int64_t i = 0, k = 0; k < row.t; ++i) {
            double path = 0.0;
            for (std::int64_t l = 0; l < n_scales; ++l, ++k)
                path += weights_[row[k]];
            parts[i % kParts] += path;
        }
        return (parts[0] + parts[1]) + (parts[2] + parts[3]);
    }

    template <std::int64_t kScales> void add_to_scales(const Row &row, double delta) {
        const std::int64_t n_scales = kScales ? kScales : n_scales_;
        for (std::int64_t l = 0; l < n_scales; ++l)
            moves_[l] = delta * squares_[l];
        for (std::int64_t k = 0; k < row.t;)
            for (std::int64_t l = 0; l < n_scales; ++l, ++k)
                weights_[row[k]] += moves_[l];
    }

    double linear_score(std::int64_t r) const {
        return std::visit([&](const auto &rows) { return product(rows, r); }, linear_->rows);
    }

    double product(const DenseRows<float> &rows, std::int64_t r) const {
        double parts[kParts] = {};
        for (std::int64_t j = 0; j < rows.n_columns; ++j)
            parts[j % kParts] += static_cast<double>(rows.row(r)[j]) * linear_weights_[j];
        return (parts[0] + parts[1]) + (parts[2] + parts[3]);
    }
    double product(const CsrRows<float> &rows, std::int64_t r) const {
        double parts[kParts] = {};
        for (std::int64_t i = rows.starts[r]; i < rows.starts[r + 1]; ++i)
            parts[(i - rows.starts[r]) % kParts] +=
                static_cast<double>(rows.values[i]) * linear_weights_[rows.columns[i]];
        return (parts[0] + parts[1]) + (parts[2] + parts[3]);
    }

    void add(const DenseRows<float> &rows, std::int64_t r, double delta) {
        for (std::int64_t j = 0; j < rows.n_columns; ++j)
            linear_weights_[j] += delta * static_cast<double>(rows.row(r)[j]);
    }
    void add(const CsrRows<float> &rows, std::int64_t r, double delta) {
        for (std::int64_t i = rows.starts[r]; i < rows.starts[r + 1]; ++i)
            linear_weights_[rows.columns[i]] += delta * static_cast<double>(rows.values[i]);
    }

    Row first_;
    std::int64_t n_scales_;
    std::optional<LinearRows> linear_;
    double *weights_, *linear_weights_;
    double share_;                        // 1 / number of partitionings
    std::vector<double> squares_, moves_; // by scale: a_l^2, delta a_l^2
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
template <class Row> class Machine {
  public:
    Machine(Features<Row> features, const std::vector<double> &diagonal, std::span<const std::int32_t> which,
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
            fetch(k + kRowsAhead);
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

    // Prefetches what step needs of the k-th active row: rows come in random order, which hardware prefetchers cannot
    // predict.
    [[gnu::always_inline]] void fetch(std::int64_t k) const {
        if (k >= n_active_)
            return;
        const std::int64_t r = order_[k];
        features_.fetch(r);
        __builtin_prefetch(&alpha_[r]);
        __builtin_prefetch(classes_.column + r);
    }

    double cost(std::int64_t r) const { return row_weights_ ? rule_.cost * row_weights_[r] : rule_.cost; }

    Features<Row> features_;
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

void solve_svm(const SvmRows &rows, std::span<const std::int32_t> which, const ClassTarget &classes,
               const double *row_weights, const SvmRule &rule, std::int64_t n_columns, const SvmSolution &solution,
               int threads) {
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

} // namespace isokern
