// Python bindings of learning on several scales with a linear term (scale_weights.hpp).
//
// In: NumPy arrays of cells, linear rows, targets and weights. Out: the same arrays changed in place. Shapes are
// checked here, because the core trusts its arguments. All loops release the GIL. Several models learn the same rows in
// one step, each in a thread of its own, under the lock of one clock.
#include "bindings/rules.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <tuple>
#include <vector>

#include "common/threads.hpp"
#include "online/adwin.hpp"
#include "online/faded_errors.hpp"
#include "online/scale_scores.hpp"
#include "online/scale_weights.hpp"

namespace isokern::bindings {
namespace {

using bindings::view; // the overloads below would hide it

using OptionalCells = std::optional<CellsArgument>;
using OptionalFloats = std::optional<Output<float>>;
// Of each cell, the weights and, for AdaGrad, their sums of squared gradients.
using CellWeights = nb::ndarray<float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
// Weights of cells, between which others may stand.
template <class Value> using Spaced = nb::ndarray<Value, nb::ndim<2>, nb::device::cpu>;
using LinearArgument = std::optional<std::variant<Table<float>, Csr<float>>>;

// A tree that is renewed after a row, with the cells and targets of rows of the past (scale_weights.hpp).
struct RenewalArgument {
    std::int64_t row, first;
    CellsArgument cells;
    TargetArgument targets;
    OptionalVector row_weights;
    float square;
};

// A model that learns, with the cells that it takes of each row, and the trees that are renewed along the rows.
struct Entrant {
    OptionalCells cells;
    std::optional<Vector<std::int64_t>> starts;
    Vector<float> shares;
    std::optional<CellWeights> weights;
    OptionalFloats linear_values, linear_squares;
    Rule rule;
    Clock *clock;
    Output<double> scores;
    std::vector<RenewalArgument> renewals;
};

Renewal view(const RenewalArgument &renewal, std::int64_t n_rows, std::int64_t t, std::int64_t n_columns) {
    return std::visit(
        [&](const auto &cells) -> Renewal {
            const auto n_past = static_cast<std::int64_t>(cells.shape(0)), width = std::int64_t(cells.shape(1));
            if (renewal.row < 1 || renewal.row > n_rows || renewal.first < 0 || renewal.first + width > t)
                throw std::invalid_argument("a renewal must be of the cells of a tree, after one of the rows.");
            return {renewal.row,
                    renewal.first,
                    CellRows{cells.data(), n_past, width, nullptr},
                    view(renewal.targets, n_past, n_columns),
                    view(renewal.row_weights, n_past),
                    renewal.square};
        },
        renewal.cells);
}

std::optional<AnyCells> view(const OptionalCells &cells, const std::optional<Vector<std::int64_t>> &starts,
                             std::int64_t n_rows, std::int64_t n_scales) {
    if (!cells)
        return std::nullopt;
    if (!starts)
        throw std::invalid_argument("starts must be given along with cells.");
    return std::visit(
        [&](const auto &array) -> AnyCells {
            const auto rows = view(array, *starts);
            if (rows.n_rows != n_rows || n_scales < 1 || rows.t % n_scales != 0)
                throw std::invalid_argument("cells must have a row per target and a column per scale.");
            if (rows.n_cells() > std::int64_t{1} << 32)
                throw std::invalid_argument("a model must have at most 2^32 cells.");
            return rows;
        },
        *cells);
}

std::optional<LinearRows> view(const LinearArgument &linear, float constant, std::int64_t n_rows) {
    if (!linear)
        return std::nullopt;
    return std::visit(
        [&](const auto &array) -> LinearRows {
            const auto rows = view(array);
            if (rows.n_rows != n_rows)
                throw std::invalid_argument("linear must have one row per row of cells.");
            return {rows, constant};
        },
        *linear);
}

// Checks a table of weights; returns its data, or null if there is none.
template <class Any> auto weights_of(const Any &table, std::int64_t n_rows, std::int64_t n_columns) {
    if (table && (static_cast<std::int64_t>(table->shape(0)) != n_rows ||
                  static_cast<std::int64_t>(table->shape(1)) != n_columns))
        throw std::invalid_argument("weights must have a row for each cell or linear column, and a column per score.");
    return table ? table->data() : nullptr;
}

// The distance between rows of weights of cells.
template <class Any> std::int64_t stride_of(const Any &table, std::int64_t n_columns) {
    if (!table || table->shape(0) < 2)
        return n_columns;
    if (n_columns > 1 && table->stride(1) != 1)
        throw std::invalid_argument("the weights of a cell must be side by side.");
    return table->stride(0);
}

std::int64_t n_cells(const std::optional<AnyCells> &cells) {
    return cells ? std::visit([](const auto &rows) { return rows.n_cells(); }, *cells) : 0;
}

ScaleWeights view(const Entrant &entrant, const std::optional<AnyCells> &cells,
                  const std::optional<LinearRows> &linear) {
    const auto n_columns = static_cast<std::int64_t>(entrant.scores.shape(1));
    const std::int64_t n_linear = linear ? linear->n_columns() + 1 : 0;
    const bool is_adagrad = entrant.rule.step.schedule == Schedule::adagrad;
    if (entrant.shares.size() == 0)
        throw std::invalid_argument("shares must have one entry per scale, and one without cells.");
    const auto lacks = [](const auto &table, bool is_wanted) { return is_wanted && !table; };
    if (lacks(entrant.weights, bool(cells)) || lacks(cells, bool(entrant.weights)) ||
        lacks(entrant.linear_squares, entrant.linear_values && is_adagrad) ||
        lacks(linear, bool(entrant.linear_values)))
        throw std::invalid_argument("an entrant must have weights for its cells and for the linear rows.");
    const std::array shape{n_cells(cells), std::int64_t{is_adagrad ? 2 : 1}, n_columns};
    if (entrant.weights && !std::equal(shape.begin(), shape.end(), entrant.weights->shape_ptr()))
        throw std::invalid_argument(
            "weights must have a row for each cell, squares for AdaGrad and a column per score.");
    float *values = entrant.weights ? entrant.weights->data() : nullptr;
    return {values,
            values && is_adagrad ? values + n_columns : nullptr,
            shape[1] * n_columns,
            entrant.shares.data(),
            static_cast<std::int64_t>(entrant.shares.size()),
            weights_of(entrant.linear_values, n_linear, n_columns),
            weights_of(entrant.linear_squares, n_linear, n_columns),
            n_columns,
            n_columns};
}

// The state of an Adwin, as an array.
using Monitor = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
constexpr std::size_t kMonitorSize = sizeof(Adwin) / sizeof(double);

void check_monitor(const Monitor &monitor) {
    if (monitor.size() != kMonitorSize)
        throw std::invalid_argument("monitor must have the size of its state.");
    Adwin state;
    std::memcpy(&state, monitor.data(), sizeof state);
    const auto is_count = [](double most) {
        return [most](double n) { return n >= 0.0 && n <= most && n == std::floor(n); };
    };
    if (!std::all_of(state.n_buckets.begin(), state.n_buckets.end(), is_count(Adwin::kMost)) ||
        !std::all_of(state.changes.begin(), state.changes.end(), is_count(0x1p53)) || !is_count(0x1p53)(state.n_seen) ||
        !is_count(0x1p53)(state.n_changes))
        throw std::invalid_argument("monitor must have whole numbers of buckets.");
}

// The mean error so far, how many changes were found, and the numbers of rows at which the latest were, ascending.
auto read_monitor(const Monitor &monitor) {
    check_monitor(monitor);
    Adwin state;
    std::memcpy(&state, monitor.data(), sizeof state);
    std::vector<std::int64_t> changes;
    for (double k = std::max(0.0, state.n_changes - Adwin::kChanges); k < state.n_changes; k += 1.0)
        changes.push_back(static_cast<std::int64_t>(state.change(k)));
    return std::tuple(state.n_seen > 0.0 ? state.total / state.n_seen : 0.0, static_cast<std::int64_t>(state.n_changes),
                      to_array(std::move(changes)));
}

// Adds the error of the entrant with the least faded error before each row.
//   in: before and now, n x n_rows errors      changed: monitor
void follow_leader(const Monitor &monitor, const double *before, const double *now, std::int64_t n,
                   std::int64_t n_rows) {
    Adwin state;
    std::memcpy(&state, monitor.data(), sizeof state);
    for (std::int64_t r = 0; r < n_rows; ++r) {
        std::int64_t leader = 0;
        for (std::int64_t e = 1; e < n; ++e)
            leader = before[e * n_rows + r] < before[leader * n_rows + r] ? e : leader;
        state.add(std::min(1.0, now[leader * n_rows + r]));
    }
    std::memcpy(monitor.data(), &state, sizeof state);
}

// All entrants learn the rows in one step with `copies`, under the lock of `guard`. errors[e] becomes the entrant's
// faded error, see faded_error; the last entry the faded sum of the rows' weights. history[e, r] is the error before
// row r. The monitor, if there is one, takes the error of the entrant that led at each row.
void learn_scales(const std::vector<const Entrant *> &entrants, const LinearArgument &linear, float constant,
                  const TargetArgument &targets, const OptionalVector &row_weights, Clock &guard,
                  const SeenFrom &seen_from, double fade,
                  const nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu> &errors,
                  const Output<double> &history, int threads, const Copies &copies,
                  const std::optional<Monitor> &monitor) {
    check(copies);
    if (monitor)
        check_monitor(*monitor);
    const auto *classes = std::get_if<Vector<std::int32_t>>(&targets);
    const auto n_rows = static_cast<std::int64_t>(classes ? classes->size() : std::get<1>(targets).first.shape(0));
    const auto n = static_cast<std::int64_t>(entrants.size());
    if (n == 0 || std::any_of(entrants.begin(), entrants.end(), [](const Entrant *one) { return !one; }))
        throw std::invalid_argument("entrants must be at least one, none of them None.");
    if (static_cast<std::int64_t>(errors.size()) != n + 1)
        throw std::invalid_argument("errors must have one entry per entrant, and one for the sum of weights.");
    if (static_cast<std::int64_t>(history.shape(0)) != n || static_cast<std::int64_t>(history.shape(1)) != n_rows)
        throw std::invalid_argument("history must have a row per entrant and a column per row.");
    const auto n_classes = static_cast<std::int64_t>(seen_from.size()),
               n_scored = n_classes > 2 ? n_classes : n_classes - 1;
    const double *factors = view(row_weights, n_rows);
    const auto rows = view(linear, constant, n_rows);
    std::vector<std::optional<AnyCells>> cells;
    std::vector<ScaleWeights> weights;
    for (const Entrant *entrant : entrants) {
        cells.push_back(
            view(entrant->cells, entrant->starts, n_rows, static_cast<std::int64_t>(entrant->shares.size())));
        weights.push_back(view(*entrant, cells.back(), rows));
        check_columns(entrant->rule, weights.back().n_columns);
        if (static_cast<std::int64_t>(entrant->scores.shape(0)) != n_rows || n_scored > weights.back().n_columns)
            throw std::invalid_argument("scores must have a row per row and a column per class.");
    }
    for (std::int64_t r = 0; classes && r < n_rows; ++r) {
        const std::int64_t number = classes->data()[r];
        if (number < (n_classes > 2 ? 0 : -1) || number >= std::max<std::int64_t>(n_scored, 0))
            throw std::invalid_argument("targets must be columns of classes.");
    }
    std::vector<AnyTarget> target;             // by entrant
    std::vector<std::vector<Renewal>> renewed; // by entrant
    for (std::int64_t e = 0; e < n; ++e) {
        target.push_back(view(targets, n_rows, weights[e].n_columns));
        const std::int64_t t = cells[e] ? std::visit([](const auto &any) { return any.t; }, *cells[e]) : 0;
        auto &of_entrant = renewed.emplace_back();
        for (const RenewalArgument &renewal : entrants[e]->renewals)
            of_entrant.push_back(view(renewal, n_rows, t, weights[e].n_columns));
    }
    const nb::gil_scoped_release release;
    const std::unique_lock lock(guard.lock);
    // Where there are more threads than entrants, the columns of each are divided, but few are not: four are scored as
    // quickly as one, and threads wait for each other where one writes into a cache line that another reads.
    constexpr std::int64_t kFewColumns = 4;
    const std::int64_t n_groups =
        std::clamp<std::int64_t>(weights[0].n_columns / kFewColumns, 1, (usable_threads(threads) + n - 1) / n);
    const auto learn = [&](std::int64_t task, std::int64_t) {
        const std::int64_t e = task / n_groups, group = task % n_groups, n_columns = weights[e].n_columns;
        const std::int64_t begin = group * n_columns / n_groups, end = (group + 1) * n_columns / n_groups;
        if (begin < end)
            isokern::learn_scales(cells[e], rows, n_rows, target[e], factors, entrants[e]->rule.loss,
                                  entrants[e]->rule.step, weights[e], begin, end, renewed[e], *entrants[e]->clock,
                                  entrants[e]->scores.data());
    };
    parallel_tiles(n * n_groups, 1, threads, [&] { return learn; });
    std::vector<double> own(static_cast<std::size_t>(n * n_rows)); // errors of the rows, by entrant
    for (std::int64_t e = 0; e < n; ++e) {
        const double *scores = entrants[e]->scores.data();
        const std::int64_t n_columns = weights[e].n_columns;
        const Rule &rule = entrants[e]->rule;
        isokern::count_rows(scores, n_rows, n_columns, target[e], factors, rule.loss, rule.step, *entrants[e]->clock);
        double &error = errors.data()[e], *before = history.data() + e * n_rows, *now = own.data() + e * n_rows;
        if (classes)
            error = isokern::faded_error(error, fade, scores, n_rows, n_columns, seen_from, classes->data(), factors,
                                         before, now);
        else
            error = isokern::faded_error(error, fade, scores, n_rows, n_columns, std::get<ValueTarget>(target[e]),
                                         factors, rule.loss, before, now);
    }
    if (monitor)
        follow_leader(*monitor, history.data(), own.data(), n, n_rows);
    errors.data()[n] = isokern::faded_total(errors.data()[n], fade, n_rows, factors);
    copy_all(copies);
}

template <class Value>
void score_scales(const OptionalCells &cells, const std::optional<Vector<std::int64_t>> &starts, std::int64_t n_scales,
                  const std::optional<Spaced<const Value>> &values, const LinearArgument &linear, float constant,
                  const std::optional<Table<float>> &linear_values, const Clock &guard, const Output<double> &scores,
                  int threads, const Copies &copies) {
    check(copies);
    const auto n_rows = static_cast<std::int64_t>(scores.shape(0));
    const auto n_columns = static_cast<std::int64_t>(scores.shape(1));
    const auto any = view(cells, starts, n_rows, n_scales);
    const auto rows = view(linear, constant, n_rows);
    if (bool(any) != bool(values) || (linear_values && !rows))
        throw std::invalid_argument("a model must have weights for its cells and for the linear rows.");
    const ScaleView<Value> weights{weights_of(values, n_cells(any), n_columns),
                                   stride_of(values, n_columns),
                                   n_scales,
                                   weights_of(linear_values, rows ? rows->n_columns() + 1 : 0, n_columns),
                                   n_columns,
                                   n_columns};
    const nb::gil_scoped_release release;
    const std::shared_lock lock(guard.lock);
    isokern::score_scales(any, rows, n_rows, weights, scores.data(), threads);
    copy_all(copies);
}

// Folds the scales into the finest one, at one moment with `copies`.
template <class Cell>
void fold_scales(const nb::ndarray<const Cell, nb::ndim<3>, nb::c_contig, nb::device::cpu> &paths,
                 const Vector<std::int64_t> &starts, const Spaced<const float> &values, const Clock &guard,
                 const Output<double> &folded, int threads, const Copies &copies) {
    check(copies);
    const auto t = static_cast<std::int64_t>(paths.shape(0)), n_finest = static_cast<std::int64_t>(paths.shape(1)),
               n_scales = static_cast<std::int64_t>(paths.shape(2)), n_columns = std::int64_t(values.shape(1));
    const ScaleView<float> weights{values.data(), stride_of(&values, n_columns), n_scales, nullptr, 0, n_columns};
    if (static_cast<std::int64_t>(starts.size()) != t * n_scales + 1 ||
        static_cast<std::int64_t>(values.shape(0)) < starts.data()[t * n_scales] ||
        static_cast<std::int64_t>(folded.shape(0)) != t * n_finest ||
        static_cast<std::int64_t>(folded.shape(1)) != n_columns)
        throw std::invalid_argument("paths, starts, values and folded must have the cells of one map.");
    const nb::gil_scoped_release release;
    const std::shared_lock lock(guard.lock);
    isokern::fold_scales(paths.data(), t, n_finest, starts.data(), weights, folded.data(), threads);
    copy_all(copies);
}

template <class Value> void register_score(nb::module_ &m) {
    using namespace nb::literals;
    m.def("score_scales", &score_scales<Value>, "cells"_a.noconvert().none(), "starts"_a.noconvert().none(),
          "n_scales"_a, "values"_a.noconvert().none(), "linear"_a.noconvert().none(), "constant"_a,
          "linear_values"_a.noconvert().none(), "guard"_a, "scores"_a.noconvert(), "threads"_a,
          "copies"_a.noconvert() = Copies());
}

template <class Cell> void register_fold(nb::module_ &m) {
    using namespace nb::literals;
    m.def("fold_scales", &fold_scales<Cell>, "paths"_a.noconvert(), "starts"_a.noconvert(), "values"_a.noconvert(),
          "guard"_a, "folded"_a.noconvert(), "threads"_a, "copies"_a.noconvert() = Copies());
}

} // namespace

void register_scales(nb::module_ &m) {
    using namespace nb::literals;
    nb::class_<Entrant>(m, "Entrant")
        .def(
            "__init__",
            [](Entrant *self, const OptionalCells &cells, const std::optional<Vector<std::int64_t>> &starts,
               const Vector<float> &shares, const std::optional<CellWeights> &weights,
               const OptionalFloats &linear_values, const OptionalFloats &linear_squares, const Rule &rule,
               Clock *clock, const Output<double> &scores, const std::vector<const RenewalArgument *> &renewals) {
                if (std::find(renewals.begin(), renewals.end(), nullptr) != renewals.end())
                    throw std::invalid_argument("renewals must not be None.");
                new (self)
                    Entrant{cells, starts, shares, weights, linear_values, linear_squares, rule, clock, scores, {}};
                for (const RenewalArgument *renewal : renewals)
                    self->renewals.push_back(*renewal);
            },
            "cells"_a.noconvert().none(), "starts"_a.noconvert().none(), "shares"_a.noconvert(),
            "weights"_a.noconvert().none(), "linear_values"_a.noconvert().none(), "linear_squares"_a.noconvert().none(),
            "rule"_a, "clock"_a, "scores"_a.noconvert(), "renewals"_a = std::vector<const RenewalArgument *>(),
            nb::keep_alive<1, 9>());
    nb::class_<RenewalArgument>(m, "Renewal")
        .def(
            "__init__",
            [](RenewalArgument *self, std::int64_t row, std::int64_t first, const CellsArgument &cells,
               const TargetArgument &targets, const OptionalVector &row_weights,
               float square) { new (self) RenewalArgument{row, first, cells, targets, row_weights, square}; },
            "row"_a, "first"_a, "cells"_a.noconvert(), "targets"_a.noconvert(), "row_weights"_a.noconvert().none(),
            "square"_a);
    m.def("learn_scales", &learn_scales, "entrants"_a, "linear"_a.noconvert().none(), "constant"_a,
          "targets"_a.noconvert(), "row_weights"_a.noconvert().none(), "guard"_a, "seen_from"_a, "fade"_a,
          "errors"_a.noconvert(), "history"_a.noconvert(), "threads"_a, "copies"_a.noconvert() = Copies(),
          "monitor"_a.noconvert().none() = nb::none());
    m.def("new_monitor", [] { return to_array(std::vector<double>(kMonitorSize)); });
    m.def("read_monitor", &read_monitor, "monitor"_a.noconvert());
    register_score<float>(m);
    register_score<double>(m);
    register_fold<std::uint8_t>(m);
    register_fold<std::uint16_t>(m);
    register_fold<std::uint32_t>(m);
}

} // namespace isokern::bindings
