// Online gradient descent with dense linear weights, and projection of rows.
//
// In: features, targets; rows and a matrix. Out: weights; the product rows * matrix. Averaging sums the weights after
// each update of a column, so the mean is over updates, not over rounds.
#include "rivals/linear.hpp"

#include <algorithm>
#include <cmath>

#include "common/threads.hpp"
#include "online/online_loop.hpp"

namespace isokern {
namespace {

// The Model of learn_rows (online_loop.hpp).
class Linear {
  public:
    Linear(const DenseRows<double> &features, const LinearWeights &weights) : features_(features), weights_(weights) {}

    void read(std::int64_t r) { row_ = features_.row(r); }

    //  scores[k] = sum_j z_j w[j, k]
    void last(double *scores) const {
        std::fill_n(scores, weights_.n_columns, 0.0);
        for (std::int64_t j = 0; j < features_.n_columns; ++j)
            for (std::int64_t k = 0; k < weights_.n_columns; ++k)
                scores[k] += row_[j] * weights_.values[j * weights_.n_columns + k];
    }

    bool averages() const { return weights_.sums; }

    //  scores[k] = sum_j z_j sums[j, k] / n_updates[k], or that of w before the first update
    void predict(double *scores) const {
        std::fill_n(scores, weights_.n_columns, 0.0);
        for (std::int64_t j = 0; j < features_.n_columns; ++j)
            for (std::int64_t k = 0; k < weights_.n_columns; ++k) {
                const std::int64_t at = j * weights_.n_columns + k, n = weights_.n_updates[k];
                scores[k] += row_[j] * (n > 0 ? weights_.sums[at] / static_cast<double>(n) : weights_.values[at]);
            }
    }

    //  w[j, k] -= rate g z_j for all j;   sums[j, k] += w[j, k]
    void step(std::int64_t k, double g, double rate, double) {
        ++weights_.n_updates[k];
        for (std::int64_t j = 0; j < features_.n_columns; ++j) {
            const std::int64_t at = j * weights_.n_columns + k;
            weights_.values[at] -= rate * g * row_[j];
            if (weights_.sums)
                weights_.sums[at] += weights_.values[at];
        }
    }

    double move(std::int64_t, double g, double rate) const {
        double norm = 0.0;
        for (std::int64_t j = 0; j < features_.n_columns; ++j)
            norm += row_[j] * row_[j];
        return rate * std::abs(g) * norm;
    }

    void end_row() {}

  private:
    const DenseRows<double> &features_;
    LinearWeights weights_;
    const double *row_ = nullptr;
};

} // namespace

void learn_linear(const DenseRows<double> &features, const AnyTarget &targets, const double *row_weights,
                  const AnyLoss &loss, const Step &step, const LinearWeights &weights, Clock &clock, double *scores) {
    Linear model(features, weights);
    std::visit(
        [&](const auto &target, const auto &any_loss) {
            learn_rows(model, features.n_rows, weights.n_columns, target, row_weights, any_loss, step, clock, scores);
        },
        targets, loss);
}

template <class Rows>
void project(const Rows &rows, const double *matrix, std::int64_t n_features, double *projected, int threads) {
    parallel_tiles(rows.n_rows, 64, threads, [&] {
        return [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t r = begin; r < end; ++r) {
                double *out = projected + r * n_features;
                std::fill_n(out, n_features, 0.0);
                for_each_nonzero(rows, r, [&](std::int32_t column, double value) {
                    const double *from = matrix + column * n_features;
                    for (std::int64_t m = 0; m < n_features; ++m)
                        out[m] += value * from[m];
                });
            }
        };
    });
}

template void project(const DenseRows<float> &, const double *, std::int64_t, double *, int);
template void project(const DenseRows<double> &, const double *, std::int64_t, double *, int);
template void project(const CsrRows<float> &, const double *, std::int64_t, double *, int);
template void project(const CsrRows<double> &, const double *, std::int64_t, double *, int);

} // namespace isokern
