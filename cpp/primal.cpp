#include "primal.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "threads.hpp"

namespace isokern {
namespace {

// The sums over a row's cells of each column of a table, n_cells x n_columns.
class Gather {
  public:
    explicit Gather(std::int64_t n_columns) : n_columns_(n_columns) {}

    void operator()(const std::vector<std::int64_t> &places, const double *table, double *sums) const {
        if (n_columns_ == 1)
            sums[0] = one_column(places, table);
        else
            all_columns(places, table, sums);
    }

  private:
    // Four sums at a time, so that additions need not wait for each other.
    static double one_column(const std::vector<std::int64_t> &places, const double *table) {
        double part[4] = {};
        std::size_t i = 0;
        for (; i + 4 <= places.size(); i += 4)
            for (std::size_t l = 0; l < 4; ++l)
                part[l] += table[places[i + l]];
        for (; i < places.size(); ++i)
            part[0] += table[places[i]];
        return (part[0] + part[1]) + (part[2] + part[3]);
    }

    void all_columns(const std::vector<std::int64_t> &places, const double *table, double *sums) const {
        std::fill_n(sums, n_columns_, 0.0);
        for (const std::int64_t place : places)
            for (std::int64_t k = 0; k < n_columns_; ++k)
                sums[k] += table[place * n_columns_ + k];
    }

    std::int64_t n_columns_;
};

// The same by the definition: all t psi products with the one-hot row.
class NaiveGather {
  public:
    NaiveGather(std::int64_t n_columns, std::int64_t n_cells)
        : n_columns_(n_columns), row_(static_cast<std::size_t>(n_cells), 0.0) {}

    void operator()(const std::vector<std::int64_t> &places, const double *table, double *sums) {
        for (const std::int64_t place : places)
            row_[place] = 1.0;
        std::fill_n(sums, n_columns_, 0.0);
        for (std::size_t c = 0; c < row_.size(); ++c)
            for (std::int64_t k = 0; k < n_columns_; ++k)
                sums[k] += row_[c] * table[c * n_columns_ + k];
        for (const std::int64_t place : places)
            row_[place] = 0.0;
    }

  private:
    std::int64_t n_columns_;
    std::vector<double> row_;
};

// Where a row's cells stand among all cells.
template <class Cell> void find_places(const CellRows<Cell> &rows, std::int64_t r, std::vector<std::int64_t> &places) {
    const Cell *cells = rows.row(r);
    for (std::int64_t i = 0; i < rows.t; ++i)
        places[i] = rows.starts[i] + cells[i];
}

// Moves the weights of a row's cells in column k by a gradient g.
class Stepper {
  public:
    Stepper(Weights weights, const Step &step) : weights_(weights), step_(step) {}

    void take(const std::vector<std::int64_t> &places, std::int64_t k, double g, double rate, const Clock &clock) {
        if (step_.schedule == Schedule::adagrad)
            move_each(places, k, g, rate, clock);
        else
            move_all(places, k, -rate * g / clock.scale, clock);
    }

  private:
    void move_all(const std::vector<std::int64_t> &places, std::int64_t k, double delta, const Clock &clock) {
        for (const std::int64_t place : places)
            weights_.values[place * weights_.n_columns + k] += delta;
        if (weights_.sums)
            for (const std::int64_t place : places)
                weights_.sums[place * weights_.n_columns + k] += delta * clock.scale_sum;
    }

    void move_each(const std::vector<std::int64_t> &places, std::int64_t k, double g, double rate, const Clock &clock) {
        const double square = g * g, size = std::abs(g), factor = -rate * g / clock.scale;
        for (const std::int64_t place : places) {
            const std::int64_t at = place * weights_.n_columns + k;
            weights_.squares[at] += square;
            // The root is at least |g|, but for squares that vanish.
            const double delta = factor / std::max(std::sqrt(weights_.squares[at]), size);
            weights_.values[at] += delta;
            if (weights_.sums)
                weights_.sums[at] += delta * clock.scale_sum;
        }
    }

    Weights weights_;
    Step step_;
};

// One weight for each cell.
template <class Cell, class AnyGather> class Primal {
  public:
    Primal(const CellRows<Cell> &rows, Weights weights, const Step &step, AnyGather gather, Clock &clock)
        : rows_(rows), weights_(weights), clock_(clock), scorer_(weights.view(), rows.t, std::move(gather)),
          stepper_(weights, step), places_(static_cast<std::size_t>(rows.t)) {}

    void read(std::int64_t r) { find_places(rows_, r, places_); }
    bool averages() const { return weights_.sums != nullptr; }
    void predict(double *scores) { scorer_.predict(places_, clock_, scores); }
    void last(double *scores) { scorer_.last(places_, clock_, scores); }
    void step(std::int64_t k, double g, double rate) { stepper_.take(places_, k, g, rate, clock_); }
    void end_row() {
        if (clock_.scale < kSmallScale)
            restore_scale(weights_, rows_.n_cells(), clock_);
    }

  private:
    const CellRows<Cell> &rows_;
    Weights weights_;
    Clock &clock_;
    Scorer<AnyGather> scorer_;
    Stepper stepper_;
    std::vector<std::int64_t> places_;
};

} // namespace

template <class Cell>
void learn_primal(const CellRows<Cell> &rows, const AnyTarget &targets, const double *row_weights, const AnyLoss &loss,
                  const Step &step, bool naive, Weights weights, Clock &clock, double *scores) {
    const auto learn = [&](auto gather) {
        Primal model(rows, weights, step, std::move(gather), clock);
        std::visit(
            [&](const auto &target, const auto &any_loss) {
                learn_rows(model, rows.n_rows, weights.n_columns, target, row_weights, any_loss, step, clock, scores);
            },
            targets, loss);
    };
    if (naive)
        learn(NaiveGather(weights.n_columns, rows.n_cells()));
    else
        learn(Gather(weights.n_columns));
}

template <class Cell>
void score_primal(const CellRows<Cell> &rows, WeightView weights, const Clock &clock, bool naive, double *scores,
                  int threads) {
    const auto score = [&](auto gather) {
        return [&, places = std::vector<std::int64_t>(static_cast<std::size_t>(rows.t)),
                scorer = Scorer(weights, rows.t, std::move(gather))](std::int64_t begin, std::int64_t end) mutable {
            for (std::int64_t r = begin; r < end; ++r) {
                find_places(rows, r, places);
                scorer.predict(places, clock, scores + r * weights.n_columns);
            }
        };
    };
    if (naive)
        parallel_tiles(rows.n_rows, 64, threads, [&] { return score(NaiveGather(weights.n_columns, rows.n_cells())); });
    else
        parallel_tiles(rows.n_rows, 512, threads, [&] { return score(Gather(weights.n_columns)); });
}

#define ISOKERN_INSTANTIATE(Cell)                                                                                      \
    template void learn_primal(const CellRows<Cell> &, const AnyTarget &, const double *, const AnyLoss &,             \
                               const Step &, bool, Weights, Clock &, double *);                                        \
    template void score_primal(const CellRows<Cell> &, WeightView, const Clock &, bool, double *, int);
ISOKERN_INSTANTIATE(std::uint8_t)
ISOKERN_INSTANTIATE(std::uint16_t)
ISOKERN_INSTANTIATE(std::uint32_t)

} // namespace isokern
