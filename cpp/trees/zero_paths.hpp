// Maps sparse rows to the leaves of trees at a cost that follows the stored values. In: trees, CSR rows. Out: cells.
//
// A zero path is the path of the all-zero row from a node to a leaf. A sparse row follows it until a stored value turns
// it off, then follows the zero path from the node it turned to, and so on. Each tree is stored as its zero paths, each
// path contiguous in memory (compare XGBoost's default directions). Paths have hundreds of places on text data. So:
//  - Zero paths from roots: they are the longest, and all rows start on them. An inverted index lists, for each feature
//    over all trees, the places where it decides ("turns"), ordered by the distance of the split from zero. A stored
//    value reads the turns that it takes and one more; for each tree the first turn taken by any value counts.
//  - Later paths: a bit test at kAhead places at once finds the next place whose feature the row stores. All trees
//    advance in turn, so that their cache misses overlap.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "common/rows.hpp"
#include "trees/column_ranks.hpp"

namespace isokern {

// The share of all splits that lie on the zero paths from the roots. It is large where a tree peels single points off a
// mass of zeros, as on sparse data. Nodes as in TreeMap.
double share_on_zero_paths(const double *split, const std::int32_t *left, const std::vector<std::int64_t> &starts);

class ZeroPaths {
  public:
    ZeroPaths() = default;

    // Nodes as in TreeMap.
    ZeroPaths(const double *split, const std::int32_t *column, const std::int32_t *left,
              const std::vector<std::int64_t> &starts, std::int64_t n_columns);

    bool are_none() const { return starts_.empty(); }

    // Maps rows to cells; owns the scratch buffers of one thread.
    template <class Value, class Cell> class Mapper;

  private:
    static constexpr int kAhead = 8; // places tested together

    // A split on a zero path. The last place of a path is a sentinel at which every row turns off.
    struct Place {
        double split;
        std::int32_t feature;
        std::int32_t to; // where a row that turns off continues: a place of the same tree or, if negative, ~cell
    };
    struct Turn {        // a place on the zero path from a root
        double smallest; // absolute value of the smallest value that turns off there
        std::int32_t tree;
        std::int32_t number; // of the place within the tree
    };

    std::int64_t n_trees() const { return static_cast<std::int64_t>(starts_.size()); }

    // Whether x goes to another side than zero, which goes left of a positive split and right of any other.
    static bool turns_off(double x, double split) { return (x < split) != (split > 0.0); }

    // The list of turns for the positive or the negative values of a feature: a split has zero on one side, so only
    // values of one sign turn off at it.
    static std::int64_t side(std::int32_t feature, bool is_negative) { return 2 * std::int64_t{feature} + is_negative; }

    void lay_out(const double *split, const std::int32_t *column, const std::int32_t *left);
    void index_turns();

    ColumnRanks features_;                  // numbers the columns that occur in splits; sentinels have one more feature
    std::vector<Place> places_;             // tree after tree, in each the zero path from the root first
    std::vector<std::int64_t> starts_;      // tree -> its first place
    std::vector<std::int32_t> ends_;        // tree -> the sentinel of the zero path from the root
    std::vector<Turn> turns_;               // by side(feature, sign), then by smallest
    std::vector<std::int64_t> turn_starts_; // side(feature, sign) -> its first turn
};

template <class Value, class Cell> class ZeroPaths::Mapper {
  public:
    Mapper(const ZeroPaths &paths, const CsrRows<Value> &rows, Cell *cells)
        : paths_(paths), rows_(rows), cells_(cells), values_(static_cast<std::size_t>(paths.features_.size()) + 1),
          is_stored_(values_.size()), turned_at_(paths.starts_.size()), walks_(paths.starts_.size()) {
        store({paths.features_.size(), std::numeric_limits<double>::infinity()});
    }

    void operator()(std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r)
            follow(r);
    }

  private:
    struct Stored {
        std::int32_t feature;
        double value;
    };
    struct Walk { // the row's position in a tree
        const Place *places;
        std::int32_t at;
        std::int32_t tree;
    };

    // Maps row r: notes its stored values by feature, finds where it leaves the zero path of each root, then walks on
    // in all trees that have not ended.
    void follow(std::int64_t r) {
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

    // Lists the row's non-zero values whose columns occur in splits. Without a branch: an entry that does not count is
    // overwritten by the next.
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

    //  turned_at[tree] = min(turned_at[tree], number) over the turns with smallest <= |value|
    // The list is sorted by `smallest`, so the loop ends at the first turn that the value does not take.
    void take_turns(const Stored &one) {
        const std::int64_t list = side(one.feature, one.value < 0.0);
        const double size = std::abs(one.value);
        const Turn *end = paths_.turns_.data() + paths_.turn_starts_[list + 1];
        std::int32_t *turned_at = turned_at_.data();
        for (const Turn *turn = paths_.turns_.data() + paths_.turn_starts_[list]; turn != end && turn->smallest <= size;
             ++turn)
            turned_at[turn->tree] = std::min(turned_at[turn->tree], turn->number);
    }

    // Leaves the zero paths of the roots where turned_at_ says. Writes the cells of trees that end there; returns the
    // number of walks that go on. Without a branch: cells of unfinished trees are overwritten later.
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

    // Advances each walk past the next place whose feature is stored. Writes the cells of walks that end; returns the
    // number of those left.
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

    // Finds the next place whose feature the row stores, and returns where the row goes from it. The search ends at the
    // path's sentinel at the latest, whose feature always counts as stored.
    std::int32_t next(const Walk &walk) const {
        const Place *place = walk.places + walk.at;
        unsigned stored = stored_among(place);
        while (stored == 0)
            stored = stored_among(place += kAhead);
        place += std::countr_zero(stored);
        const bool is_off = turns_off(values_[place->feature], place->split);
        return is_off ? place->to : static_cast<std::int32_t>(place - walk.places) + 1;
    }

    //  bit k = is_stored_[feature of place[k]], for k < kAhead
    unsigned stored_among(const Place *place) const {
        unsigned bits = 0;
        for (int k = 0; k < kAhead; ++k)
            bits |= static_cast<unsigned>(is_stored_[place[k].feature]) << k;
        return bits;
    }

    const ZeroPaths &paths_;
    const CsrRows<Value> &rows_;
    Cell *cells_;
    std::vector<Stored> stored_;          // the current row
    std::vector<double> values_;          // by feature, valid where is_stored_ is set
    std::vector<std::uint8_t> is_stored_; // by feature; always set for sentinels
    std::vector<std::int32_t> turned_at_; // by tree: the place where the row leaves the root's zero path
    std::vector<Walk> walks_;
};

} // namespace isokern
