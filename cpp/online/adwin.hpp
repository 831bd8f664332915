// Finds changes of a mean along a stream: ADWIN, adaptive windowing (Bifet and Gavalda, 2007).
//
// In: numbers from 0 to 1, one by one. Out: at which of them the mean of the recent ones was found to be larger than
// that of those before. The window of all numbers since the last change is an exponential histogram: buckets of 1, 2,
// 4, ... numbers, at most kMost of each size, of which only the sum is kept. If the window can be cut in two parts
// whose means differ by more than chance allows, the older part is dropped.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace isokern {

// The state, all doubles, so that it can be kept in one array.
struct Adwin {
    static constexpr int kLevels = 40, kMost = 5, kChanges = 64, kEvery = 32;
    static constexpr int kApart = 512;       // changes that are closer count as one
    static constexpr double kChance = 0.002; // of finding a change where there is none

    double n_seen, total;                     // of all numbers
    double n_changes;                         // found so far
    std::array<double, kChanges> changes;     // the k-th change is at place k % kChanges: how many numbers came before
    std::array<double, kLevels> n_buckets;    // by level; a bucket of level l holds 2^l numbers
    std::array<double, kLevels * kMost> sums; // of the buckets of each level, the oldest first

    void add(double value) {
        n_seen += 1.0;
        total += value;
        insert(0, value);
        if (std::fmod(n_seen, kEvery) == 0.0 && cut() &&
            (n_changes == 0.0 || n_seen - change(n_changes - 1.0) >= kApart)) {
            change(n_changes) = n_seen;
            n_changes += 1.0;
        }
    }

    double &change(double k) { return changes[static_cast<std::size_t>(std::fmod(k, kChanges))]; }

  private:
    double *of_level(int level) { return sums.data() + level * kMost; }

    void insert(int level, double sum) {
        double *own = of_level(level);
        auto n = static_cast<int>(n_buckets[level]);
        if (n == kMost && level + 1 < kLevels) { // the two oldest become one of the next level
            insert(level + 1, own[0] + own[1]);
            std::copy(own + 2, own + n, own);
            n -= 2;
        } else if (n == kMost) {
            std::copy(own + 1, own + n--, own);
        }
        own[n++] = sum;
        n_buckets[level] = n;
    }

    // Drops old numbers as long as they differ from the others; whether they were smaller.
    bool cut() {
        bool is_larger = false;
        for (int change = 1; change != 0;) {
            change = find_change();
            is_larger |= change > 0;
            if (change != 0)
                drop_oldest();
        }
        return is_larger;
    }

    // 1 or -1 if the mean of recent numbers is larger or smaller than that of the older ones, for some cut; else 0.
    int find_change() {
        double n = 0.0, sum = 0.0;
        for_each_bucket([&](double size, double of_bucket) {
            n += size;
            sum += of_bucket;
            return 0;
        });
        const double mean = n > 0.0 ? sum / n : 0.0, log_chance = std::log(2.0 * std::log(std::max(n, 3.0)) / kChance);
        double n_old = 0.0, old = 0.0;
        return for_each_bucket([&](double size, double of_bucket) {
            n_old += size;
            old += of_bucket;
            const double n_new = n - n_old;
            if (n_old < kEvery || n_new < kEvery)
                return 0;
            const double difference = (sum - old) / n_new - old / n_old, m = 1.0 / (1.0 / n_old + 1.0 / n_new);
            const double bound = std::sqrt(2.0 / m * mean * (1.0 - mean) * log_chance) + 2.0 / (3.0 * m) * log_chance;
            return std::abs(difference) > bound ? (difference > 0.0 ? 1 : -1) : 0;
        });
    }

    // Calls visit(size, sum) for the buckets from the oldest on, until it returns something else than 0.
    template <class Visit> int for_each_bucket(Visit visit) {
        for (int level = kLevels; level-- > 0;)
            for (int k = 0; k < static_cast<int>(n_buckets[level]); ++k)
                if (const int found = visit(std::ldexp(1.0, level), of_level(level)[k]); found != 0)
                    return found;
        return 0;
    }

    void drop_oldest() {
        for (int level = kLevels; level-- > 0;)
            if (const auto n = static_cast<int>(n_buckets[level]); n > 0) {
                std::copy(of_level(level) + 1, of_level(level) + n, of_level(level));
                n_buckets[level] = n - 1;
                return;
            }
    }
};

} // namespace isokern
