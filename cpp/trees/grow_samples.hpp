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
#include <span>
#include <vector>

#include "common/column_numbers.hpp"
#include "common/rows.hpp"
#include "common/threads.hpp"

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
        const bool are_few = static_cast<std::int64_t>(sampled.size()) * rows.n_columns < kFewValues;
        parallel_tiles(rows.n_rows, kTile, are_few ? 1 : threads, [&] {
            return [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t i = begin; i < end; ++i)
                    if (is_sampled[i])
                        look_at(rows, i);
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
    static constexpr std::int64_t kFewValues = 1 << 19; // fewer are scanned before other threads have started

    //  bit j % 64 of words_[i, j / 64] = (row i is not zero in column j),  counts_[i] = the number of such bits
    void look_at(const DenseRows<Value> &rows, std::int64_t i) {
        const Value *row = rows.row(i);
        std::int32_t count = 0;
        bool is_missing = false;
        for (std::int64_t j = 0; j < rows.n_columns; ++j)
            is_missing |= row[j] != row[j];
        for (std::int64_t w = 0; w < n_words_; ++w) {
            const std::int64_t n = std::min<std::int64_t>(64, rows.n_columns - 64 * w);
            std::uint64_t word = 0;
            for (std::int64_t j = n; j-- > 0;)
                word = word << 1 | (row[64 * w + j] != Value(0));
            words_[i * n_words_ + w] = word;
            count += std::popcount(word);
        }
        counts_[i] = count;
        if (is_missing)
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
    using Number = Value;
    using Shared = NonzeroColumns<Value>;
    static constexpr bool kLooksAtPlaces = false;

    DenseSample(const DenseRows<Value> &rows, const Shared &nonzero)
        : rows_(rows), nonzero_(nonzero), seen_(static_cast<std::size_t>(nonzero.n_words())) {}

    void take(RowNumbers sample) {
        sample_ = sample;
        n_stored_.resize(sample.size());
        words_.resize(sample.size() * seen_.size());
        for (std::size_t p = 0; p < sample.size(); ++p) {
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

    // values[k] = the value of points[k] in the slot's column; returns the range of values. If the bits say that all
    // are zero, no value is read or written: the range is then [0, 0], and the caller rejects the slot.
    Range<Value> gather(std::int32_t slot, Points points, const std::int32_t *, Value *values) const {
        const std::uint64_t *word = words_.data() + slot / 64, bit = std::uint64_t{1} << slot % 64;
        if (std::none_of(points.begin(), points.end(),
                         [&](std::int32_t point) { return (word[point * seen_.size()] & bit) != 0; }))
            return {Value(0), Value(0)};
        Range<Value> range{value(points[0], slot), value(points[0], slot)};
        for (std::size_t k = 0; k < points.size(); ++k)
            range.include(values[k] = value(points[k], slot));
        return range;
    }

  protected:
    Value value(std::int32_t point, std::int32_t slot) const {
        return rows_.values[sample_[point] * rows_.n_columns + slot];
    }

  private:
    const DenseRows<Value> &rows_;
    const Shared &nonzero_;
    RowNumbers sample_;
    std::vector<std::int32_t> n_stored_;
    std::vector<std::uint64_t> words_; // the sample's bit sets, copied from nonzero_ by point
    std::vector<std::uint64_t> seen_;  // bit set of the columns that are listed already
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

    // values[k] = the value of points[k] in the slot's column
    void gather(std::int32_t slot, Points points, Value *values) const {
        for (std::size_t k = 0; k < points.size(); ++k)
            values[k] = this->value(points[k], slot);
        if (is_categorical(slot))
            std::replace_if(values, values + points.size(), [](Value value) { return std::isnan(value); }, Value(0));
    }

  private:
    const std::vector<bool> &is_categorical_;
};

// CSR rows are copied, by point (entries_) and by slot (slot_points_, slot_values_). Methods as in DenseSample.
template <class Value> class CsrSample {
  public:
    using Number = double;
    struct Shared {};
    static constexpr bool kLooksAtPlaces = true;

    CsrSample(const CsrRows<Value> &rows, const Shared &) : rows_(rows) {}

    void take(RowNumbers sample) {
        columns_.clear();
        entries_.clear();
        point_starts_.assign(1, 0);
        ColumnNumbers slots;
        for (const std::int64_t row : sample) {
            for_each_nonzero(rows_, row, [&](std::int32_t column, double value) {
                const std::int32_t slot = slots.number(column);
                if (slot == n_slots())
                    columns_.push_back(column);
                entries_.push_back({column, slot, value});
            });
            point_starts_.push_back(static_cast<std::int64_t>(entries_.size()));
        }
        list_by_slot();
        seen_.assign(columns_.size(), 0);
        n_lists_ = 0;
    }

    std::int32_t n_slots() const { return static_cast<std::int32_t>(columns_.size()); }
    std::int32_t column(std::int32_t slot) const { return columns_[slot]; }
    std::int64_t n_stored(std::int32_t point) const { return point_starts_[point + 1] - point_starts_[point]; }

    std::int32_t list_slots(Points points, std::int32_t *slots) {
        std::int32_t n = 0;
        ++n_lists_;
        for (const std::int32_t point : points)
            for (std::int64_t k = point_starts_[point]; k < point_starts_[point + 1]; ++k) {
                const std::int32_t slot = entries_[k].slot;
                if (seen_[slot] != n_lists_) {
                    seen_[slot] = n_lists_;
                    slots[n++] = slot;
                }
            }
        return n;
    }

    Range<double> gather(std::int32_t slot, Points points, const std::int32_t *place, double *values) const {
        write_values(slot, points, place, values);
        Range<double> range{values[0], values[0]};
        for (std::size_t k = 1; k < points.size(); ++k)
            range.include(values[k]);
        return range;
    }

  private:
    struct Entry {
        std::int32_t column;
        std::int32_t slot;
        double value;
    };

    //  values[k] = the value of points[k] in the slot's column
    // Few points: binary search for the column in each. Many points: scan the slot's entries; place[p] -
    // place[points[0]] is the position of point p among `points`, if it is one of them, because a node's points are
    // contiguous.
    void write_values(std::int32_t slot, Points points, const std::int32_t *place, double *values) const {
        const auto n_points = static_cast<std::int64_t>(points.size());
        const std::int64_t begin = slot_starts_[slot], end = slot_starts_[slot + 1];
        if (end - begin > 4 * n_points) {
            for (std::int64_t k = 0; k < n_points; ++k)
                values[k] = look_up(points[k], columns_[slot]);
            return;
        }
        std::fill_n(values, n_points, 0.0);
        const std::int32_t first = place[points[0]];
        for (std::int64_t k = begin; k < end; ++k) {
            const std::int64_t at = place[slot_points_[k]] - first;
            if (at >= 0 && at < n_points)
                values[at] = slot_values_[k];
        }
    }

    // Transposes entries_ by counting sort: slot_starts_, slot_points_ and slot_values_ list each slot's entries.
    void list_by_slot() {
        slot_starts_.assign(columns_.size() + 1, 0);
        for (const Entry &entry : entries_)
            ++slot_starts_[entry.slot + 1];
        for (std::size_t s = 0; s < columns_.size(); ++s)
            slot_starts_[s + 1] += slot_starts_[s];
        slot_points_.resize(entries_.size());
        slot_values_.resize(entries_.size());
        std::vector<std::int64_t> next(slot_starts_.begin(), slot_starts_.end() - 1);
        for (std::size_t point = 0; point + 1 < point_starts_.size(); ++point)
            for (std::int64_t k = point_starts_[point]; k < point_starts_[point + 1]; ++k) {
                const std::int64_t at = next[entries_[k].slot]++;
                slot_points_[at] = static_cast<std::int32_t>(point);
                slot_values_[at] = entries_[k].value;
            }
    }

    // A point's value in a column, by binary search.
    double look_up(std::int32_t point, std::int32_t column) const {
        const auto begin = entries_.begin() + point_starts_[point], end = entries_.begin() + point_starts_[point + 1];
        const auto found =
            std::lower_bound(begin, end, column, [](const Entry &entry, std::int32_t c) { return entry.column < c; });
        return found != end && found->column == column ? found->value : 0.0;
    }

    const CsrRows<Value> &rows_;
    std::vector<std::int32_t> columns_; // slot -> column
    std::vector<Entry> entries_;
    std::vector<std::int64_t> point_starts_;
    std::vector<std::int64_t> slot_starts_;
    std::vector<std::int32_t> slot_points_;
    std::vector<double> slot_values_;
    std::vector<std::int32_t> seen_; // slot -> the number of the call of list_slots that listed it last
    std::int32_t n_lists_ = 0;
};

} // namespace isokern
