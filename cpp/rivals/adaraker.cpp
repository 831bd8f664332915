// The ensemble of AdaRaker: scores, multiplicative weight updates (Hedge) and gradient steps.
//
// In: projections of rows, targets. Out: scores, changed state. Per row and column: experts whose interval begins are
// reset; the ensemble is scored; confidences and kernel weights are multiplied by exponentials of the losses; theta
// takes a gradient step of the logistic loss with ridge penalty. All started experts learn from each row.
#include "rivals/adaraker.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/threads.hpp"

namespace isokern {
namespace {

//  ln(1 + exp(-margin)), written so that exp cannot overflow
double logistic_loss(double margin) {
    return margin > 0.0 ? std::log1p(std::exp(-margin)) : std::log1p(std::exp(margin)) - margin;
}

// The number of experts that have started by a round, counted from 1: those with 2^e <= round.
std::int64_t n_living(std::int64_t round, std::int64_t n_experts) {
    std::int64_t n = 0;
    while (n < n_experts && (std::int64_t{1} << n) <= round)
        ++n;
    return n;
}

//  values[p] = [sin(sigma_p u), cos(sigma_p u)] / sqrt(D): the random Fourier features of a row, for all kernels p
class Features {
  public:
    explicit Features(const AdaRakerState &state)
        : state_(state), values_(static_cast<std::size_t>(2 * state.n_kernels * state.n_projections)) {}

    const float *compute(const double *projections) {
        const std::int64_t size = state_.n_projections;
        const double scale = 1.0 / std::sqrt(static_cast<double>(size));
        for (std::int64_t p = 0; p < state_.n_kernels; ++p)
            for (std::int64_t m = 0; m < size; ++m) {
                const double angle = state_.bandwidths[p] * projections[m];
                values_[2 * p * size + m] = static_cast<float>(scale * std::sin(angle));
                values_[(2 * p + 1) * size + m] = static_cast<float>(scale * std::cos(angle));
            }
        return values_.data();
    }

  private:
    const AdaRakerState &state_;
    std::vector<float> values_;
};

// The experts of one column.
class Experts {
  public:
    Experts(const AdaRakerState &state, std::int64_t column)
        : state_(state), size_(2 * state.n_projections), theta_(state.theta + column * state.n_experts * stride()),
          weights_(state.weights + column * state.n_experts * state.n_kernels),
          confidences_(state.confidences + column * state.n_experts),
          by_kernel_(static_cast<std::size_t>(state.n_experts * state.n_kernels)),
          by_expert_(static_cast<std::size_t>(state.n_experts)) {}

    //  F = sum_e h_e F_e / sum_e h_e,   F_e = sum_p w_ep f_ep,   f_ep = theta_ep . z_p
    // Keeps all F_e and f_ep for learn().
    double score(const float *features, std::int64_t n_experts) {
        double sum = 0.0, mass = 0.0;
        for (std::int64_t e = 0; e < n_experts; ++e) {
            by_expert_[e] = score_expert(features, e);
            sum += confidences_[e] * by_expert_[e];
            mass += confidences_[e];
        }
        return mass > 0.0 ? sum / mass : 0.0;
    }

    // Resets the experts whose interval begins with this round.
    void begin(std::int64_t round, std::int64_t n_experts) {
        for (std::int64_t e = 0; e < n_experts; ++e) {
            if (round % (std::int64_t{1} << e) != 0)
                continue;
            confidences_[e] = state_.rate_of(e);
            const bool is_first = round == std::int64_t{1} << e;
            if (is_first || state_.restarts_cold) {
                std::fill_n(theta_ + e * stride(), stride(), 0.0f);
                std::fill_n(weights_ + e * state_.n_kernels, state_.n_kernels,
                            1.0 / static_cast<double>(state_.n_kernels));
            }
        }
    }

    //  h_e <- h_e exp(-eta (loss(F_e) - loss(F))),   w_ep by reweigh,   theta_ep by descend
    // Call score() first. c is the target, factor the row's weight.
    void learn(const float *features, std::int64_t n_experts, double score, double c, double factor) {
        const double loss = logistic_loss(c * score);
        for (std::int64_t e = 0; e < n_experts; ++e) {
            const double rate = std::min(1.0, state_.rate_of(e) * factor); // limits the step for large row weights
            const double change = std::exp(-rate * (logistic_loss(c * by_expert_[e]) - loss));
            confidences_[e] = std::clamp(confidences_[e] * change, 1e-200, 1e200);
            reweigh(e, c, rate);
            for (std::int64_t p = 0; p < state_.n_kernels; ++p)
                descend(features, e, p, c, rate);
        }
    }

  private:
    std::int64_t stride() const { return state_.n_kernels * size_; }

    //  F_e = sum_p w_ep theta_ep . z_p, with eight partial sums that the compiler vectorises
    double score_expert(const float *features, std::int64_t e) {
        double sum = 0.0;
        for (std::int64_t p = 0; p < state_.n_kernels; ++p) {
            const float *theta = theta_ + e * stride() + p * size_, *z = features + p * size_;
            float part[8] = {};
            std::int64_t m = 0;
            for (; m + 8 <= size_; m += 8)
                for (int l = 0; l < 8; ++l)
                    part[l] += theta[m + l] * z[m + l];
            for (; m < size_; ++m)
                part[0] += theta[m] * z[m];
            const double f = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
            by_kernel_[e * state_.n_kernels + p] = f;
            sum += weights_[e * state_.n_kernels + p] * f;
        }
        return sum;
    }

    //  w_ep proportional to w_ep exp(-eta loss(f_ep)), with sum_p w_ep = 1
    void reweigh(std::int64_t e, double c, double rate) {
        double *weights = weights_ + e * state_.n_kernels;
        double mass = 0.0;
        for (std::int64_t p = 0; p < state_.n_kernels; ++p) {
            weights[p] = std::max(
                weights[p] * std::exp(-rate * logistic_loss(c * by_kernel_[e * state_.n_kernels + p])), 1e-200);
            mass += weights[p];
        }
        for (std::int64_t p = 0; p < state_.n_kernels; ++p)
            weights[p] /= mass;
    }

    //  theta_ep <- theta_ep - eta d/dtheta (loss(f_ep) + lambda |theta_ep|^2)
    void descend(const float *features, std::int64_t e, std::int64_t p, double c, double rate) {
        const double f = by_kernel_[e * state_.n_kernels + p];
        const auto step = static_cast<float>(rate * c / (1.0 + std::exp(c * f)));
        const auto keep = static_cast<float>(1.0 - rate * std::min(1.0, 2.0 * state_.shrinkage));
        float *theta = theta_ + e * stride() + p * size_;
        const float *z = features + p * size_;
        for (std::int64_t m = 0; m < size_; ++m)
            theta[m] = keep * theta[m] + step * z[m];
    }

    const AdaRakerState &state_;
    std::int64_t size_;
    float *theta_;
    double *weights_, *confidences_;
    std::vector<double> by_kernel_, by_expert_;
};

} // namespace

double AdaRakerState::rate_of(std::int64_t expert) const {
    return std::min(0.5, rate / std::sqrt(static_cast<double>(std::int64_t{1} << expert)));
}

void score_adaraker(const DenseRows<double> &projections, const AdaRakerState &state, std::int64_t rounds,
                    double *scores, int threads) {
    const std::int64_t living = n_living(rounds, state.n_experts);
    parallel_tiles(projections.n_rows, 64, threads, [&] {
        return [&, features = Features(state)](std::int64_t begin, std::int64_t end) mutable {
            for (std::int64_t k = 0; k < state.n_columns; ++k) {
                Experts experts(state, k);
                for (std::int64_t r = begin; r < end; ++r)
                    scores[r * state.n_columns + k] = experts.score(features.compute(projections.row(r)), living);
            }
        };
    });
}

void learn_adaraker(const DenseRows<double> &projections, const std::int32_t *target, const double *row_weights,
                    const AdaRakerState &state, std::int64_t rounds, double *scores) {
    Features features(state);
    std::vector<Experts> columns;
    for (std::int64_t k = 0; k < state.n_columns; ++k)
        columns.emplace_back(state, k);
    for (std::int64_t r = 0; r < projections.n_rows; ++r) {
        const std::int64_t round = rounds + r + 1, living = n_living(round, state.n_experts);
        const float *z = features.compute(projections.row(r));
        for (std::int64_t k = 0; k < state.n_columns; ++k) {
            if (scores) // of the experts before any of them restarts
                scores[r * state.n_columns + k] = columns[k].score(z, n_living(round - 1, state.n_experts));
            columns[k].begin(round, living);
            const double score = columns[k].score(z, living);
            columns[k].learn(z, living, score, target[r] == k ? 1.0 : -1.0, row_weights ? row_weights[r] : 1.0);
        }
    }
}

} // namespace isokern
