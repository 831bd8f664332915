// AdaRaker (Shen, Chen and Giannakis, 2019): online multi-kernel learning with experts on dyadic intervals of time.
//
// In: projections of rows onto random directions, in order, and targets. Out: scores, changed state. Each expert
// combines several Gaussian kernels, given by random Fourier features, with weights that are learned by multiplicative
// updates (Hedge). Experts of short intervals adapt faster; the ensemble learns the weights of experts in the same way.
#pragma once

#include <cstdint>

#include "common/rows.hpp"

namespace isokern {

// Expert e restarts every 2^e rounds, at the multiples of 2^e. Kernel p, of bandwidth sigma_p, has the features
//     z_p = [sin(sigma_p u), cos(sigma_p u)] / sqrt(D)      of a row's D projections u.
struct AdaRakerState {
    const double *bandwidths; // n_kernels
    std::int64_t n_kernels, n_projections, n_experts, n_columns;
    float *theta;           // n_columns x n_experts x n_kernels x 2 n_projections
    double *weights;        // n_columns x n_experts x n_kernels: weights of the kernels within an expert
    double *confidences;    // n_columns x n_experts: weights h of the experts
    double rate, shrinkage; // eta_0, lambda
    bool restarts_cold;     // whether a restart forgets theta and the weights of kernels, or keeps them

    // min(1/2, eta_0 / sqrt(2^e)), the learning rate of expert e.
    double rate_of(std::int64_t expert) const;
};

// Scores of all experts that have started by `rounds`.      in: projections (n x D)      out: scores, n x n_columns
void score_adaraker(const DenseRows<double> &projections, const AdaRakerState &state, std::int64_t rounds,
                    double *scores, int threads);

// One pass over rows in order, with logistic loss.
//   in: target, by row the column of its class or -1; row_weights (or null); rounds before the first row
//   changed: state, which must have room for the experts of all rounds
//   out: scores of each row before it is learned, n x n_columns, or null
void learn_adaraker(const DenseRows<double> &projections, const std::int32_t *target, const double *row_weights,
                    const AdaRakerState &state, std::int64_t rounds, double *scores);

} // namespace isokern
