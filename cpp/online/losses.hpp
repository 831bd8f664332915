// Loss functions for online gradient descent, each given by its derivative dL/df and the distance of f to its minimum.
//
// In: a score f, and the target: c = +1 or -1 for classes, a number y for regression. Out: the derivative; how far f is
// from the nearest score with the least loss; whether the derivative grows without bound, so that steps may diverge.
#pragma once

#include <algorithm>
#include <cmath>

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
    double derivative(double f, double y) const { return f - y; }
    double distance(double f, double y) const { return std::abs(f - y); }
    static constexpr bool is_quadratic = true;
};

struct Huber { // (f - y)^2 / 2, linear beyond epsilon
    double epsilon;
    double derivative(double f, double y) const { return std::fmin(std::fmax(f - y, -epsilon), epsilon); }
    double distance(double f, double y) const { return std::abs(f - y); }
    static constexpr bool is_quadratic = false;
};

struct EpsilonInsensitive { // max(0, |f - y| - epsilon)
    double epsilon;
    double derivative(double f, double y) const { return std::abs(f - y) > epsilon ? std::copysign(1.0, f - y) : 0.0; }
    double distance(double f, double y) const { return std::abs(f - y) - epsilon; }
    static constexpr bool is_quadratic = false;
};

} // namespace isokern
