// The model of learn_scales: scores rows and takes its steps on cells and on the linear term.
//
// In: cells, linear rows, weights; gradients of scores. Out: changed weights. Four weights move at once, in registers.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "online/scale_scorer.hpp"
#include "online/scale_weights.hpp"

namespace isokern {

typedef float FourFloats __attribute__((vector_size(16)));

inline FourFloats load_four(const float *values) {
    FourFloats found;
    std::memcpy(&found, values, sizeof found);
    return found;
}

// Where four weights are that move at once: those of four places in one column, or of two places in two columns.
template <int kWidth> class FourWeights {
  public:
    static constexpr int kPlaces = 4 / kWidth;

    template <class Stride> FourWeights(const Place *places, Stride stride) {
        for (int i = 0; i < kPlaces; ++i)
            offsets_[i] = std::int64_t{places[i]} * stride;
    }

    FourFloats load(const float *table) const {
        Parts parts;
        for (int i = 0; i < kPlaces; ++i) {
            Part part;
            std::memcpy(&part, table + offsets_[i], sizeof part);
            parts[i] = part;
        }
        return std::bit_cast<FourFloats>(parts);
    }

    void store(FourFloats weights, float *table) const {
        const auto parts = std::bit_cast<Parts>(weights);
        for (int i = 0; i < kPlaces; ++i) {
            const Part part = parts[i];
            std::memcpy(table + offsets_[i], &part, sizeof part);
        }
    }

  private:
    // The bits of a place's kWidth weights, as numbers: compilers do not keep pairs of floats in registers.
    using Part = std::conditional_t<kWidth == 1, float, double>;
    typedef Part Parts __attribute__((vector_size(16)));

    std::int64_t offsets_[kPlaces];
};

constexpr double kLargestGradient = 1e15; // so that sums of squares stay finite as floats

// The Model of learn_rows (online_loop.hpp).
class ScaleModel {
  public:
    ScaleModel(const std::optional<AnyCells> &cells, const std::optional<LinearRows> &linear,
               const ScaleWeights &weights, const Step &step)
        : weights_(weights), is_adagrad_(step.schedule == Schedule::adagrad),
          are_near_(reinterpret_cast<std::uintptr_t>(weights.squares) -
                        reinterpret_cast<std::uintptr_t>(weights.values) <
                    kLine / 2),
          scorer_(cells, linear,
                  {weights.values, weights.stride, weights.n_scales, weights.linear_values, weights.linear_stride,
                   weights.n_columns}) {
        const std::int64_t n = scorer_.places().size();
        for (const std::size_t width : {std::size_t{1}, std::size_t{2}}) {
            for (std::int64_t i = 0; i < n; ++i)
                shares_[width - 1].insert(shares_[width - 1].end(), width, weights.shares[i % weights.n_scales]);
            const float last = weights.shares[weights.n_scales - 1]; // as the last place is repeated
            shares_[width - 1].insert(shares_[width - 1].end(), width * RowPlaces::kRepeated, last);
        }
        steps_.resize(static_cast<std::size_t>(weights.n_columns));
    }

    // Where the last row took a step, the next one probably does, too, and needs its sums of squared gradients. Those
    // in the cache line of the weights come with them.
    void read(std::int64_t r) {
        scorer_.read(r, has_moved_ && !are_near_ ? weights_.squares : nullptr);
        has_moved_ = false;
    }
    void last(double *scores) { scorer_.score(scores); }
    bool averages() const { return false; }
    void predict(double *scores) { scorer_.score(scores); }

    // Columns do not depend on each other, so cells move at the end of the row, in two columns at once where both do.
    void end_row() {
        if (has_moved_ && weights_.values)
            with_constant(weights_.stride, [&](auto stride) { move_cells(stride); });
    }

    void step(std::int64_t k, double g, double rate, double distance) {
        g = std::clamp(g, -kLargestGradient, kLargestGradient);
        has_moved_ = true;
        steps_[k] = {g, rate};
        if (weights_.linear_values)
            move_linear(k, g, rate, distance + rate);
    }

    double move(std::int64_t k, double g, double rate) const {
        double sum = 0.0;
        if (weights_.values) {
            const RowPlaces &places = scorer_.places();
            for (std::int64_t i = 0; i < places.size(); ++i) {
                const double a = shares_[0][i];
                sum += is_adagrad_ ? a * std::abs(g) / root(weights_.squares[places.all()[i] * weights_.stride + k], g)
                                   : a * a * std::abs(g);
            }
            sum /= static_cast<double>(places.size() / weights_.n_scales);
        }
        return rate * (sum + (weights_.linear_values ? linear_move(k, g) : 0.0));
    }

  private:
    // sqrt(s + g^2), which is at least |g|, except where g^2 underflows
    static double root(double s, double g) { return std::max(std::sqrt(s + g * g), std::abs(g)); }

    // Moves the cells of all columns that took a step, and forgets the steps.
    template <class Stride> void move_cells(Stride stride) {
        const auto n_columns = std::ssize(steps_);
        for (std::int64_t k = 0; k < n_columns; ++k) {
            if (steps_[k].g == 0.0)
                continue;
            if (k + 1 < n_columns && steps_[k + 1].g != 0.0) {
                move_columns<2>(stride, k);
                ++k;
            } else
                move_columns<1>(stride, k);
        }
        std::fill(steps_.begin(), steps_.end(), ColumnStep());
    }

    // Moves the cells in kWidth columns from column k on. All in registers, so that the roots and divisions of some
    // cells are computed while others are loaded. A repeated place is stored again with the same weights.
    template <int kWidth, class Stride> void move_columns(Stride stride, std::int64_t k) {
        FourFloats factors, sizes, squares;
        for (int i = 0; i < 4; ++i) {
            const auto [g, rate] = steps_[k + i % kWidth];
            factors[i] = static_cast<float>(-rate * g);
            sizes[i] = std::max(static_cast<float>(std::abs(g)), 1e-30f); // no division by zero
            squares[i] = static_cast<float>(g * g);
        }
        const std::span<const Place> places = scorer_.places().all();
        const float *shares = shares_[kWidth - 1].data();
        float *values = weights_.values + k, *all_squares = is_adagrad_ ? weights_.squares + k : nullptr;
        for (std::size_t i = 0; i < places.size(); i += FourWeights<kWidth>::kPlaces, shares += 4) {
            const FourWeights<kWidth> cells(places.data() + i, stride);
            FourFloats moves = factors * load_four(shares);
            if (all_squares) {
                const FourFloats sums = cells.load(all_squares) + squares;
                cells.store(sums, all_squares);
                FourFloats roots;
                for (int j = 0; j < 4; ++j)
                    roots[j] = std::sqrt(sums[j]);
                moves /= roots > sizes ? roots : sizes;
            } else
                moves *= load_four(shares);
            cells.store(cells.load(values) + moves, values);
        }
    }

    // The change of the score by a step of the linear term, for a rate of 1.
    double linear_move(std::int64_t k, double g) const {
        const LinearRow &row = scorer_.row();
        double sum = 0.0;
        for (std::size_t i = 0; i < row.size(); ++i) {
            const double z = row.values()[i], own = g * z; // the gradient of this weight
            if (own != 0.0)
                sum += std::abs(own * z) /
                       (is_adagrad_ ? root(weights_.linear_squares[row.columns()[i] * weights_.linear_stride + k], own)
                                    : 1.0);
        }
        return sum;
    }

    // In separate short loops, so that the compiler vectorises roots, divisions and the sum.
    void move_linear(std::int64_t k, double g, double rate, double reach) {
        const LinearRow &row = scorer_.row();
        const std::size_t n = row.size();
        const std::int64_t stride = weights_.linear_stride, *columns = row.columns();
        const float gradient = static_cast<float>(g), *values = row.values();
        moves_.assign(n, 1.0f);
        float *moves = moves_.data();
        if (is_adagrad_)
            for (std::size_t i = 0; i < n; ++i) {
                const float own = gradient * values[i];
                moves[i] = weights_.linear_squares[columns[i] * stride + k] += own * own;
            }
        for (std::size_t i = 0; i < n; ++i) {
            const float size = std::sqrt(moves[i]);
            moves[i] = gradient * values[i] / (size > 1e-18f ? size : 1e-18f); // 0 stays 0
        }
        const double sum = sum_in_parts(
            n, [&](std::size_t i) { return static_cast<double>(moves[i]) * static_cast<double>(values[i]); });
        const double moved = rate * std::abs(sum);
        const float factor = static_cast<float>(moved > reach ? -rate * reach / moved : -rate);
        for (std::size_t i = 0; i < n; ++i)
            weights_.linear_values[columns[i] * stride + k] += factor * moves[i];
    }

    struct ColumnStep {
        double g = 0.0, rate = 0.0; // no step
    };

    static constexpr std::uintptr_t kLine = 64; // bytes of a cache line

    ScaleWeights weights_;
    bool is_adagrad_;
    bool are_near_;          // whether a cell's weights and squares are mostly in one cache line
    bool has_moved_ = false; // since the last read
    ScaleScorer<float> scorer_;
    std::vector<ColumnStep> steps_;            // of the current row, by column
    std::array<std::vector<float>, 2> shares_; // by place, for steps in one column and in two
    std::vector<float> moves_;                 // of the linear row
};

} // namespace isokern
