// Loss functions for online gradient descent, each given by its derivative dL/df and the distance of f to its minimum.
//
// In: a score f, and the target: c = +1 or -1 for classes, a number y for regression. Out: the derivative; how far f is
// from the nearest score with the least loss; whether the derivative grows without bound, so that steps may diverge;
// for regression, the error by which models are compared: the loss, or the whole square.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace isokern {

struct Hinge { // max(0, 1 - c f)
    // A score exactly on the margin has zero gradient, so it changes nothing.
    double derivative(double f, double c) const { return c * f < 1.0 ? -c : 0.0; }
    double distance(double f, double c) const { return 1.0 - c * f; }
    static constexpr bool is_quadratic = false;
};

struct SquaredHinge { // max(0, 1 - c f)^2
    double derivative(double f, double c) const { return c * f < 1.0 ? -2.0 * c * (1.0 - c * f) : 0.0; }
    double distance(double f, double c) const { return 1.0 - c * f; }
    static constexpr bool is_quadratic = true;
};

struct Logistic { // ln(1 + exp(-c f))
    double derivative(double f, double c) const { return -c / (1.0 + std::exp(c * f)); }
    // The minimum is infinitely far away, but from a margin of 5 on the loss is below 0.01.
    double distance(double f, double c) const { return std::max(0.0, 5.0 - c * f); }
    static constexpr bool is_quadratic = false;
};

struct Squared { // (f - y)^2 / 2
    double error(double f, double y) const { return (f - y) * (f - y); }
    double derivative(double f, double y) const { return f - y; }
    double distance(double f, double y) const { return std::abs(f - y); }
    static constexpr bool is_quadratic = true;
};

struct Huber { // (f - y)^2 / 2, linear beyond epsilon
    double epsilon;
    double error(double f, double y) const {
        const double size = std::abs(f - y);
        return size > epsilon ? epsilon * (size - 0.5 * epsilon) : 0.5 * size * size;
    }
    double derivative(double f, double y) const { return std::fmin(std::fmax(f - y, -epsilon), epsilon); }
    double distance(double f, double y) const { return std::abs(f - y); }
    static constexpr bool is_quadratic = false;
};

struct EpsilonInsensitive { // max(0, |f - y| - epsilon)
    double epsilon;
    double error(double f, double y) const { return std::fmax(std::abs(f - y) - epsilon, 0.0); }
    double derivative(double f, double y) const { return std::abs(f - y) > epsilon ? std::copysign(1.0, f - y) : 0.0; }
    double distance(double f, double y) const { return std::abs(f - y) - epsilon; }
    static constexpr bool is_quadratic = false;
};

struct Pinball { // quantile (y - f) above the quantile, (1 - quantile) (f - y) below: least in the mean at the quantile
    double quantile;
    double error(double f, double y) const { return y > f ? quantile * (y - f) : (1.0 - quantile) * (f - y); }
    double derivative(double f, double y) const { return y > f ? -quantile : y < f ? 1.0 - quantile : 0.0; }
    double distance(double f, double y) const { return std::abs(f - y); }
    static constexpr bool is_quadratic = false;
};

struct Quantiles { // the pinball loss of another quantile in each column
    std::vector<double> quantiles;
    static constexpr bool is_quadratic = false;
};

// The loss of the score in column k, and the losses of the scores from column k on.
template <class Loss> const Loss &loss_of(const Loss &loss, std::int64_t) { return loss; }
inline Pinball loss_of(const Quantiles &loss, std::int64_t k) { return {loss.quantiles[static_cast<std::size_t>(k)]}; }
template <class Loss> const Loss &losses_from(const Loss &loss, std::int64_t) { return loss; }
inline Quantiles losses_from(const Quantiles &loss, std::int64_t k) {
    return {{loss.quantiles.begin() + k, loss.quantiles.end()}};
}

} // namespace isokern
