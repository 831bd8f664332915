// Trees cut into zero paths, for sparse rows.
//
// From every node there is a path that the all-zero row takes. A sparse row follows it until one of its own values
// turns it off, follows the zero path from where it then is, and so on to a leaf. So each tree is stored as its zero
// paths, one after the other: a row that is not turned off goes on to the next place in memory. Two things make long
// paths cheap, and trees on text have paths of hundreds of places:
//  - The zero paths from the roots are the longest, and all rows begin there. For each feature we list, over all trees,
//    the places on them where it decides ("turns"), from splits near zero outwards. A stored value reads the turns that
//    it takes and one more, and for each tree the first turn that any value takes is kept.
//  - On a later path a row looks up at several places at once whether it stores their features at all. All trees go
//    forward together, so that none waits for another's memory.
// The cost follows the stored values: not the number of columns, and little the length of paths.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "column_ranks.hpp"
#include "rows.hpp"

namespace isokern {

// The share of all splits that the all-zero row meets on its way down the trees: large where a tree peels points off a
// mass of zeros, as it does on sparse rows. Nodes as in TreeMap.
double share_on_zero_paths(const double *split, const std::int32_t *left, const std::vector<std::int64_t> &starts);

class ZeroPaths {
  public:
    ZeroPaths() = default;

    // Nodes as in TreeMap.
    ZeroPaths(const double *split, const std::int32_t *column, const std::int32_t *left,
              const std::vector<std::int64_t> &starts, std::int64_t n_columns);

    bool are_none() const { return starts_.empty(); }

    // Takes rows down the trees; has scratch space of its own.
    template <class Value, class Cell> class Descent;

  private:
    static constexpr int kAhead = 8; // places looked at together

    // On a path. Its last place is one that every row turns off at.
    struct Place {
        double split;
        std::int32_t feature;
        std::int32_t to; // where a row goes that turns off: a place of the same tree or, if negative, ~cell
    };
    struct Turn {        // a place on the zero path from a root
        double smallest; // of the values that turn off there, by absolute value
        std::int32_t tree;
        std::int32_t number; // of the place
    };

    std::int64_t n_trees() const { return static_cast<std::int64_t>(starts_.size()); }

    // Zero goes left of a positive split and right of any other.
    static bool turns_off(double x, double split) { return (x < split) != (split > 0.0); }

    // Positive and negative values of a feature take turns of their own.
    static std::int64_t side(std::int32_t feature, bool is_negative) { return 2 * std::int64_t{feature} + is_negative; }

    void lay_out(const double *split, const std::int32_t *column, const std::int32_t *left);
    void index_turns();

    ColumnRanks features_;             // the columns that occur in a split; the ends of paths have one more feature
    std::vector<Place> places_;        // of one tree after the other, the zero path from the root first
    std::vector<std::int64_t> starts_; // tree -> its first place
    std::vector<std::int32_t> ends_;   // tree -> the last place of the zero path from the root
    std::vector<Turn> turns_;
    std::vector<std::int64_t> turn_starts_; // side of a feature -> its turns
};

template <class Value, class Cell> class ZeroPaths::Descent {
  public:
    Descent(const ZeroPaths &paths, const CsrRows<Value> &rows, Cell *cells)
        : paths_(paths), rows_(rows), cells_(cells), values_(static_cast<std::size_t>(paths.features_.size()) + 1),
          is_stored_(values_.size()), turned_at_(paths.starts_.size()), walks_(paths.starts_.size()) {
        store({paths.features_.size(), std::numeric_limits<double>::infinity()});
    }

    void operator()(std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r)
            descend(r);
    }

  private:
    struct Stored {
        std::int32_t feature;
        double value;
    };
    struct Walk { // the row on its way down a tree
        const Place *places;
        std::int32_t at;
        std::int32_t tree;
    };

    void descend(std::int64_t r) {
        find_features(r);
        std::copy(paths_.ends_.begin(), paths_.ends_.end(), turned_at_.begin());
        for (const Stored &one : stored_) {
            store(one);
            __builtin_prefetch(paths_.turns_.data() + paths_.turn_starts_[side(one.feature, one.value < 0.0)]);
        }
        for (const Stored &one : stored_)
            take_turns(one);
        Cell *cells = cells_ + r * paths_.n_trees();
        std::int64_t n_walks = leave_roots(cells);
        while (n_walks > 0)
            n_walks = walk_on(n_walks, cells);
        for (const Stored &one : stored_)
            is_stored_[one.feature] = 0;
    }

    // Notes the row's values that are not zero and whose columns occur in splits.
    void find_features(std::int64_t r) {
        stored_.resize(static_cast<std::size_t>(rows_.starts[r + 1] - rows_.starts[r]));
        std::size_t n = 0;
        for (std::int64_t k = rows_.starts[r]; k < rows_.starts[r + 1]; ++k) {
            stored_[n] = {paths_.features_.find(rows_.columns[k]), static_cast<double>(rows_.values[k])};
            n += stored_[n].feature >= 0 && stored_[n].value != 0.0;
        }
        stored_.resize(n);
    }

    void store(const Stored &one) {
        values_[one.feature] = one.value;
        is_stored_[one.feature] = 1;
    }

    // Notes each tree whose first path the value leaves earlier than the values before it.
    void take_turns(const Stored &one) {
        const std::int64_t list = side(one.feature, one.value < 0.0);
        const double size = std::abs(one.value);
        const Turn *end = paths_.turns_.data() + paths_.turn_starts_[list + 1];
        std::int32_t *turned_at = turned_at_.data();
        for (const Turn *turn = paths_.turns_.data() + paths_.turn_starts_[list]; turn != end && turn->smallest <= size;
             ++turn)
            turned_at[turn->tree] = std::min(turned_at[turn->tree], turn->number);
    }

    // Turns off the first paths. Writes the cells of trees that end there; returns how many walks go on.
    std::int64_t leave_roots(Cell *cells) {
        std::int64_t n = 0;
        for (std::int64_t tree = 0; tree < paths_.n_trees(); ++tree) {
            const Place *places = paths_.places_.data() + paths_.starts_[tree];
            const Walk walk{places, places[turned_at_[tree]].to, static_cast<std::int32_t>(tree)};
            cells[tree] = static_cast<Cell>(~walk.at);
            walks_[n] = walk;
            n += walk.at >= 0;
        }
        return n;
    }

    // Takes each walk past its next stored feature. Writes the cells of those that end; returns how many are left.
    std::int64_t walk_on(std::int64_t n_walks, Cell *cells) {
        std::int64_t n = 0;
        for (std::int64_t k = 0; k < n_walks; ++k) {
            Walk walk = walks_[k];
            walk.at = next(walk);
            cells[walk.tree] = static_cast<Cell>(~walk.at);
            walks_[n] = walk;
            n += walk.at >= 0;
        }
        return n;
    }

    std::int32_t next(const Walk &walk) const {
        const Place *place = walk.places + walk.at;
        unsigned stored = stored_among(place);
        while (stored == 0)
            stored = stored_among(place += kAhead);
        place += std::countr_zero(stored);
        const bool is_off = turns_off(values_[place->feature], place->split);
        return is_off ? place->to : static_cast<std::int32_t>(place - walk.places) + 1;
    }

    // Bit k says whether the feature of the k-th place from here is stored.
    unsigned stored_among(const Place *place) const {
        unsigned bits = 0;
        for (int k = 0; k < kAhead; ++k)
            bits |= static_cast<unsigned>(is_stored_[place[k].feature]) << k;
        return bits;
    }

    const ZeroPaths &paths_;
    const CsrRows<Value> &rows_;
    Cell *cells_;
    std::vector<Stored> stored_;          // the row at hand
    std::vector<double> values_;          // the same by feature, where stored
    std::vector<std::uint8_t> is_stored_; // by feature; the ends of paths always are
    std::vector<std::int32_t> turned_at_; // by tree: the place on the first path
    std::vector<Walk> walks_;
};

} // namespace isokern
