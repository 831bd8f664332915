// Scores and steps on support vectors. In: cells, support vectors, targets. Out: scores, new support vectors.
//
// Scoring is brute force: the number of cells that a row shares with each support vector (match.hpp) times the
// coefficients. Lazy scaling and averaging as in primal.cpp, with support vectors in place of cells.
#include "online/dual.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/threads.hpp"
#include "online/match.hpp"

namespace isokern {
namespace {

//  sums[k] = sum_j #{i : cells[j, i] = row[i]} table[j, k]      in: row, table (n x n_columns)      out: sums
template <class Support> class KernelGather {
  public:
    KernelGather(const Support &support, std::int64_t t) : support_(support), t_(t) {}

    template <class Cell> void operator()(const Cell *row, const double *table, double *sums) const {
        const std::int64_t n_columns = support_.weights.n_columns;
        std::fill_n(sums, n_columns, 0.0);
        for (std::int64_t j = 0; j < support_.n; ++j) {
            const auto shared = static_cast<double>(count_equal(support_.cells + j * t_, row, t_));
            for (std::int64_t k = 0; k < n_columns; ++k)
                sums[k] += shared * table[j * n_columns + k];
        }
    }

  private:
    const Support &support_; // a reference, because support vectors are added while learning
    std::int64_t t_;
};

// The Model of learn_rows (online_loop.hpp): a coefficient for each support vector and column.
template <class Cell> class Dual {
  public:
    Dual(const CellRows<Cell> &rows, SupportVectors<Cell> &support, Clock &clock)
        : rows_(rows), support_(support), clock_(clock),
          scorer_(support.weights.view(), rows.t, KernelGather(support, rows.t)) {}

    void read(std::int64_t r) {
        row_ = rows_.row(r);
        is_added_ = false;
    }
    bool averages() const { return support_.weights.sums != nullptr; }
    void predict(double *scores) { scorer_.predict(row_, clock_, scores); }
    void last(double *scores) { scorer_.last(row_, clock_, scores); }

    void step(std::int64_t k, double g, double rate, double) {
        if (!is_added_)
            add_row();
        const std::int64_t at = (support_.n - 1) * support_.weights.n_columns + k;
        support_.weights.values[at] = -rate * g / clock_.scale;
        if (support_.weights.sums)
            support_.weights.sums[at] = support_.weights.values[at] * clock_.scale_sum;
    }

    double move(std::int64_t, double g, double rate) const { return rate * std::abs(g); } // K(x, x) = 1

    void end_row() {
        if (clock_.scale < kSmallScale)
            restore_scale(support_.weights, support_.n, clock_);
    }

  private:
    // Appends the current row to the support vectors, with coefficients 0.
    void add_row() {
        const std::int64_t n_columns = support_.weights.n_columns;
        std::copy_n(row_, rows_.t, support_.cells + support_.n * rows_.t);
        std::fill_n(support_.weights.values + support_.n * n_columns, n_columns, 0.0);
        if (support_.weights.sums)
            std::fill_n(support_.weights.sums + support_.n * n_columns, n_columns, 0.0);
        ++support_.n;
        is_added_ = true;
    }

    const CellRows<Cell> &rows_;
    SupportVectors<Cell> &support_;
    Clock &clock_;
    Scorer<KernelGather<SupportVectors<Cell>>> scorer_;
    const Cell *row_ = nullptr;
    bool is_added_ = false;
};

} // namespace

template <class Cell>
void learn_dual(const CellRows<Cell> &rows, const AnyTarget &targets, const double *row_weights, const AnyLoss &loss,
                const Step &step, SupportVectors<Cell> &support, Clock &clock, double *scores) {
    Dual model(rows, support, clock);
    std::visit(
        [&](const auto &target, const auto &any_loss) {
            learn_rows(model, rows.n_rows, support.weights.n_columns, target, row_weights, any_loss, step, clock,
                       scores);
        },
        targets, loss);
}

template <class Cell>
void score_dual(const CellRows<Cell> &rows, const SupportView<Cell> &support, const Clock &clock, double *scores,
                int threads) {
    parallel_tiles(rows.n_rows, 16, threads, [&] {
        return [&, scorer = Scorer(support.weights, rows.t, KernelGather(support, rows.t))](std::int64_t begin,
                                                                                            std::int64_t end) mutable {
            for (std::int64_t r = begin; r < end; ++r)
                scorer.predict(rows.row(r), clock, scores + r * support.weights.n_columns);
        };
    });
}

#define ISOKERN_INSTANTIATE(Cell)                                                                                      \
    template void learn_dual(const CellRows<Cell> &, const AnyTarget &, const double *, const AnyLoss &, const Step &, \
                             SupportVectors<Cell> &, Clock &, double *);                                               \
    template void score_dual(const CellRows<Cell> &, const SupportView<Cell> &, const Clock &, double *, int);
ISOKERN_INSTANTIATE(std::uint8_t)
ISOKERN_INSTANTIATE(std::uint16_t)
ISOKERN_INSTANTIATE(std::uint32_t)

} // namespace isokern
