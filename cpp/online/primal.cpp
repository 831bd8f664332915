// Scores and steps on one weight per cell: sparse dot products and updates with one-hot rows.
//
// In: cells, weights, targets. Out: scores, changed weights. Gather sums the t weights of a row's cells; NaiveGather
// computes all t psi products, as the paper's IK-OGD(naive), for comparison. Stepper adds gradient steps, plain or
// AdaGrad. Both use the lazy scaling and averaging of Clock (online.hpp).
#include "online/primal.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/threads.hpp"
#include "online/cell_places.hpp"

namespace isokern {
namespace {

//  sums[k] = sum_i table[row[i], k]      in: row, table (n_cells x n_columns)      out: sums
// Always kParts partial sums, so that a column's result does not depend on n_columns.
class Gather {
  public:
    explicit Gather(std::int64_t n_columns)
        : n_columns_(n_columns), parts_(static_cast<std::size_t>(kParts * n_columns)) {}

    template <class Row> void operator()(Row row, const double *table, double *sums) {
        if (n_columns_ == 1)
            sums[0] = sum_over_cells(row, table);
        else
            all_columns(row, table, sums);
    }

  private:
    template <class Row> void all_columns(const Row &row, const double *table, double *sums) {
        std::fill(parts_.begin(), parts_.end(), 0.0);
        for (std::int64_t i = 0; i < row.t; ++i) {
            const double *cell = table + row[i] * n_columns_;
            double *part = parts_.data() + i % kParts * n_columns_;
            for (std::int64_t k = 0; k < n_columns_; ++k)
                part[k] += cell[k];
        }
        const double *part = parts_.data();
        for (std::int64_t k = 0; k < n_columns_; ++k, ++part)
            sums[k] = (part[0] + part[n_columns_]) + (part[2 * n_columns_] + part[3 * n_columns_]);
    }

    std::int64_t n_columns_;
    std::vector<double> parts_;
};

//  sums[k] = sum_c one_hot[c] table[c, k]: all t psi products with the one-hot row
class NaiveGather {
  public:
    NaiveGather(std::int64_t n_columns, std::int64_t n_cells)
        : n_columns_(n_columns), one_hot_(static_cast<std::size_t>(n_cells), 0.0) {}

    template <class Row> void operator()(const Row &row, const double *table, double *sums) {
        for (std::int64_t i = 0; i < row.t; ++i)
            one_hot_[row[i]] = 1.0;
        std::fill_n(sums, n_columns_, 0.0);
        for (std::size_t c = 0; c < one_hot_.size(); ++c)
            for (std::int64_t k = 0; k < n_columns_; ++k)
                sums[k] += one_hot_[c] * table[c * n_columns_ + k];
        for (std::int64_t i = 0; i < row.t; ++i)
            one_hot_[row[i]] = 0.0;
    }

  private:
    std::int64_t n_columns_;
    std::vector<double> one_hot_;
};

// Moves the weights of a row's cells in column k by a step with gradient g. As w = scale v, a step of w divides by
// scale to become one of v.
class Stepper {
  public:
    Stepper(Weights weights, const Step &step, std::int64_t t)
        : deltas_(static_cast<std::size_t>(t)), weights_(weights), step_(step) {}

    template <class Row> void take(const Row &row, std::int64_t k, double g, double rate, const Clock &clock) {
        if (step_.schedule == Schedule::adagrad)
            move_each(row, k, g, rate, clock);
        else
            move_all(row, k, -rate * g / clock.scale, clock);
    }

    //  rate |g|, or with AdaGrad its mean over the cells:  (1/t) sum_i rate |g| / sqrt(s_i + g^2)
    template <class Row> double move(const Row &row, std::int64_t k, double g, double rate) const {
        const double size = std::abs(g);
        if (step_.schedule != Schedule::adagrad || size == 0.0)
            return rate * size;
        double sum = 0.0;
        for (std::int64_t i = 0; i < row.t; ++i)
            sum += size / std::max(size, std::sqrt(weights_.squares[row[i] * weights_.n_columns + k] + g * g));
        return rate * sum / static_cast<double>(row.t);
    }

  private:
    //  v[row[i], k] += delta,   a[row[i], k] += delta scale_sum      for all i
    template <class Row> void move_all(Row row, std::int64_t k, double delta, const Clock &clock) {
        add(row, weights_.values + k, delta);
        if (weights_.sums)
            add(row, weights_.sums + k, delta * clock.scale_sum);
    }

    template <class Row> void add(Row row, double *column, double delta) const {
        if (weights_.n_columns == 1) // saves the multiplication of indices
            add_to_cells(row, delta, column);
        else
            for (std::int64_t i = 0; i < row.t; ++i)
                column[row[i] * weights_.n_columns] += delta;
    }

    //  s += g^2,   v += -eta g / (scale sqrt(s)),   with s = squares[row[i], k], v = values[row[i], k], for all i
    // In separate short loops, so that the compiler vectorises roots and divisions.
    template <class Row> void move_each(const Row &row, std::int64_t k, double g, double rate, const Clock &clock) {
        const double square = g * g, size = std::abs(g), factor = -rate * g / clock.scale;
        double *deltas = deltas_.data();
        for (std::int64_t i = 0; i < row.t; ++i)
            deltas[i] = weights_.squares[row[i] * weights_.n_columns + k] += square;
        for (std::int64_t i = 0; i < row.t; ++i) {
            const double root = std::sqrt(deltas[i]);
            deltas[i] = factor / (root > size ? root : size); // sqrt(s) >= |g|, except where g^2 underflows
        }
        for (std::int64_t i = 0; i < row.t; ++i)
            weights_.values[row[i] * weights_.n_columns + k] += deltas[i];
        if (weights_.sums)
            for (std::int64_t i = 0; i < row.t; ++i)
                weights_.sums[row[i] * weights_.n_columns + k] += deltas[i] * clock.scale_sum;
    }

    std::vector<double> deltas_; // allocated before any weight changes
    Weights weights_;
    Step step_;
};

// The Model of learn_rows (online_loop.hpp): one weight for each cell and column.
template <class Row, class AnyGather> class Primal {
  public:
    Primal(const Row &first, std::int64_t n_cells, Weights weights, const Step &step, AnyGather gather, Clock &clock)
        : first_(first), row_(first), n_cells_(n_cells), weights_(weights), clock_(clock),
          scorer_(weights.view(), first.t, std::move(gather)), stepper_(weights, step, first.t) {}

    void read(std::int64_t r) { row_.cells = first_.cells + r * first_.t; }
    void last(double *scores) { scorer_.last(row_, clock_, scores); }
    bool averages() const { return weights_.sums != nullptr; }
    void predict(double *scores) { scorer_.predict(row_, clock_, scores); }
    void step(std::int64_t k, double g, double rate, double) { stepper_.take(row_, k, g, rate, clock_); }
    double move(std::int64_t k, double g, double rate) const { return stepper_.move(row_, k, g, rate); }
    void end_row() {
        if (clock_.scale < kSmallScale)
            restore_scale(weights_, n_cells_, clock_);
    }

  private:
    Row first_, row_;
    std::int64_t n_cells_;
    Weights weights_;
    Clock &clock_;
    Scorer<AnyGather> scorer_;
    Stepper stepper_;
};

} // namespace

template <class Cell>
void learn_primal(const CellRows<Cell> &rows, const AnyTarget &targets, const double *row_weights, const AnyLoss &loss,
                  const Step &step, bool naive, Weights weights, Clock &clock, double *scores) {
    const auto learn = [&](auto first, auto gather) {
        Primal model(first, rows.n_cells(), weights, step, std::move(gather), clock);
        std::visit(
            [&](const auto &target, const auto &any_loss) {
                learn_rows(model, rows.n_rows, weights.n_columns, target, row_weights, any_loss, step, clock, scores);
            },
            targets, loss);
    };
    with_places(rows, [&](auto first) {
        if (naive)
            learn(first, NaiveGather(weights.n_columns, rows.n_cells()));
        else
            learn(first, Gather(weights.n_columns));
    });
}

template <class Cell>
void score_primal(const CellRows<Cell> &rows, WeightView weights, const Clock &clock, bool naive, double *scores,
                  int threads) {
    const auto score = [&](auto first, auto gather) {
        return [&, row = first, scorer = Scorer(weights, rows.t, std::move(gather))](std::int64_t begin,
                                                                                     std::int64_t end) mutable {
            for (std::int64_t r = begin; r < end; ++r) {
                row.cells = rows.row(r);
                scorer.predict(row, clock, scores + r * weights.n_columns);
            }
        };
    };
    with_places(rows, [&](auto first) {
        if (naive)
            parallel_tiles(rows.n_rows, 64, threads,
                           [&] { return score(first, NaiveGather(weights.n_columns, rows.n_cells())); });
        else
            // Large tiles: a few thousand rows are scored before another thread has started.
            parallel_tiles(rows.n_rows, 4096, threads, [&] { return score(first, Gather(weights.n_columns)); });
    });
}

template <class Cell>
void sum_by_cell(const CellRows<Cell> &rows, const double *values, std::int64_t n_columns, double *sums) {
    std::fill_n(sums, rows.n_cells() * n_columns, 0.0);
    with_places(rows, [&](auto row) {
        for (std::int64_t r = 0; r < rows.n_rows; ++r, values += n_columns) {
            row.cells = rows.row(r);
            for (std::int64_t i = 0; i < row.t; ++i) {
                double *cell = sums + row[i] * n_columns;
                for (std::int64_t k = 0; k < n_columns; ++k)
                    cell[k] += values[k];
            }
        }
    });
}

#define ISOKERN_INSTANTIATE(Cell)                                                                                      \
    template void learn_primal(const CellRows<Cell> &, const AnyTarget &, const double *, const AnyLoss &,             \
                               const Step &, bool, Weights, Clock &, double *);                                        \
    template void score_primal(const CellRows<Cell> &, WeightView, const Clock &, bool, double *, int);                \
    template void sum_by_cell(const CellRows<Cell> &, const double *, std::int64_t, double *);
ISOKERN_INSTANTIATE(std::uint8_t)
ISOKERN_INSTANTIATE(std::uint16_t)
ISOKERN_INSTANTIATE(std::uint32_t)

} // namespace isokern
