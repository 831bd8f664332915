// The loop of online gradient descent (Zinkevich, 2003), written once for every way to store the weights.
//
// In: a model, rows in order with targets and weights, a loss, a step size. Out: the changed model, and optionally the
// score of each row before it was learned (test-then-train). Weights are scaled and averaged lazily (Clock in
// online.hpp): a round costs only the entries that the row touches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "online/online.hpp"

namespace isokern {

// Weights for scoring: a table with a row for each cell (primal) or support vector (dual) and a column for each score.
struct WeightView {
    const double *values;
    const double *sums;
    std::int64_t n_columns;
};

struct Weights {
    double *values;  // v, with w = scale v
    double *sums;    // a of Clock, or null if there is no averaging
    double *squares; // sums of squared gradients for AdaGrad, or null
    std::int64_t n_columns;

    WeightView view() const { return {values, sums, n_columns}; }
};

constexpr double kSmallScale = 1e-6; // below it, scale is reset before it underflows

//  a <- a - scale_sum v,   v <- scale v,   scale_sum <- 0,   scale <- 1
// Keeps w = scale v and the sum of weights scale_sum v - a. scale_sum starts anew too, so that the latter does not
// become a difference of large numbers.
inline void restore_scale(Weights weights, std::int64_t n, Clock &clock) {
    for (std::int64_t k = 0; k < n * weights.n_columns; ++k) {
        if (weights.sums)
            weights.sums[k] -= clock.scale_sum * weights.values[k];
        weights.values[k] *= clock.scale;
    }
    clock.scale_sum = 0.0;
    clock.scale = 1.0;
}

// Scores of the last weights, w = scale v, or of their mean over the rounds, (scale_sum v - a) / rounds. Gather
// computes the unscaled sums of a row over a table such as v or a.
template <class Gather> class Scorer {
  public:
    Scorer(WeightView weights, std::int64_t t, Gather gather)
        : weights_(weights), t_(static_cast<double>(t)), gather_(std::move(gather)),
          missed_(static_cast<std::size_t>(weights.n_columns)) {}

    //  scores[k] = (1/t) scale gather(v)[k]
    template <class Row> void last(const Row &row, const Clock &clock, double *scores) {
        gather_(row, weights_.values, scores);
        scores[0] = scores[0] * clock.scale / t_; // a division: t / t is exactly 1, but t (1 / t) need not be
        for (std::int64_t k = 1; k < weights_.n_columns; ++k)
            scores[k] = scores[k] * clock.scale / t_;
    }

    //  scores[k] = (1/t) (scale_sum gather(v)[k] - gather(a)[k]) / rounds
    // The prediction: of averaged weights if sums are kept, else of the last ones.
    template <class Row> void predict(const Row &row, const Clock &clock, double *scores) {
        if (!weights_.sums)
            return last(row, clock, scores);
        gather_(row, weights_.values, scores);
        gather_(row, weights_.sums, missed_.data());
        const double rounds = std::max(1.0, static_cast<double>(clock.rounds));
        for (std::int64_t k = 0; k < weights_.n_columns; ++k)
            scores[k] = (clock.scale_sum * scores[k] - missed_[k]) / (rounds * t_);
    }

  private:
    WeightView weights_;
    double t_;
    Gather gather_;
    std::vector<double> missed_;
};

// The weight with which a row takes a step, so that one row cannot ruin a model.
// A weighted step moves the row's score no further than to the minimum of its loss, or than an unweighted step,
// whichever is further: about as far as if the row came several times. Steps of quadratic losses overshoot the minimum
// by no more than the distance before them, because else errors would grow without bound.
//   in: move, the change of the score by an unweighted step; distance of the score to the minimum
template <class Loss> double limited(double weight, double move, double distance) {
    if (weight > 1.0 && weight * move > distance)
        weight = std::max(1.0, distance / move);
    if (Loss::is_quadratic && weight * move > 2.0 * distance)
        weight = 2.0 * distance / move;
    return weight;
}

// The same for AdaGrad, whose steps are never longer than the rate. A large weight would only end all further steps of
// the row's cells, by their sums of squares, so it is limited to ten times the reach of a step. A row that is at the
// minimum, which ends no step of logistic loss, takes an unweighted one: else each pass would multiply those sums.
inline double limited_adagrad(double weight, double move, double distance, double rate) {
    return distance > 0.0 ? std::min(weight, 10.0 * std::max(distance, rate) / move) : 1.0;
}

// One pass over rows in order. In each round, for each column k,
//     g = weight dL/df at f = f_k(x) / unit,   w <- (1 - eta lambda) w - eta unit g phi(x)
// A Model has: read(r), make row r the current one; last(scores), score it by the last weights; averages(), whether
// predictions differ from that; predict(scores); step(k, g, rate, distance), move the weights of column k, whose score
// is so far from the minimum of its loss; move(k, g, rate), how far that step moves the score; end_row().
//   in: target, row_weights (or null), loss, step      changed: model, clock      out: scores before each step, or null
template <class Model, class Target, class Loss>
void learn_rows(Model &model, std::int64_t n_rows, std::int64_t n_columns, const Target &target,
                const double *row_weights, const Loss &loss, const Step &step, Clock &clock, double *scores) {
    std::vector<double> all(static_cast<std::size_t>(n_columns));
    double *current = all.data();
    for (std::int64_t r = 0; r < n_rows; ++r) {
        model.read(r);
        model.last(current);
        if (scores && model.averages())
            model.predict(scores + r * n_columns);
        else if (scores)
            std::copy_n(current, n_columns, scores + r * n_columns);
        const double rate = step.rate_in(clock.rounds + 1), factor = row_weights ? row_weights[r] : 1.0;
        if (step.shrinkage > 0.0)
            clock.scale *= 1.0 - rate * step.shrinkage;
        bool is_support = false;
        for (std::int64_t k = 0; k < n_columns; ++k) {
            const auto &loss_k = loss_of(loss, k);
            const double unit = target.unit(r, k), f = current[k] / unit, y = target(r, k);
            double g = loss_k.derivative(f, y);
            if (g == 0.0 || factor == 0.0)
                continue;
            const double distance = loss_k.distance(f, y);
            double weight = factor;
            if (step.schedule == Schedule::adagrad && factor > 1.0)
                weight = limited_adagrad(factor, model.move(k, g, rate), distance, rate);
            else if (step.schedule != Schedule::adagrad && (Loss::is_quadratic || factor > 1.0))
                weight = limited<Loss>(factor, model.move(k, g, rate), distance);
            g *= weight;
            is_support |= r >= step.counted_from[k];
            model.step(k, g, rate * unit, distance * unit);
        }
        clock.n_support += is_support;
        clock.scale_sum += clock.scale;
        ++clock.rounds;
        clock.n_rows += step.is_new;
        model.end_row();
    }
}

} // namespace isokern
