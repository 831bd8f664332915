// The points of a tree's sample, with one interface for dense and CSR rows (grow.cpp).
//
// In: the table and a sample of row numbers. Out: which columns are not zero in a set of points, and the values and
// range of a column in them. A slot is the index of a column within the sample: in dense rows the column number itself,
// in CSR rows a number for each column that the sample stores. Dense rows use bit sets of non-zero columns; CSR rows
// are copied both by point and by slot, so that a column can be read in either way.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "common/flags.hpp"
#include "common/rows.hpp"
#include "common/threads.hpp"
#include "trees/column_ranks.hpp"

namespace isokern {

using Points = std::span<const std::int32_t>; // points, given by their places in the sample, ascending
using RowNumbers = std::span<const std::int64_t>;

template <class Number> struct Range {
    Number lower, upper;

    void include(Number value) {
        lower = value < lower ? value : lower;
        upper = value > upper ? value : upper;
    }
};

// Bit sets of the non-zero columns of each sampled row. Computed once, because several trees may sample a row.
template <class Value> class NonzeroColumns {
  public:
    NonzeroColumns(const DenseRows<Value> &rows, RowNumbers sampled, int threads)
        : n_words_((rows.n_columns + 63) / 64),
          words_(std::make_unique_for_overwrite<std::uint64_t[]>(rows.n_rows * n_words_)),
          counts_(std::make_unique_for_overwrite<std::int32_t[]>(rows.n_rows)) {
        std::vector<bool> is_sampled(static_cast<std::size_t>(rows.n_rows));
        for (const std::int64_t row : sampled)
            is_sampled[row] = true;
        std::vector<std::int64_t> once; // each sampled row, ascending
        once.reserve(std::min(sampled.size(), is_sampled.size()));
        for (std::int64_t i = 0; i < rows.n_rows; ++i)
            if (is_sampled[i])
                once.push_back(i);
        const bool are_few = static_cast<std::int64_t>(sampled.size()) * rows.n_columns < kFewValues;
        parallel_tiles(std::ssize(once), kTile, are_few ? 1 : threads, [&] {
            return [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t k = begin; k < end; ++k) {
                    fetch(rows.row(once[std::min(k + kAhead, std::ssize(once) - 1)]), rows.n_columns);
                    look_at(rows, once[k]);
                }
            };
        });
    }

    std::int64_t n_words() const { return n_words_; }
    const std::uint64_t *words(std::int64_t row) const { return words_.get() + row * n_words_; }
    std::int32_t count(std::int64_t row) const { return counts_[row]; }

    // Whether a sampled row has a missing value.
    bool has_missing() const { return has_missing_; }

  private:
    static constexpr std::int64_t kTile = 1024;
    static constexpr std::int64_t kAhead = 8;           // rows that are fetched into the cache before they are read
    static constexpr std::int64_t kFewValues = 1 << 19; // fewer are scanned before other threads have started

    // Fetches a row, or the beginning of a long one, into the cache.
    static void fetch(const Value *row, std::int64_t n_columns) {
        constexpr std::int64_t kLine = 64 / sizeof(Value), kMost = 16 * kLine;
        for (std::int64_t j = 0; j < std::min(n_columns, kMost); j += kLine)
            __builtin_prefetch(row + j);
    }

    //  bit j % 64 of words_[i, j / 64] = (row i is not zero in column j),  counts_[i] = the number of such bits
    void look_at(const DenseRows<Value> &rows, std::int64_t i) {
        const Value *row = rows.row(i);
        std::int32_t count = 0, n_missing = 0;
        for (std::int64_t w = 0; w < n_words_; ++w) {
            const std::int64_t n = std::min<std::int64_t>(64, rows.n_columns - 64 * w);
            std::uint8_t flags[64] = {}; // bits would keep the compiler from vectorising the loop
            for (std::int64_t j = 0; j < n; ++j) {
                flags[j] = row[64 * w + j] != Value(0);
                n_missing += row[64 * w + j] != row[64 * w + j];
            }
            const std::uint64_t word = words_[i * n_words_ + w] = pack_flags(flags);
            count += std::popcount(word);
        }
        counts_[i] = count;
        if (n_missing > 0)
            has_missing_ = true;
    }

    std::int64_t n_words_;
    std::atomic<bool> has_missing_{false};
    std::unique_ptr<std::uint64_t[]> words_;
    std::unique_ptr<std::int32_t[]> counts_;
};

// Dense rows are not copied: a tree reads each point some tens of times, which costs less than copying many columns and
// no more than copying few.
template <class Value> class DenseSample {
  public:
    using Shared = NonzeroColumns<Value>;

    DenseSample(const DenseRows<Value> &rows, const Shared &nonzero)
        : rows_(rows), nonzero_(nonzero), seen_(static_cast<std::size_t>(nonzero.n_words())) {}

    void take(RowNumbers sample) {
        points_.resize(sample.size());
        n_stored_.resize(sample.size());
        words_.resize(sample.size() * seen_.size());
        values_.resize(sample.size());
        right_.resize(sample.size());
        for (std::size_t p = 0; p < sample.size(); ++p) {
            points_[p] = rows_.row(sample[p]);
            n_stored_[p] = nonzero_.count(sample[p]);
            std::copy_n(nonzero_.words(sample[p]), seen_.size(), words_.begin() + p * seen_.size());
        }
    }

    std::int32_t n_slots() const { return static_cast<std::int32_t>(rows_.n_columns); }
    std::int32_t column(std::int32_t slot) const { return slot; }
    std::int64_t n_stored(std::int32_t point) const { return n_stored_[point]; }

    // Writes the slots in which at least one of the points is not zero, in the order of first appearance; returns their
    // number.
    std::int32_t list_slots(Points points, std::int32_t *slots) {
        std::fill(seen_.begin(), seen_.end(), 0);
        std::int32_t n = 0;
        for (const std::int32_t point : points) {
            const std::uint64_t *words = words_.data() + point * seen_.size();
            for (std::size_t w = 0; w < seen_.size(); ++w) {
                std::uint64_t fresh = words[w] & ~seen_[w];
                seen_[w] |= fresh;
                for (; fresh != 0; fresh &= fresh - 1)
                    slots[n++] = static_cast<std::int32_t>(64 * w) + std::countr_zero(fresh);
            }
        }
        return n;
    }

    // Reads the values of a node's points in the slot's column; returns their range. If the bits say that all are zero,
    // no value is read: the caller rejects the slot.
    Range<Value> read(std::int32_t slot, Points points) {
        if (is_zero(slot, points))
            return {Value(0), Value(0)};
        Range<Value> range{value(points[0], slot), value(points[0], slot)};
        for (std::size_t k = 0; k < points.size(); ++k)
            range.include(values_[k] = value(points[k], slot));
        return range;
    }

    // Stable partition of the points that were read last: those below the split come first; returns their number.
    // Without a branch, which the CPU could not predict: each point is written to both sides, and only one side
    // advances.
    std::int32_t divide(std::span<std::int32_t> points, double split) {
        std::int32_t n_left = 0, n_right = 0;
        for (std::size_t k = 0; k < points.size(); ++k) {
            const bool is_left = values_[k] < split;
            points[n_left] = right_[n_right] = points[k];
            n_left += is_left;
            n_right += !is_left;
        }
        std::copy_n(right_.begin(), n_right, points.begin() + n_left);
        return n_left;
    }

    // The next points to be read are those of another node.
    void enter_node() { known_word_ = -1; }

    void isolate(Points) {} // CsrSample has work to do here
    void fetch(std::span<const std::int32_t>) const {}

  protected:
    Value value(std::int32_t point, std::int32_t slot) const { return points_[point][slot]; }

    std::vector<Value> values_; // of a node's points in one column

  private:
    // Whether the points are zero in the slot's column. A scan that finds no bit has read the whole node, so it answers
    // for all columns of that word.
    bool is_zero(std::int32_t slot, Points points) {
        const std::int64_t word = slot / 64, n_words = std::ssize(seen_);
        const std::uint64_t bit = std::uint64_t{1} << slot % 64;
        if (word == known_word_)
            return (nonzero_there_ & bit) == 0;
        std::uint64_t seen = 0;
        for (const std::int32_t point : points)
            if ((seen |= words_[point * n_words + word]) & bit)
                return false;
        known_word_ = word;
        nonzero_there_ = seen;
        return true;
    }

    const DenseRows<Value> &rows_;
    const Shared &nonzero_;
    std::vector<const Value *> points_; // their rows
    std::vector<std::int32_t> n_stored_;
    std::vector<std::uint64_t> words_; // the sample's bit sets, copied from nonzero_ by point
    std::vector<std::uint64_t> seen_;  // bit set of the columns that are listed already
    std::vector<std::int32_t> right_;  // scratch of divide
    std::int64_t known_word_ = -1;     // the word of a node's bit sets whose bits are known, or -1
    std::uint64_t nonzero_there_ = 0;  // its bits in any of the node's points
};

// Dense rows with missing values or categories. Values of categorical columns are codes, 0 if missing.
template <class Value> class MixedSample : public DenseSample<Value> {
  public:
    struct Shared {
        const NonzeroColumns<Value> &nonzero;
        std::vector<bool> is_categorical; // by column
    };

    MixedSample(const DenseRows<Value> &rows, const Shared &shared)
        : DenseSample<Value>(rows, shared.nonzero), is_categorical_(shared.is_categorical) {}

    bool is_categorical(std::int32_t slot) const { return is_categorical_[slot]; }

    // The values of a node's points in the slot's column. The caller replaces them by those that `divide` compares.
    std::span<Value> read(std::int32_t slot, Points points) {
        const auto values = std::span(this->values_).first(points.size());
        for (std::size_t k = 0; k < points.size(); ++k)
            values[k] = this->value(points[k], slot);
        if (is_categorical(slot))
            std::replace_if(values.begin(), values.end(), [](Value value) { return std::isnan(value); }, Value(0));
        return values;
    }

  private:
    const std::vector<bool> &is_categorical_;
};

// CSR rows are listed by point (point_slots_) and by slot (slot_points_, slot_values_). Methods as in DenseSample. A
// column of text is zero in most points, so `read` finds the others, and `divide` moves those among them that leave the
// zeros. Slots are numbered in the order of columns.
template <class Value> class CsrSample {
  public:
    struct Shared {};

    CsrSample(const CsrRows<Value> &rows, const Shared &) : rows_(rows) {}

    void take(RowNumbers sample) {
        sample_ = sample;
        std::int64_t n_stored = 0;
        for (const std::int64_t row : sample)
            n_stored += rows_.starts[row + 1] - rows_.starts[row];
        point_slots_.resize(static_cast<std::size_t>(n_stored));
        values_.resize(point_slots_.size());
        if (rows_.n_columns < n_stored / 16) { // so few that each gets a slot; one without entries is never listed
            columns_.resize(static_cast<std::size_t>(rows_.n_columns));
            std::iota(columns_.begin(), columns_.end(), 0);
            list_by_point([](std::int32_t column) { return column; });
        } else {
            const ColumnRanks ranks = rank_columns();
            columns_ = ranks.columns();
            list_by_point([&](std::int32_t column) { return ranks.find(column); });
        }
        list_by_slot();
        is_listed_.assign(columns_.size() / 64 + 1, 0);
        node_.assign(sample.size(), 0);
        n_nodes_ = 0;
        found_.resize(sample.size() + 1);
    }

    std::int32_t n_slots() const { return static_cast<std::int32_t>(columns_.size()); }
    std::int32_t column(std::int32_t slot) const { return columns_[slot]; }
    std::int64_t n_stored(std::int32_t point) const { return point_starts_[point + 1] - point_starts_[point]; }

    std::int32_t list_slots(Points points, std::int32_t *slots) {
        std::int32_t n = 0;
        for (const std::int32_t point : points)
            for (std::int64_t k = point_starts_[point]; k < point_starts_[point + 1]; ++k) {
                const std::int32_t slot = slots[n] = point_slots_[k];
                std::uint64_t &word = is_listed_[slot / 64];
                n += !(word >> slot % 64 & 1);
                word |= std::uint64_t{1} << slot % 64;
            }
        for (std::int32_t k = 0; k < n; ++k)
            is_listed_[slots[k] / 64] = 0;
        return n;
    }

    Range<double> read(std::int32_t slot, Points points) {
        find(slot, points);
        const double first = n_found_ < std::ssize(points) ? 0.0 : *found_[0].value;
        Range<double> range{first, first};
        for (std::int32_t k = 0; k < n_found_; ++k)
            range.include(*found_[k].value);
        return range;
    }

    // Those among the points found that do not go with the zeros leave the node; the others close the gaps.
    std::int32_t divide(std::span<std::int32_t> points, double split) {
        const bool is_zero_left = 0.0 < split;
        const std::int32_t node = node_[points[0]];
        std::int32_t n_leaving = 0;
        ++n_nodes_;
        for (std::int32_t k = 0; k < n_found_; ++k) { // without a branch, which the CPU could not predict
            const bool leaves = (*found_[k].value < split) != is_zero_left;
            found_[n_leaving] = found_[k];
            n_leaving += leaves;
            node_[found_[k].point] = leaves ? n_nodes_ : node;
        }
        const auto n = static_cast<std::int32_t>(points.size());
        const auto close_gaps = [&](auto points) {
            for (std::int32_t k = 0, to = 0; k < n; ++k) {
                const std::int32_t point = points[to] = points[k];
                to += node_[point] == node;
            }
        };
        is_zero_left ? close_gaps(points.begin()) : close_gaps(points.rbegin());
        const std::int32_t n_left = is_zero_left ? n - n_leaving : n_leaving, first = is_zero_left ? n_left : 0;
        for (std::int32_t k = 0; k < n_leaving; ++k)
            points[first + k] = found_[k].point;
        return n_left;
    }

    void enter_node() {}

    // Makes the points those of one node.
    void isolate(Points points) {
        ++n_nodes_;
        for (const std::int32_t point : points)
            node_[point] = n_nodes_;
    }

    // Fetches the entries of slots, which will probably be read, into the cache.
    void fetch(std::span<const std::int32_t> slots) const {
        for (const std::int32_t slot : slots)
            __builtin_prefetch(slot_points_.data() + slot_starts_[slot]);
    }

  private:
    struct Entry {
        std::int32_t point;
        const Value *value;
    };

    // found_ = the node's points that are not zero in the slot's column, ascending
    // Many points: scan the slot's entries for those of the node. Few points: binary search for the slot in each.
    void find(std::int32_t slot, Points points) {
        n_found_ = 0;
        const std::int64_t begin = slot_starts_[slot], end = slot_starts_[slot + 1];
        if (end - begin > kFewPoints * std::ssize(points)) {
            for (const std::int32_t point : points)
                if (const Value *value = look_up(point, slot))
                    found_[n_found_++] = {point, value};
            return;
        }
        const std::int32_t node = node_[points[0]];
        for (std::int64_t k = begin; k < end; ++k) { // without a branch: kept only if it is in the node
            found_[n_found_] = {slot_points_[k], slot_values_.data() + k};
            n_found_ += node_[slot_points_[k]] == node;
        }
    }

    // Numbers the columns that the sample stores.
    ColumnRanks rank_columns() const {
        ColumnRanks ranks(rows_.n_columns);
        for (std::size_t point = 0; point < sample_.size(); ++point) {
            fetch_rows(point);
            for (std::int64_t k = rows_.starts[sample_[point]]; k < rows_.starts[sample_[point] + 1]; ++k)
                ranks.add(rows_.columns[k]);
        }
        ranks.number();
        return ranks;
    }

    // Copies the sample: point_starts_, point_slots_ and values_ list each point's entries.
    template <class SlotOf> void list_by_point(SlotOf slot_of) {
        point_starts_.assign(1, 0);
        std::int32_t *slot = point_slots_.data();
        Value *to = values_.data();
        for (std::size_t point = 0; point < sample_.size(); ++point) {
            fetch_rows(point);
            for_each_nonzero(rows_, sample_[point], [&](std::int32_t column, double value) {
                *slot++ = slot_of(column);
                *to++ = static_cast<Value>(value);
            });
            point_starts_.push_back(slot - point_slots_.data());
        }
    }

    // Transposes the sample by counting sort: slot_starts_, slot_points_ and slot_values_ list each slot's entries.
    // kSlots slots at a time, so that what is written to at random stays in the cache.
    void list_by_slot() {
        slot_points_.resize(point_slots_.size());
        slot_values_.resize(point_slots_.size());
        slot_starts_.assign(columns_.size() + 1, 0);
        next_.assign(point_starts_.begin(), point_starts_.end());
        from_.resize(kSlots); // too large for the stack of a thread on some systems
        for (std::int32_t first = 0; first < n_slots(); first += kSlots) {
            const std::int32_t end = std::min(first + kSlots, n_slots());
            for (std::size_t point = 0; point < sample_.size(); ++point)
                for (std::int64_t k = next_[point]; k < point_starts_[point + 1] && point_slots_[k] < end; ++k)
                    ++slot_starts_[point_slots_[k] + 1];
            for (std::int32_t slot = first; slot < end; ++slot) {
                from_[slot - first] = slot_starts_[slot];
                slot_starts_[slot + 1] += slot_starts_[slot];
            }
            for (std::size_t point = 0; point < sample_.size(); ++point) {
                std::int64_t k = next_[point];
                for (; k < point_starts_[point + 1] && point_slots_[k] < end; ++k) {
                    const std::int64_t at = from_[point_slots_[k] - first]++;
                    slot_points_[at] = static_cast<std::int32_t>(point);
                    slot_values_[at] = values_[k];
                }
                next_[point] = k;
            }
        }
    }

    // A point's value in a slot's column, by binary search; null if it is zero.
    const Value *look_up(std::int32_t point, std::int32_t slot) const {
        const auto end = point_slots_.begin() + point_starts_[point + 1];
        const auto found = std::lower_bound(point_slots_.begin() + point_starts_[point], end, slot);
        return found != end && *found == slot ? values_.data() + (found - point_slots_.begin()) : nullptr;
    }

    // Fetches rows that are read soon into the cache.
    void fetch_rows(std::size_t point) const {
        constexpr std::size_t kAhead = 8;
        if (point + 2 * kAhead < sample_.size())
            __builtin_prefetch(rows_.starts + sample_[point + 2 * kAhead]);
        if (point + kAhead < sample_.size()) {
            const std::int64_t start = rows_.starts[sample_[point + kAhead]];
            __builtin_prefetch(rows_.columns + start);
            __builtin_prefetch(rows_.values + start);
        }
    }

    static constexpr std::int64_t kFewPoints = 32;  // entries that are scanned in the time of one binary search
    static constexpr std::int32_t kSlots = 1 << 14; // transposed together; about half a megabyte of text

    const CsrRows<Value> &rows_;
    RowNumbers sample_;
    std::vector<std::int32_t> columns_; // slot -> column, ascending
    std::vector<std::int32_t> point_slots_;
    std::vector<std::int64_t> point_starts_, next_, from_;
    std::vector<Value> values_;
    std::vector<std::int64_t> slot_starts_;
    std::vector<std::int32_t> slot_points_;
    std::vector<Value> slot_values_;
    std::vector<std::uint64_t> is_listed_; // bit set of the slots that list_slots has listed
    std::vector<std::int32_t> node_;       // point -> a number that only the points of its node have
    std::int32_t n_nodes_ = 0;
    std::vector<Entry> found_; // has room for one more than the sample
    std::int32_t n_found_ = 0;
};

} // namespace isokern
