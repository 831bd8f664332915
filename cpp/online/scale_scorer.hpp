// Scores one row at a time: the loops of scale_scores.hpp, which the learner shares.
//
// In: cells, linear rows, weights. Out: scores. A row's places, the indices of its cells in the tables, are computed
// once and serve all columns.
#pragma once

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <type_traits>
#include <vector>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "online/cell_places.hpp"
#include "online/scale_scores.hpp"

namespace isokern {

using Place = std::uint32_t; // the index of a cell in a table; 32 bits, because the places of a row are computed often

// The places of the current row's cells in a table, t L of them. Behind them the last one is repeated, so that places
// can be taken four at a time.
class RowPlaces {
  public:
    static constexpr std::size_t kRepeated = 3;

    explicit RowPlaces(const std::optional<AnyCells> &cells) : cells_(cells) {
        if (cells_)
            std::visit(
                [&](const auto &rows) {
                    starts_.assign(rows.starts, rows.starts + rows.t);
                    places_.resize(starts_.size() + kRepeated);
                    next_.resize(starts_.size() + kRepeated);
                },
                *cells_);
    }

    // Makes row r the current one.
    void read(std::int64_t r) {
        if (cells_)
            std::visit([&](const auto &rows) { find(rows, r, places_); }, *cells_);
    }

    // Makes row r the current one, and calls fetch(place) for the places of row r + 1, so that the cache lines of their
    // weights are on their way while row r is learned.
    template <class Fetch> void read_ahead(std::int64_t r, Fetch fetch) {
        if (cells_)
            std::visit(
                [&](const auto &rows) {
                    if (next_row_ == r)
                        places_.swap(next_);
                    else
                        find(rows, r, places_);
                    next_row_ = r + 1;
                    if (next_row_ == rows.n_rows)
                        return;
                    find(rows, next_row_, next_);
                    for (const Place place : std::span(next_).first(starts_.size()))
                        fetch(place);
                },
                *cells_);
    }

    std::int64_t size() const { return std::ssize(starts_); }
    std::span<const Place> all() const { return std::span(places_).first(starts_.size()); }

  private:
    template <class Rows> void find(const Rows &rows, std::int64_t r, std::vector<Place> &places) const {
        const auto *cells = rows.row(r);
        const Place *starts = starts_.data();
        Place *found = places.data();
        for (std::int64_t i = 0; i < rows.t; ++i)
            found[i] = starts[i] + static_cast<Place>(cells[i]);
        std::fill_n(found + rows.t, kRepeated, found[std::max<std::int64_t>(rows.t, 1) - 1]);
    }

    const std::optional<AnyCells> &cells_;
    std::vector<Place> starts_, places_, next_;
    std::int64_t next_row_ = -1; // the row whose places next_ has
};

// Calls use(n), with a constant where n is 1 or 2, for which the compiler leaves out loops and multiplications.
template <class Use> void with_constant(std::int64_t n, Use use) {
    if (n == 1)
        use(std::integral_constant<std::int64_t, 1>());
    else if (n == 2)
        use(std::integral_constant<std::int64_t, 2>());
    else
        use(n);
}

// Sums of kColumns columns, in one vector. They are passed by reference, because how functions return vectors depends
// on the instruction set.
template <int kColumns> struct ColumnSums {
    typedef double Doubles __attribute__((vector_size(kColumns * sizeof(double))));

    template <class Value> static void add(const Value *values, Doubles &sums) {
        typedef Value Values __attribute__((vector_size(kColumns * sizeof(Value))));
        Values found;
        std::memcpy(&found, values, sizeof found);
        sums += __builtin_convertvector(found, Doubles);
    }
};
#ifdef __SSE2__
// GCC converts two floats one by one.
template <> template <> inline void ColumnSums<2>::add(const float *values, Doubles &sums) {
    sums += _mm_cvtps_pd(_mm_castsi128_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(values))));
}
#endif
template <> struct ColumnSums<1> {
    using Doubles = double;
    template <class Value> static void add(const Value *value, double &sum) { sum += static_cast<double>(*value); }
};

//  sums[k] = sum_i sum_l values[place(i, l), k]
// Scales first, coarse to fine; then kParts partial sums over the partitionings, as in sum_over_cells. kColumns columns
// at a time, so that the sums stay in registers; for that, the compiler wants them as single variables.
template <int kColumns, class Count, class Stride, class Value>
void sum_columns(std::span<const Place> places, Count n_scales, const Value *values, Stride stride, double *sums) {
    static_assert(kParts == 4);
    using Sums = ColumnSums<kColumns>;
    typename Sums::Doubles a{}, b{}, c{}, d{};
    const Place *place = places.data(), *end = place + places.size();
    const auto add_path = [&](auto &part) { // of one partitioning
        if (n_scales == 1)                  // a part is never -0, so 0 + x need not be computed first
            return Sums::add(values + std::int64_t{*place++} * stride, part);
        typename Sums::Doubles path{};
        for (std::int64_t l = 0; l < n_scales; ++l)
            Sums::add(values + std::int64_t{*place++} * stride, path);
        part += path;
    };
    while (end - place >= kParts * n_scales) {
        add_path(a);
        add_path(b);
        add_path(c);
        add_path(d);
    }
    if (place < end)
        add_path(a);
    if (place < end)
        add_path(b);
    if (place < end)
        add_path(c);
    const auto sum = (a + b) + (c + d);
    std::memcpy(sums, &sum, sizeof sum);
}

template <class Value>
void sum_all_columns(std::span<const Place> places, const ScaleView<Value> &weights, double *sums) {
    with_constant(weights.n_scales, [&](auto n_scales) {
        std::int64_t k = 0;
        for (; k + 4 <= weights.n_columns; k += 4)
            sum_columns<4>(places, n_scales, weights.values + k, weights.stride, sums + k);
        for (; k + 2 <= weights.n_columns; k += 2)
            sum_columns<2>(places, n_scales, weights.values + k, weights.stride, sums + k);
        if (k < weights.n_columns)
            with_constant(weights.stride,
                          [&](auto stride) { sum_columns<1>(places, n_scales, weights.values + k, stride, sums + k); });
    });
}

//  sum_i term(i),  0 <= i < n,  in kParts partial sums
// They are single variables, which stay in registers.
template <class Term> double sum_in_parts(std::size_t n, Term term) {
    static_assert(kParts == 4);
    double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
    std::size_t i = 0;
    for (; i + kParts <= n; i += kParts) {
        a += term(i);
        b += term(i + 1);
        c += term(i + 2);
        d += term(i + 3);
    }
    if (i < n)
        a += term(i);
    if (i + 1 < n)
        b += term(i + 1);
    if (i + 2 < n)
        c += term(i + 2);
    return (a + b) + (c + d);
}

// The current row of a linear term: its columns and values, the constant last.
class LinearRow {
  public:
    explicit LinearRow(const std::optional<LinearRows> &linear) : linear_(linear) {}

    void read(std::int64_t r) {
        if (!linear_)
            return;
        std::visit([&](const auto &rows) { copy(rows, r); }, linear_->rows);
        columns_.back() = linear_->n_columns();
        values_.back() = linear_->constant;
    }

    std::size_t size() const { return values_.size(); }
    const std::int64_t *columns() const { return columns_.data(); }
    const float *values() const { return values_.data(); }

    //  scores[k] += sum_j z_j weights[j, k]      in kParts partial sums
    void add(const float *weights, std::int64_t n_columns, std::int64_t stride, double *scores) const {
        for (std::int64_t k = 0; k < n_columns; ++k)
            scores[k] += sum_in_parts(size(), [&](std::size_t i) {
                return static_cast<double>(values_[i]) * static_cast<double>(weights[columns_[i] * stride + k]);
            });
    }

  private:
    void copy(const DenseRows<float> &rows, std::int64_t r) {
        if (columns_.empty()) {
            columns_.resize(static_cast<std::size_t>(rows.n_columns + 1));
            std::iota(columns_.begin(), columns_.end(), std::int64_t{0});
            values_.resize(columns_.size());
        }
        std::copy_n(rows.row(r), rows.n_columns, values_.begin());
    }
    void copy(const CsrRows<float> &rows, std::int64_t r) {
        const std::int64_t begin = rows.starts[r], end = rows.starts[r + 1];
        columns_.assign(rows.columns + begin, rows.columns + end);
        values_.assign(rows.values + begin, rows.values + end);
        columns_.push_back(0);
        values_.push_back(0.0f);
    }

    const std::optional<LinearRows> &linear_;
    std::vector<std::int64_t> columns_;
    std::vector<float> values_;
};

// Scores the current row.
template <class Value> class ScaleScorer {
  public:
    ScaleScorer(const std::optional<AnyCells> &cells, const std::optional<LinearRows> &linear,
                const ScaleView<Value> &weights)
        : places_(cells), row_(linear), weights_(weights), is_large_(cells && table_size(*cells) > kCached) {}

    // The next row's weights are fetched ahead, and its sums of squared gradients unless they are null.
    void read(std::int64_t r, const float *squares = nullptr) {
        if (is_large_)
            places_.read_ahead(r, [this, squares](Place place) {
                fetch_to_l2(weights_.values + place * weights_.stride);
                if (squares)
                    fetch_to_l2(squares + place * weights_.stride);
            });
        else
            places_.read(r);
        row_.read(r);
    }

    void score(double *scores) {
        std::fill_n(scores, weights_.n_columns, 0.0);
        if (weights_.values) {
            sum_all_columns(places_.all(), weights_, scores);
            const auto t = static_cast<double>(places_.size() / weights_.n_scales);
            for (std::int64_t k = 0; k < weights_.n_columns; ++k)
                scores[k] /= t;
        }
        if (weights_.linear_values)
            row_.add(weights_.linear_values, weights_.n_columns, weights_.linear_stride, scores);
    }

    const RowPlaces &places() const { return places_; }
    const LinearRow &row() const { return row_; }

  private:
    // Bytes of weights that the second level holds: up to here, fetching ahead costs more than it saves.
    static constexpr std::int64_t kCached = 1 << 20;

    std::int64_t table_size(const AnyCells &cells) const {
        return std::visit([](const auto &rows) { return rows.starts[rows.t] - rows.starts[0]; }, cells) *
               weights_.stride * static_cast<std::int64_t>(sizeof(Value));
    }

    RowPlaces places_;
    LinearRow row_;
    ScaleView<Value> weights_;
    bool is_large_; // whether weights are fetched ahead
};

} // namespace isokern
