// Lays trees out as zero paths and builds the index of turns (zero_paths.hpp).
//
// In: splits, columns and children of all nodes. Out: the places of all zero paths, and for each feature and sign the
// places on the zero paths from the roots at which it decides, sorted by the smallest value that turns off.
#include "trees/zero_paths.hpp"

#include <numeric>
#include <tuple>

namespace isokern {

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The child of an inner node that zero goes to.
static std::int32_t zero_child(double split, std::int32_t left) { return split > 0.0 ? left : left + 1; }

double share_on_zero_paths(const double *split, const std::int32_t *left, const std::vector<std::int64_t> &starts) {
    const auto n_splits = std::count_if(left, left + starts.back(), [](std::int32_t to) { return to >= 0; });
    std::int64_t n_met = 0;
    for (auto root = starts.begin(); root + 1 != starts.end(); ++root)
        for (std::int64_t k = *root; left[k] >= 0; k = *root + zero_child(split[k], left[k]))
            ++n_met;
    return static_cast<double>(n_met) / static_cast<double>(std::max<std::int64_t>(1, n_splits));
}

ZeroPaths::ZeroPaths(const double *split, const std::int32_t *column, const std::int32_t *left,
                     const std::vector<std::int64_t> &starts, std::int64_t n_columns)
    : features_(n_columns) {
    for (std::int64_t k = 0; k < starts.back(); ++k)
        if (left[k] >= 0)
            features_.add(column[k]);
    features_.number();
    for (auto root = starts.begin(); root + 1 != starts.end(); ++root)
        lay_out(split + *root, column + *root, left + *root);
    places_.resize(places_.size() + kAhead); // Mapper reads this far beyond a sentinel
    index_turns();
}

// Appends the zero paths of a tree, the one from the root first. A place whose row turns off to an inner node gets its
// target when that node's path is appended.
void ZeroPaths::lay_out(const double *split, const std::int32_t *column, const std::int32_t *left) {
    struct Path {
        std::int32_t first_node;
        std::int64_t from; // the place from which rows turn to it
    };
    const auto start = static_cast<std::int64_t>(places_.size());
    const auto next_place = [&] {
        return static_cast<std::int32_t>(static_cast<std::int64_t>(places_.size()) - start);
    };
    const auto append_path = [&](std::int32_t node, std::vector<Path> &waiting) {
        while (left[node] >= 0) {
            const std::int32_t next = zero_child(split[node], left[node]);
            const std::int32_t other = left[node] + (next == left[node]);
            if (left[other] >= 0)
                waiting.push_back({other, static_cast<std::int64_t>(places_.size())});
            places_.push_back({split[node], features_.find(column[node]), left[other]});
            node = next;
        }
        places_.push_back({kInfinity, features_.size(), left[node]});
    };

    std::vector<Path> waiting;
    append_path(0, waiting);
    starts_.push_back(start);
    ends_.push_back(next_place() - 1);
    while (!waiting.empty()) {
        const Path path = waiting.back();
        waiting.pop_back();
        places_[path.from].to = next_place();
        append_path(path.first_node, waiting);
    }
}

// The smallest absolute value that turns off at a split: x >= split if the split is positive, else x < split, hence
// |x| > |split|.
static double smallest_off(double split) { return split > 0.0 ? split : std::nextafter(-split, kInfinity); }

// Collects the turns of all roots' zero paths, sorts them by side and smallest value, and marks where each side starts.
void ZeroPaths::index_turns() {
    struct Found {
        std::int64_t side;
        Turn turn;
    };
    std::vector<Found> found;
    for (std::int64_t tree = 0; tree < n_trees(); ++tree)
        for (std::int32_t k = 0; k < ends_[tree]; ++k) {
            const Place &place = places_[starts_[tree] + k];
            const Turn turn{smallest_off(place.split), static_cast<std::int32_t>(tree), k};
            if (!std::isnan(turn.smallest)) // no row turns off at a split that is NaN
                found.push_back({side(place.feature, !(place.split > 0.0)), turn});
        }
    std::sort(found.begin(), found.end(), [](const Found &a, const Found &b) {
        return std::tie(a.side, a.turn.smallest) < std::tie(b.side, b.turn.smallest);
    });
    turn_starts_.assign(2 * static_cast<std::size_t>(features_.size()) + 1, 0);
    for (const auto &[side, turn] : found) {
        ++turn_starts_[side + 1];
        turns_.push_back(turn);
    }
    std::partial_sum(turn_starts_.begin(), turn_starts_.end(), turn_starts_.begin());
}

} // namespace isokern
