// Running mean and standard deviation of the targets of a regression, which no single target can ruin.
//
// In: targets in order, with weights. Out: for each target, the mean before it, the deviation up to and with it, and
// limits. A target beyond its limits is not to be learned, and counts as one at the limit (winsorised moments): one
// cannot move the moments far, but if such targets keep coming, they widen the limits by themselves. If most of the
// recent targets are beyond the limits, the level or scale has changed for good: the moments start anew from these.
// Early limits are narrow, because few targets are moved far by one more; they come from a first batch, if there is
// one.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace isokern {

// The first target keeps the squares exact where targets are far from 0.
struct TargetSums {
    double total, mass, first, squares; // of weighted targets, weights, weighted squares of the distances to the first
    double n;                           // targets of a weight above 0

    double mean() const { return mass > 0.0 ? total / mass : 0.0; }
    double variance() const {
        const double from_first = mean() - first;
        return mass > 0.0 ? std::max(squares / mass - from_first * from_first, 0.0) : 0.0;
    }
    void add(double target, double weight) {
        if (mass == 0.0 && weight > 0.0)
            first = target;
        total += weight * target;
        mass += weight;
        squares += weight * ((target - first) * (target - first));
        n += weight > 0.0;
    }
};

// The state, all doubles, so that it can be kept in one array. Zeros are the moments of no targets.
struct TargetMoments {
    static constexpr double kReach =
        20.0;                             // limits of many targets, in root mean squares of the distances from a centre
    static constexpr double kNear = 10.0; // those of a first batch, in its spread
    static constexpr double kFirst = 1000.0; // targets that weigh as much as the first batch
    static constexpr double kFewest = 16.0;  // targets that give limits without a first batch
    static constexpr double kLasting = 16.0; // targets beyond the limits, less the others, that show a change

    TargetSums sums;
    double centre, spread; // of the first batch or the first targets, 0 before them
    TargetSums recent;     // of all targets as they are, since `lead` was last 0
    double lead;           // how many more of these are beyond the limits than within

    // The distance from the centre to the limits; infinite before a few targets, some of them different.
    //  sqrt((n kReach^2 mean (y - centre)^2 + kFirst kNear^2 spread^2) / (n + kFirst)),   kFirst = 0 without a spread
    double reach() const {
        if (spread == 0.0 && (sums.variance() == 0.0 || sums.n < kFewest))
            return std::numeric_limits<double>::infinity();
        const double of_many = kReach * rms(), of_first = kNear * spread, n_first = spread == 0.0 ? 0.0 : kFirst;
        return std::sqrt((sums.n * (of_many * of_many) + n_first * (of_first * of_first)) / (sums.n + n_first));
    }

    // Counts the next target, of which `counted` is what the limits leave.
    void add(double target, double counted, double weight) {
        const bool is_beyond = counted != target;
        if (sums.n == 0.0 && spread == 0.0)
            centre = target;
        sums.add(counted, is_beyond && sums.n > 0.0 ? std::min(weight, sums.mass / sums.n) : weight);
        if (sums.n == kFewest && spread == 0.0)
            spread = std::sqrt(sums.variance());
        if (is_beyond || lead > 0.0)
            recent.add(target, weight);
        lead = std::max(0.0, lead + (is_beyond ? 1.0 : -1.0));
        if (lead >= kLasting) // if all are equal, the former scale tells when they end
            *this = {recent, recent.mean(), recent.variance() > 0.0 ? std::sqrt(recent.variance()) : rms(), {}, 0.0};
        else if (lead == 0.0)
            recent = {};
    }

  private:
    // The root mean square of the distances from the centre.
    double rms() const {
        const double offset = sums.mean() - centre;
        return std::sqrt(sums.variance() + offset * offset);
    }
};

// What a row learns of an output: its target within the limits, less the mean of the targets before it.
struct StandardTarget {
    double residual, unit, mean, low, high;
};

// A target of weight 0 is standardised, but changes nothing.
inline StandardTarget next_target(TargetMoments &moments, double target, double weight) {
    const bool has_mean = moments.sums.mass > 0.0;
    const double mean = moments.sums.mean(), reach = moments.reach();
    const double low = moments.centre - reach, high = moments.centre + reach;
    const double counted = std::clamp(target, low, high), residual = has_mean ? counted - mean : 0.0;
    if (weight > 0.0)
        moments.add(target, counted, weight);
    const double deviation = std::sqrt(moments.sums.variance());
    const double unit = deviation > 0.0 ? deviation : residual != 0.0 ? std::abs(residual) : 1.0;
    return {residual, unit, mean, low, high};
}

} // namespace isokern
