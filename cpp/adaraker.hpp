// AdaRaker (Shen, Chen and Giannakis, 2019): experts on dyadic intervals of time, each a weighted set of kernels given
// by random features.
#pragma once

#include <cstdint>

#include "rows.hpp"

namespace isokern {

// Expert e lives on intervals of 2^e rounds, beginning at its multiples. Kernel p of bandwidth sigma_p has the features
// z_p = [sin(sigma_p u), cos(sigma_p u)] / sqrt(D) of a row's D projections u.
struct AdaRakerState {
    const double *bandwidths; // n_kernels
    std::int64_t n_kernels, n_projections, n_experts, n_columns;
    float *theta;           // n_columns x n_experts x n_kernels x 2 n_projections
    double *weights;        // n_columns x n_experts x n_kernels: of the kernels within an expert
    double *confidences;    // n_columns x n_experts: of the experts, h
    double rate, shrinkage; // eta_0, lambda
    bool restarts_cold;

    double rate_of(std::int64_t expert) const;
};

// Scores of the experts that have begun by `rounds`.      in: projections (n x D)      out: scores, n x n_columns
void score_adaraker(const DenseRows<double> &projections, const AdaRakerState &state, std::int64_t rounds,
                    double *scores, int threads);

// One pass over rows in order, logistic loss; target[r] is the column of the row's class, -1 for none.
//   changed: state; needs room for the experts of all rounds
void learn_adaraker(const DenseRows<double> &projections, const std::int32_t *target, const double *row_weights,
                    const AdaRakerState &state, std::int64_t rounds);

} // namespace isokern
