// The features of rows for an SVM, and one column of weights for them: scores, updates and prefetches.
//
// In: cells and linear columns of rows, weights. Out: the score of a row, or the weights after a step along its
// features. Weights are double or float. Sums are in double precision in both cases; float halves the memory that the
// random accesses of large tables wait for.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "online/cell_places.hpp"
#include "online/svm.hpp"

namespace isokern {

constexpr std::int64_t kCacheBytes = 1 << 20; // of weights; more than that does not stay in the L2 cache of a core

// The features of rows and one column of weights for them. first: the places of the first row's cells.
template <class Row, class Weight> class Features {
  public:
    Features(const Row &first, const SvmRows &rows, Weight *weights)
        : first_(first), n_scales_(static_cast<std::int64_t>(rows.shares.size())), linear_(rows.linear),
          weights_(weights), linear_weights_(weights + rows.n_cells()) {
        share_ = first.t > 0 ? static_cast<double>(n_scales_) / static_cast<double>(first.t) : 0.0;
        for (const float share : rows.shares)
            squares_.push_back(static_cast<double>(share) * static_cast<double>(share));
        moves_.resize(squares_.size());
        exceeds_cache_ = rows.n_cells() * static_cast<std::int64_t>(sizeof(Weight)) > kCacheBytes;
    }

    //  (1/t) sum_i sum_l u[i, l, phi_il(x)]  +  sum_j z_j v_j
    double score(std::int64_t r) const {
        const Row row = at(r);
        const double sum = n_scales_ == 1   ? sum_over_cells(row, weights_)
                           : n_scales_ == 2 ? sum_over_scales<2>(row)
                                            : sum_over_scales<0>(row);
        return sum * share_ + (linear_ ? linear_score(r) : 0.0);
    }

    //  w += delta phi(x), hence  u[i, l, phi_il(x)] += delta a_l^2,  v_j += delta z_j
    void move(std::int64_t r, double delta) {
        if (n_scales_ == 1)
            add_to_cells(at(r), static_cast<Weight>(delta * squares_[0]), weights_);
        else if (n_scales_ == 2)
            add_to_scales<2>(at(r), delta);
        else
            add_to_scales<0>(at(r), delta);
        if (linear_)
            std::visit([&](const auto &rows) { add(rows, r, delta); }, linear_->rows);
    }

    // Prefetches the cells and dense linear columns of a row. Always inlined, because GCC takes a function that only
    // prefetches for one without effect, and removes calls of it.
    [[gnu::always_inline]] void fetch(std::int64_t r) const {
        fetch_lines(first_.cells + r * first_.t, first_.t);
        if (const auto *dense = linear_ ? std::get_if<DenseRows<float>>(&linear_->rows) : nullptr)
            fetch_lines(dense->row(r), dense->n_columns);
    }

    // Prefetches the weights of a row's finest cells, unless the cache holds all weights anyway. The row's own cells
    // should be in the cache by now.
    [[gnu::always_inline]] void fetch_weights(std::int64_t r) const {
        if (!exceeds_cache_)
            return;
        const Row row = at(r);
        for (std::int64_t k = n_scales_ - 1; k < row.t; k += n_scales_)
            __builtin_prefetch(weights_ + row[k], 1);
    }

  private:
    template <class T> [[gnu::always_inline]] static void fetch_lines(const T *values, std::int64_t n) {
        const auto *bytes = reinterpret_cast<const char *>(values);
        for (std::int64_t b = 0; b < n * static_cast<std::int64_t>(sizeof(T)); b += 64)
            __builtin_prefetch(bytes + b);
    }

    Row at(std::int64_t r) const {
        Row row = first_;
        row.cells += r * row.t;
        return row;
    }

    // Scales first, coarse to fine, then kParts partial sums over the partitionings, as in scale_scorer.hpp. kScales:
    // their number, if the compiler shall know it, else 0.
    template <std::int64_t kScales> double sum_over_scales(const Row &row) const {
        const std::int64_t n_scales = kScales ? kScales : n_scales_;
        double parts[kParts] = {};
        for (std::int64_t i = 0, k = 0; k < row.t; ++i) {
            double path = 0.0;
            for (std::int64_t l = 0; l < n_scales; ++l, ++k)
                path += static_cast<double>(weights_[row[k]]);
            parts[i % kParts] += path;
        }
        return (parts[0] + parts[1]) + (parts[2] + parts[3]);
    }

    template <std::int64_t kScales> void add_to_scales(const Row &row, double delta) {
        const std::int64_t n_scales = kScales ? kScales : n_scales_;
        for (std::int64_t l = 0; l < n_scales; ++l)
            moves_[l] = static_cast<Weight>(delta * squares_[l]);
        for (std::int64_t k = 0; k < row.t;)
            for (std::int64_t l = 0; l < n_scales; ++l, ++k)
                weights_[row[k]] += moves_[l];
    }

    double linear_score(std::int64_t r) const {
        return std::visit([&](const auto &rows) { return product(rows, r); }, linear_->rows);
    }

    double product(const DenseRows<float> &rows, std::int64_t r) const {
        double parts[kParts] = {};
        for (std::int64_t j = 0; j < rows.n_columns; ++j)
            parts[j % kParts] += static_cast<double>(rows.row(r)[j]) * static_cast<double>(linear_weights_[j]);
        return (parts[0] + parts[1]) + (parts[2] + parts[3]);
    }
    double product(const CsrRows<float> &rows, std::int64_t r) const {
        double parts[kParts] = {};
        for (std::int64_t i = rows.starts[r]; i < rows.starts[r + 1]; ++i)
            parts[(i - rows.starts[r]) % kParts] +=
                static_cast<double>(rows.values[i]) * static_cast<double>(linear_weights_[rows.columns[i]]);
        return (parts[0] + parts[1]) + (parts[2] + parts[3]);
    }

    void add(const DenseRows<float> &rows, std::int64_t r, double delta) {
        for (std::int64_t j = 0; j < rows.n_columns; ++j)
            linear_weights_[j] += static_cast<Weight>(delta * static_cast<double>(rows.row(r)[j]));
    }
    void add(const CsrRows<float> &rows, std::int64_t r, double delta) {
        for (std::int64_t i = rows.starts[r]; i < rows.starts[r + 1]; ++i)
            linear_weights_[rows.columns[i]] += static_cast<Weight>(delta * static_cast<double>(rows.values[i]));
    }

    Row first_;
    std::int64_t n_scales_;
    std::optional<LinearRows> linear_;
    Weight *weights_, *linear_weights_;
    double share_; // 1 / number of partitionings
    bool exceeds_cache_;
    std::vector<double> squares_; // by scale: a_l^2
    std::vector<Weight> moves_;   // by scale: delta a_l^2
};

} // namespace isokern
