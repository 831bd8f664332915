// Dual online gradient descent with a classic kernel: f_k(x) = sum_j alpha[j, k] K(x_j, x) over all support vectors.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernel_points.hpp"
#include "online_loop.hpp"

namespace isokern {

class KernelMachine {
  public:
    KernelMachine(const KernelSpec &spec, std::int64_t n_columns, std::int64_t n_scores)
        : points_(spec, n_columns), alpha_(static_cast<std::size_t>(n_scores)) {}

    const KernelPoints &points() const { return points_; }
    std::int64_t n_scores() const { return static_cast<std::int64_t>(alpha_.size()); }
    std::span<const double> alpha(std::int64_t k) const {
        return {alpha_[k].data(), static_cast<std::size_t>(points_.size())};
    }

    // How many rounds had passed when each support vector was added.
    const std::vector<std::int64_t> &births() const { return births_; }

    // Adds row r of rows with its coefficients, one for each score.
    template <class Rows> void add(const Rows &rows, std::int64_t r, const double *alpha, std::int64_t birth);

    // One pass over rows in order: a row of loss derivative g != 0 is added with alpha = -eta g.
    //   in: rows, targets, row_weights (or null)      changed: this, clock
    template <class Rows>
    void learn(const Rows &rows, const AnyTarget &targets, const double *row_weights, const AnyLoss &loss,
               const Step &step, Clock &clock, int threads);

    // scores[r, k] = f_k(row r), or its mean over so many rounds, to which alpha_j counts from its birth on; 0: the
    // last f.
    template <class Rows> void score(const Rows &rows, std::int64_t averaged_rounds, double *scores, int threads) const;

  private:
    template <class Rows> class Learner;
    using Alpha = std::vector<std::vector<double>>; // by score, padded with 0 to a multiple of kLane
    using Sums = std::vector<double>; // by score, kLane partial sums: that of lane l adds up points l, l + kLane, ...

    void add_row(const KernelRow &row, std::int64_t birth);
    Alpha averaged(std::int64_t rounds) const;
    void accumulate(std::span<const KernelRow> rows, const Alpha &alpha, std::int64_t first, std::int64_t last,
                    std::span<Sums> sums) const;
    void accumulate_row(const KernelRow &row, const Alpha &alpha, std::int64_t first, std::int64_t last, double *values,
                        Sums &sums) const;
    double total(const Sums &sums, std::int64_t k) const;

    KernelPoints points_;
    Alpha alpha_;
    std::vector<std::int64_t> births_;
};

} // namespace isokern
