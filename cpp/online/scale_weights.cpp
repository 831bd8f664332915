// Scores and steps on the cells of several scales and on a linear term. See scale_weights.hpp.
//
// In: cells, linear rows, weights, targets. Out: scores, changed weights. A row's places, the indices of its cells in
// the tables, are computed once and serve all columns.
#include "online/scale_weights.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/threads.hpp"
#include "online/cell_places.hpp"

namespace isokern {
namespace {

// The places of the current row's cells in a table, t L of them.
class RowPlaces {
  public:
    explicit RowPlaces(const std::optional<AnyCells> &cells) : cells_(cells) {
        if (cells_)
            places_.resize(static_cast<std::size_t>(std::visit([](const auto &rows) { return rows.t; }, *cells_)));
    }

    void read(std::int64_t r) {
        if (cells_)
            std::visit(
                [&](const auto &rows) {
                    const auto *cells = rows.row(r);
                    for (std::int64_t i = 0; i < rows.t; ++i)
                        places_[i] = rows.starts[i] + cells[i];
                },
                *cells_);
    }

    std::int64_t size() const { return static_cast<std::int64_t>(places_.size()); }
    const std::int64_t *data() const { return places_.data(); }

  private:
    const std::optional<AnyCells> &cells_;
    std::vector<std::int64_t> places_;
};

//  sums[k] = sum_i sum_l values[place(i, l), k]
// Scales first, coarse to fine; then kParts partial sums over the partitionings, as in sum_over_cells.
template <class Value> class ScaleSums {
  public:
    ScaleSums(std::int64_t n_scales, std::int64_t n_columns, std::int64_t stride)
        : n_scales_(n_scales), n_columns_(n_columns), stride_(stride), parts_(static_cast<std::size_t>(kParts * n_columns)),
          path_(static_cast<std::size_t>(n_columns)) {}

    void operator()(const RowPlaces &places, const Value *values, double *sums) {
        if (n_columns_ <= 2)
            n_columns_ == 1 ? few<1>(places, values, sums) : few<2>(places, values, sums);
        else
            many(places, values, sums);
    }

  private:
    template <int kColumns> void few(const RowPlaces &places, const Value *values, double *sums) const {
        double parts[kParts][kColumns] = {};
        const std::int64_t *place = places.data(), t = places.size() / n_scales_;
        for (std::int64_t i = 0; i < t; ++i) {
            double path[kColumns] = {};
            for (std::int64_t l = 0; l < n_scales_; ++l, ++place)
                for (int k = 0; k < kColumns; ++k)
                    path[k] += static_cast<double>(values[*place * stride_ + k]);
            for (int k = 0; k < kColumns; ++k)
                parts[i % kParts][k] += path[k];
        }
        for (int k = 0; k < kColumns; ++k)
            sums[k] = (parts[0][k] + parts[1][k]) + (parts[2][k] + parts[3][k]);
    }

    void many(const RowPlaces &places, const Value *values, double *sums) {
        std::fill(parts_.begin(), parts_.end(), 0.0);
        double *path = path_.data();
        const std::int64_t *place = places.data(), t = places.size() / n_scales_, n_columns = n_columns_;
        for (std::int64_t i = 0; i < t; ++i) {
            std::fill_n(path, n_columns, 0.0);
            for (std::int64_t l = 0; l < n_scales_; ++l, ++place) {
                const Value *cell = values + *place * stride_;
                for (std::int64_t k = 0; k < n_columns; ++k)
                    path[k] += static_cast<double>(cell[k]);
            }
            double *part = parts_.data() + i % kParts * n_columns;
            for (std::int64_t k = 0; k < n_columns; ++k)
                part[k] += path[k];
        }
        const double *part = parts_.data();
        for (std::int64_t k = 0; k < n_columns; ++k, ++part)
            sums[k] = (part[0] + part[n_columns]) + (part[2 * n_columns] + part[3 * n_columns]);
    }

    std::int64_t n_scales_, n_columns_, stride_;
    std::vector<double> parts_, path_;
};

// The current row of a linear term: visits (column, value), the column of constants last.
class LinearRow {
  public:
    explicit LinearRow(const std::optional<LinearRows> &linear) : linear_(linear) {}

    void read(std::int64_t r) { r_ = r; }

    template <class Visit> void for_each(Visit visit) const {
        std::visit([&](const auto &rows) { visit_row(rows, visit); }, linear_->rows);
        visit(linear_->n_columns(), linear_->constant);
    }

    //  scores[k] += sum_j z_j values[j, k]      in kParts partial sums
    void add(const float *values, std::int64_t n_columns, std::int64_t stride, double *parts, double *scores) const {
        std::fill_n(parts, kParts * n_columns, 0.0);
        std::int64_t i = 0;
        for_each([&](std::int64_t j, float z) {
            double *part = parts + i++ % kParts * n_columns;
            for (std::int64_t k = 0; k < n_columns; ++k)
                part[k] += static_cast<double>(z) * static_cast<double>(values[j * stride + k]);
        });
        for (std::int64_t k = 0; k < n_columns; ++k)
            scores[k] += (parts[k] + parts[n_columns + k]) + (parts[2 * n_columns + k] + parts[3 * n_columns + k]);
    }

  private:
    template <class Visit> void visit_row(const DenseRows<float> &rows, Visit visit) const {
        const float *row = rows.row(r_);
        for (std::int64_t j = 0; j < rows.n_columns; ++j)
            visit(j, row[j]);
    }
    template <class Visit> void visit_row(const CsrRows<float> &rows, Visit visit) const {
        for (std::int64_t k = rows.starts[r_]; k < rows.starts[r_ + 1]; ++k)
            visit(std::int64_t{rows.columns[k]}, rows.values[k]);
    }

    const std::optional<LinearRows> &linear_;
    std::int64_t r_ = 0;
};

// Scores the current row.
template <class Value> class ScaleScorer {
  public:
    ScaleScorer(const std::optional<AnyCells> &cells, const std::optional<LinearRows> &linear,
                const ScaleView<Value> &weights)
        : places_(cells), row_(linear), weights_(weights), sums_(weights.n_scales, weights.n_columns, weights.stride),
          parts_(static_cast<std::size_t>(kParts * weights.n_columns)) {}

    void read(std::int64_t r) {
        places_.read(r);
        row_.read(r);
    }

    void score(double *scores) {
        std::fill_n(scores, weights_.n_columns, 0.0);
        if (weights_.values) {
            sums_(places_, weights_.values, scores);
            const auto t = static_cast<double>(places_.size() / weights_.n_scales);
            for (std::int64_t k = 0; k < weights_.n_columns; ++k)
                scores[k] /= t;
        }
        if (weights_.linear_values)
            row_.add(weights_.linear_values, weights_.n_columns, weights_.stride, parts_.data(), scores);
    }

    const RowPlaces &places() const { return places_; }
    const LinearRow &row() const { return row_; }

  private:
    RowPlaces places_;
    LinearRow row_;
    ScaleView<Value> weights_;
    ScaleSums<Value> sums_;
    std::vector<double> parts_;
};

// The Model of learn_rows (online_loop.hpp).
class ScaleModel {
  public:
    ScaleModel(const std::optional<AnyCells> &cells, const std::optional<LinearRows> &linear,
               const ScaleWeights &weights, const Step &step)
        : weights_(weights), is_adagrad_(step.schedule == Schedule::adagrad),
          scorer_(cells, linear,
                  {weights.values, weights.n_scales, weights.linear_values, weights.n_columns, weights.stride}) {
        const std::int64_t n = scorer_.places().size();
        shares_.resize(static_cast<std::size_t>(n));
        roots_.resize(static_cast<std::size_t>(n));
        for (std::int64_t i = 0; i < n; ++i)
            shares_[i] = weights.shares[i % weights.n_scales];
    }

    void read(std::int64_t r) { scorer_.read(r); }
    void last(double *scores) { scorer_.score(scores); }
    bool averages() const { return false; }
    void predict(double *scores) { scorer_.score(scores); }
    void end_row() {}

    void step(std::int64_t k, double g, double rate, double distance) {
        if (weights_.values)
            is_adagrad_ ? move_each_cell(k, g, rate) : move_all_cells(k, g, rate);
        if (weights_.linear_values)
            move_linear(k, g, rate, distance + rate);
    }

    double move(std::int64_t k, double g, double rate) const {
        double sum = 0.0;
        if (weights_.values) {
            const RowPlaces &places = scorer_.places();
            for (std::int64_t i = 0; i < places.size(); ++i) {
                const double a = shares_[i];
                sum += is_adagrad_ ? a * std::abs(g) / root(square(weights_.squares, places.data()[i], k), g)
                                   : a * a * std::abs(g);
            }
            sum /= static_cast<double>(places.size() / weights_.n_scales);
        }
        return rate * (sum + (weights_.linear_values ? linear_move(k, g) : 0.0));
    }

  private:
    double square(const float *squares, std::int64_t row, std::int64_t k) const {
        return squares[row * weights_.stride + k];
    }

    // sqrt(s + g^2), which is at least |g|, except where g^2 underflows
    static double root(double s, double g) { return std::max(std::sqrt(s + g * g), std::abs(g)); }

    // In separate short loops, so that the compiler vectorises roots and divisions.
    void move_each_cell(std::int64_t k, double g, double rate) {
        const auto n = scorer_.places().size(), stride = weights_.stride;
        const std::int64_t *places = scorer_.places().data();
        const float square = static_cast<float>(g * g), factor = static_cast<float>(-rate * g);
        const float size = std::max(static_cast<float>(std::abs(g)), 1e-30f); // no division by zero
        float *roots = roots_.data();
        for (std::int64_t i = 0; i < n; ++i)
            roots[i] = weights_.squares[places[i] * stride + k] += square;
        for (std::int64_t i = 0; i < n; ++i) {
            const float root = std::sqrt(roots[i]);
            roots[i] = factor * shares_[i] / (root > size ? root : size);
        }
        for (std::int64_t i = 0; i < n; ++i)
            weights_.values[places[i] * stride + k] += roots[i];
    }

    void move_all_cells(std::int64_t k, double g, double rate) {
        const RowPlaces &places = scorer_.places();
        const float factor = static_cast<float>(-rate * g);
        for (std::int64_t i = 0; i < places.size(); ++i)
            weights_.values[places.data()[i] * weights_.stride + k] += factor * shares_[i] * shares_[i];
    }

    // The change of the score by a step of the linear term, for a rate of 1.
    double linear_move(std::int64_t k, double g) const {
        double sum = 0.0;
        scorer_.row().for_each([&](std::int64_t j, float z) {
            const double own = g * z; // the gradient of this weight
            if (own != 0.0)
                sum += std::abs(own * z) / (is_adagrad_ ? root(square(weights_.linear_squares, j, k), own) : 1.0);
        });
        return sum;
    }

    // The moves of the weights are computed once, in a buffer, and then shortened to reach.
    void move_linear(std::int64_t k, double g, double rate, double reach) {
        const std::int64_t stride = weights_.stride;
        const float gradient = static_cast<float>(g);
        values_.clear();
        moves_.clear();
        scorer_.row().for_each([&](std::int64_t j, float z) {
            values_.push_back(z);
            const float own = gradient * z;
            moves_.push_back(is_adagrad_ ? weights_.linear_squares[j * stride + k] += own * own : 1.0f);
        });
        const std::size_t n = values_.size();
        float *moves = moves_.data();
        const float *values = values_.data();
        for (std::size_t i = 0; i < n; ++i) {
            const float own = gradient * values[i], root = std::max(std::sqrt(moves[i]), 1e-18f);
            moves[i] = own / root;
        }
        double sum = 0.0;
        for (std::size_t i = 0; i < n; ++i)
            sum += static_cast<double>(moves[i]) * static_cast<double>(values[i]);
        sum = rate * std::abs(sum);
        const float factor = static_cast<float>(sum > reach ? -rate * reach / sum : -rate);
        std::size_t i = 0;
        scorer_.row().for_each([&](std::int64_t j, float) {
            weights_.linear_values[j * stride + k] += factor * moves[i++];
        });
    }

    ScaleWeights weights_;
    bool is_adagrad_;
    ScaleScorer<float> scorer_;
    std::vector<float> shares_, roots_; // by place
    std::vector<float> values_, moves_; // of the linear row
};

} // namespace

void learn_scales(const std::optional<AnyCells> &cells, const std::optional<LinearRows> &linear, std::int64_t n_rows,
                  const ClassTarget &targets, const double *row_weights, const AnyLoss &loss, const Step &step,
                  const ScaleWeights &weights, std::int64_t begin, std::int64_t end, const Clock &clock,
                  double *scores) {
    const std::int64_t n_all = weights.n_columns, n = end - begin;
    ScaleModel model(cells, linear, weights.columns(begin, end), step);
    Step of_columns = step;
    of_columns.counted_from.assign(static_cast<std::size_t>(n), n_rows); // count_rows counts
    std::vector<std::int32_t> numbers(targets.column, targets.column + n_rows);
    for (std::int32_t &number : numbers)
        number -= static_cast<std::int32_t>(begin);
    std::vector<double> own(static_cast<std::size_t>(n_rows * n));
    Clock own_clock = clock;
    std::visit(
        [&](const auto &any) {
            learn_rows(model, n_rows, n, ClassTarget{numbers.data()}, row_weights, any, of_columns, own_clock,
                       own.data());
        },
        loss);
    for (std::int64_t r = 0; r < n_rows; ++r)
        std::copy_n(own.data() + r * n, n, scores + r * n_all + begin);
}

void count_rows(const double *scores, std::int64_t n_rows, std::int64_t n_columns, const ClassTarget &targets,
                const double *row_weights, const AnyLoss &loss, const Step &step, Clock &clock) {
    const auto is_support = [&](std::int64_t r) {
        return std::visit(
            [&](const auto &any) {
                for (std::int64_t k = 0; k < n_columns; ++k)
                    if (r >= step.counted_from[k] && any.derivative(scores[r * n_columns + k], targets(r, k)) != 0.0)
                        return true;
                return false;
            },
            loss);
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
void fold_scales(const Cell *paths, std::int64_t t, std::int64_t n_finest, std::int64_t n_scales,
                 const std::int64_t *starts, const float *values, std::int64_t n_columns, double *folded, int threads) {
    const auto fold = [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            const Cell *path = paths + i * n_finest * n_scales;
            double *sums = folded + i * n_finest * n_columns;
            for (std::int64_t c = 0; c < n_finest; ++c, sums += n_columns) {
                std::fill_n(sums, n_columns, 0.0);
                for (std::int64_t l = 0; l < n_scales; ++l, ++path) {
                    const float *cell = values + (starts[i * n_scales + l] + *path) * n_columns;
                    for (std::int64_t k = 0; k < n_columns; ++k)
                        sums[k] += static_cast<double>(cell[k]);
                }
            }
        }
    };
    parallel_tiles(t, 1, threads, [&] { return fold; });
}

double faded_error(double error, double fade, const double *scores, std::int64_t n_rows, std::int64_t n_columns,
                   std::int64_t n_scored, const std::int32_t *targets, const double *row_weights) {
    for (std::int64_t r = 0; r < n_rows; ++r, scores += n_columns) {
        error *= fade;
        if (n_scored == 0) // a single class cannot be missed
            continue;
        const std::int64_t best =
            n_scored == 1 ? (scores[0] > 0.0 ? 0 : -1) : std::max_element(scores, scores + n_scored) - scores;
        if (best != targets[r])
            error += row_weights ? row_weights[r] : 1.0;
    }
    return error;
}

#define ISOKERN_INSTANTIATE_SCORE(Value)                                                                               \
    template void score_scales(const std::optional<AnyCells> &, const std::optional<LinearRows> &, std::int64_t,       \
                               const ScaleView<Value> &, double *, int);
ISOKERN_INSTANTIATE_SCORE(float)
ISOKERN_INSTANTIATE_SCORE(double)

#define ISOKERN_INSTANTIATE_FOLD(Cell)                                                                                 \
    template void fold_scales(const Cell *, std::int64_t, std::int64_t, std::int64_t, const std::int64_t *,            \
                              const float *, std::int64_t, double *, int);
ISOKERN_INSTANTIATE_FOLD(std::uint8_t)
ISOKERN_INSTANTIATE_FOLD(std::uint16_t)
ISOKERN_INSTANTIATE_FOLD(std::uint32_t)

} // namespace isokern
