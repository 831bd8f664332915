// Kernel online gradient descent (Kivinen, Smola and Williamson, 2004) with a classic kernel, in the dual.
//
//  f_k(x) = sum_j alpha[j, k] K(x_j, x)      over all support vectors x_j, for each score k
// In: rows and targets, one pass in order; then rows. Out: scores, or their mean over all rounds (averaged model). Each
// row with a loss becomes a support vector, so the cost of a round grows with their number. Shrinkage and AdaGrad are
// not supported. Support vectors are only added, never changed: the first n of them are the model after an earlier
// round, and several threads may score it while another learns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "online/online_loop.hpp"
#include "rivals/kernel_points.hpp"

namespace isokern {

class KernelMachine {
  public:
    KernelMachine(const KernelSpec &spec, std::int64_t n_columns, std::int64_t n_scores)
        : points_(spec, n_columns), alpha_(static_cast<std::size_t>(n_scores)) {}

    ModelLock &lock() const { return lock_; } // to be held by those who call the methods below

    const KernelPoints &points() const { return points_; }
    std::int64_t n_scores() const { return static_cast<std::int64_t>(alpha_.size()); }
    std::span<const double> alpha(std::int64_t k) const {
        return {alpha_[k].data(), static_cast<std::size_t>(points_.size())};
    }

    // By support vector: the number of rounds before it was added.
    const std::vector<std::int64_t> &births() const { return births_; }

    // Adds row r of rows as a support vector, with a coefficient for each score.
    template <class Rows> void add(const Rows &rows, std::int64_t r, const double *alpha, std::int64_t birth);

    // One pass over rows in order: a row with g = dL/df_k != 0 for some k is added with alpha[k] = -eta g.
    //   in: rows, targets, row_weights (or null)      changed: this, clock
    //   out: scores of each row before its step, or null; with `averages`, those of the mean over the rounds so far
    template <class Rows>
    void learn(const Rows &rows, const AnyTarget &targets, const double *row_weights, const AnyLoss &loss,
               const Step &step, Clock &clock, int threads, bool averages, double *scores);

    // scores[r, k] = f_k(row r) over the first n_points support vectors, if averaged_rounds is 0; else its mean over
    // that many rounds, where a support vector counts from the round of its birth on.
    template <class Rows>
    void score(const Rows &rows, std::int64_t n_points, std::int64_t averaged_rounds, double *scores,
               int threads) const;

  private:
    template <class Rows> class Learner;
    using Alpha = std::vector<std::vector<double>>; // [score][support vector], padded with 0 to a multiple of kLane
    using Sums = std::vector<double>; // [score][kLane] partial sums; lane l adds up points l, l + kLane, ...

    void add_row(const KernelRow &row, std::int64_t birth);
    void evaluate(const KernelRow &row, std::int64_t first, std::int64_t last, double *values) const;
    template <class Use> void evaluate_all(std::span<const KernelRow> rows, std::int64_t last, const Use &use) const;
    void add_up(const double *values, std::int64_t first, std::int64_t last, std::int64_t averaged_rounds,
                Sums &sums) const;
    template <class Coefficient>
    void add_up_with(const Coefficient &coefficient, const double *values, std::int64_t first, std::int64_t last,
                     Sums &sums) const;
    void totals(const Sums &sums, double *scores) const;

    KernelPoints points_;
    Alpha alpha_;
    std::vector<std::int64_t> births_;
    mutable ModelLock lock_;
};

} // namespace isokern
