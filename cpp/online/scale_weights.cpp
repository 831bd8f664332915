// Scores and steps on the cells of several scales and on a linear term. See scale_weights.hpp.
//
// In: cells, linear rows, weights, targets. Out: scores, changed weights. A row's places, the indices of its cells in
// the tables, are computed once and serve all columns.
#include "online/scale_weights.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "common/threads.hpp"
#include "online/cell_places.hpp"

namespace isokern {
namespace {

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

} // namespace

namespace {

// A model whose trees are renewed between rows, by renew(renewal).
template <class Renew> class RenewingModel : public ScaleModel {
  public:
    RenewingModel(ScaleModel model, std::span<const Renewal> renewals, Renew renew)
        : ScaleModel(std::move(model)), renewals_(renewals), renew_(std::move(renew)) {}

    void end_row() {
        ScaleModel::end_row();
        for (++n_learned_; !renewals_.empty() && renewals_.front().row == n_learned_; renewals_ = renewals_.subspan(1))
            renew_(renewals_.front());
    }

  private:
    std::span<const Renewal> renewals_;
    Renew renew_;
    std::int64_t n_learned_ = 0;
};

// Sets the weights of a tree's cells to those of an untrained model.
void forget(const ScaleWeights &weights, std::int64_t begin, std::int64_t end, float square) {
    for (std::int64_t place = begin; place < end; ++place) {
        std::fill_n(weights.values + place * weights.stride, weights.n_columns, 0.0f);
        if (weights.squares)
            std::fill_n(weights.squares + place * weights.stride, weights.n_columns, square);
    }
}

} // namespace

void learn_scales(const std::optional<AnyCells> &cells, const std::optional<LinearRows> &linear, std::int64_t n_rows,
                  const AnyTarget &targets, const double *row_weights, const AnyLoss &loss, const Step &step,
                  const ScaleWeights &weights, std::int64_t begin, std::int64_t end, std::span<const Renewal> renewals,
                  const Clock &clock, double *scores) {
    const std::int64_t n_all = weights.n_columns, n = end - begin;
    const auto renew = [&](const Renewal &renewal) {
        const std::int64_t *starts = std::visit([](const auto &all) { return all.starts; }, *cells) + renewal.first;
        const auto past = std::visit(
            [&](auto rows) -> AnyCells {
                rows.starts = starts;
                return rows;
            },
            renewal.cells);
        const auto [n_past, t] = std::visit([](const auto &rows) { return std::pair(rows.n_rows, rows.t); }, past);
        ScaleWeights of_tree = weights;
        of_tree.linear_values = of_tree.linear_squares = nullptr;
        forget(of_tree.columns(begin, end), starts[0], starts[t], renewal.square);
        learn_scales(past, std::nullopt, n_past, renewal.targets, renewal.row_weights, loss, step, of_tree, begin, end,
                     {}, Clock(), nullptr);
    };
    RenewingModel model(ScaleModel(cells, linear, weights.columns(begin, end), step), renewals, renew);
    Step of_columns = step;
    of_columns.counted_from.assign(static_cast<std::size_t>(n), n_rows); // count_rows counts
    std::vector<double> own(static_cast<std::size_t>(scores ? n_rows * n : 0));
    Clock own_clock = clock;
    std::visit(
        [&](const auto &target, const auto &any) {
            learn_rows(model, n_rows, n, target.columns(begin), row_weights, losses_from(any, begin), of_columns,
                       own_clock, scores ? own.data() : nullptr);
        },
        targets, loss);
    for (std::int64_t r = 0; scores && r < n_rows; ++r)
        std::copy_n(own.data() + r * n, n, scores + r * n_all + begin);
}

void count_rows(const double *scores, std::int64_t n_rows, std::int64_t n_columns, const AnyTarget &targets,
                const double *row_weights, const AnyLoss &loss, const Step &step, Clock &clock) {
    const auto is_support = [&](std::int64_t r) {
        return std::visit(
            [&](const auto &target, const auto &any) {
                for (std::int64_t k = 0; k < n_columns; ++k) {
                    const double f = scores[r * n_columns + k] / target.unit(r, k);
                    if (r >= step.counted_from[k] && loss_of(any, k).derivative(f, target(r, k)) != 0.0)
                        return true;
                }
                return false;
            },
            targets, loss);
    };
    for (std::int64_t r = 0; r < n_rows; ++r)
        clock.n_support += !(row_weights && row_weights[r] == 0.0) && is_support(r);
    clock.rounds += n_rows;
    clock.scale_sum += static_cast<double>(n_rows);
    clock.n_rows += step.is_new ? n_rows : 0;
}

template <class Value>
void score_scales(const std::optional<AnyCells> &cells, const std::optional<LinearRows> &linear, std::int64_t n_rows,
                  const ScaleView<Value> &weights, double *scores, int threads) {
    // Large tiles: a few thousand rows are scored before another thread has started.
    parallel_tiles(n_rows, 4096, threads, [&] {
        return [&, scorer = ScaleScorer(cells, linear, weights)](std::int64_t begin, std::int64_t end) mutable {
            for (std::int64_t r = begin; r < end; ++r) {
                scorer.read(r);
                scorer.score(scores + r * weights.n_columns);
            }
        };
    });
}

template <class Cell>
void fold_scales(const Cell *paths, std::int64_t t, std::int64_t n_finest, const std::int64_t *starts,
                 const ScaleView<float> &weights, double *folded, int threads) {
    const std::int64_t n_scales = weights.n_scales, n_columns = weights.n_columns;
    const auto fold = [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            const Cell *path = paths + i * n_finest * n_scales;
            double *sums = folded + i * n_finest * n_columns;
            for (std::int64_t c = 0; c < n_finest; ++c, sums += n_columns) {
                std::fill_n(sums, n_columns, 0.0);
                for (std::int64_t l = 0; l < n_scales; ++l, ++path) {
                    const float *cell = weights.values + (starts[i * n_scales + l] + *path) * weights.stride;
                    for (std::int64_t k = 0; k < n_columns; ++k)
                        sums[k] += static_cast<double>(cell[k]);
                }
            }
        }
    };
    parallel_tiles(t, 1, threads, [&] { return fold; });
}

double faded_error(double error, double fade, const double *scores, std::int64_t n_rows, std::int64_t n_columns,
                   const SeenFrom &seen_from, const std::int32_t *targets, const double *row_weights, double *before,
                   double *now) {
    const auto n_classes = static_cast<std::int64_t>(seen_from.size());
    // A single class cannot be missed.
    const auto is_wrong = [&](std::int64_t r) {
        if (n_classes <= 2)
            return n_classes == 2 && r >= std::max(seen_from[0], seen_from[1]) &&
                   (scores[0] > 0.0) != (targets[r] == 0);
        std::int64_t best = targets[r];
        for (std::int64_t k = n_classes - 1; k >= 0; --k) // the first of equal scores wins
            if (r >= seen_from[k] && scores[k] >= scores[best])
                best = k;
        return best != targets[r];
    };
    for (std::int64_t r = 0; r < n_rows; ++r, scores += n_columns) {
        before[r] = error;
        now[r] = is_wrong(r) ? 1.0 : 0.0;
        error = fade * error + (row_weights ? row_weights[r] : 1.0) * now[r];
    }
    return error;
}

double faded_error(double error, double fade, const double *scores, std::int64_t n_rows, std::int64_t n_columns,
                   const ValueTarget &targets, const double *row_weights, const AnyLoss &loss, double *before,
                   double *now) {
    const auto error_of = [&](std::int64_t r, std::int64_t k) {
        return std::visit(
            [&](const auto &any) {
                if constexpr (requires { loss_of(any, k).error(0.0, 0.0); })
                    return loss_of(any, k).error(scores[r * n_columns + k] / targets.unit(r, k), targets(r, k));
                return 0.0; // a loss of classes
            },
            loss);
    };
    for (std::int64_t r = 0; r < n_rows; ++r) {
        before[r] = error;
        double sum = 0.0;
        for (std::int64_t k = 0; k < n_columns; ++k)
            sum += error_of(r, k);
        now[r] = sum / static_cast<double>(n_columns);
        error = fade * error + (row_weights ? row_weights[r] : 1.0) * sum / static_cast<double>(n_columns);
    }
    return error;
}

double faded_total(double total, double fade, std::int64_t n_rows, const double *row_weights) {
    for (std::int64_t r = 0; r < n_rows; ++r)
        total = fade * total + (row_weights ? row_weights[r] : 1.0);
    return total;
}

#define ISOKERN_INSTANTIATE_SCORE(Value)                                                                               \
    template void score_scales(const std::optional<AnyCells> &, const std::optional<LinearRows> &, std::int64_t,       \
                               const ScaleView<Value> &, double *, int);
ISOKERN_INSTANTIATE_SCORE(float)
ISOKERN_INSTANTIATE_SCORE(double)

#define ISOKERN_INSTANTIATE_FOLD(Cell)                                                                                 \
    template void fold_scales(const Cell *, std::int64_t, std::int64_t, const std::int64_t *,                          \
                              const ScaleView<float> &, double *, int);
ISOKERN_INSTANTIATE_FOLD(std::uint8_t)
ISOKERN_INSTANTIATE_FOLD(std::uint16_t)
ISOKERN_INSTANTIATE_FOLD(std::uint32_t)

} // namespace isokern
