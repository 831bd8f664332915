// Loss functions for online gradient descent, each given by its derivative dL/df.
//
// In: a score f, and the target: c = +1 or -1 for classes, a number y for regression. Out: the derivative.
#pragma once

#include <cmath>

namespace isokern {

struct Hinge { // max(0, 1 - c f)
    // A score exactly on the margin has zero gradient, so it changes nothing.
    double derivative(double f, double c) const { return c * f < 1.0 ? -c : 0.0; }
};

struct SquaredHinge { // max(0, 1 - c f)^2
    double derivative(double f, double c) const { return c * f < 1.0 ? -2.0 * c * (1.0 - c * f) : 0.0; }
};

struct Logistic { // ln(1 + exp(-c f))
    double derivative(double f, double c) const { return -c / (1.0 + std::exp(c * f)); }
};

struct Squared { // (f - y)^2 / 2
    double derivative(double f, double y) const { return f - y; }
};

struct Huber { // (f - y)^2 / 2, linear beyond epsilon
    double epsilon;
    double derivative(double f, double y) const { return std::fmin(std::fmax(f - y, -epsilon), epsilon); }
};

struct EpsilonInsensitive { // max(0, |f - y| - epsilon)
    double epsilon;
    double derivative(double f, double y) const { return std::abs(f - y) > epsilon ? std::copysign(1.0, f - y) : 0.0; }
};

} // namespace isokern
