// Python bindings of the learners on cells: primal and dual (primal.hpp, dual.hpp).
//
// In: NumPy arrays of cells, starts, targets and weights. Out: the same arrays changed in place, or new ones. Shapes
// are checked here, because the core trusts its arguments; cell numbers are not, callers check them once with
// are_cells. All loops release the GIL. Primal models are changed in place, under the lock of their clock.
#include "bindings/rules.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "common/recycler.hpp"
#include "common/threads.hpp"
#include "online/dual.hpp"
#include "online/moments.hpp"
#include "online/primal.hpp"

namespace isokern::bindings {
namespace {

using bindings::view; // the overloads below would hide it

template <class Array> void check_weights(const Array &table, std::int64_t n_rows, std::size_t n_columns) {
    if (static_cast<std::int64_t>(table.shape(0)) < n_rows || table.shape(1) != n_columns || n_columns == 0)
        throw std::invalid_argument("weights must have a row for each cell or support vector, and a column.");
}

Weights view(const Output<double> &values, const OptionalOutput &sums, const OptionalOutput &squares,
             std::int64_t n_rows) {
    for (const Output<double> *table : {&values, sums ? &*sums : nullptr, squares ? &*squares : nullptr})
        if (table)
            check_weights(*table, n_rows, values.shape(1));
    return {values.data(), sums ? sums->data() : nullptr, squares ? squares->data() : nullptr,
            static_cast<std::int64_t>(values.shape(1))};
}

WeightView view(const Table<double> &values, const OptionalTable &sums, std::int64_t n_rows) {
    check_weights(values, n_rows, values.shape(1));
    if (sums)
        check_weights(*sums, n_rows, values.shape(1));
    return {values.data(), sums ? sums->data() : nullptr, static_cast<std::int64_t>(values.shape(1))};
}

void learn_primal(const CellsArgument &cells, const Vector<std::int64_t> &starts, const TargetArgument &targets,
                  const OptionalVector &row_weights, const Rule &rule, bool naive, const Output<double> &values,
                  const OptionalOutput &sums, const OptionalOutput &squares, Clock &clock, const OptionalOutput &scores,
                  const Copies &copies) {
    check(copies);
    std::visit(
        [&](const auto &array) {
            const auto rows = view(array, starts);
            const Weights weights = view(values, sums, squares, rows.n_cells());
            check_columns(rule, weights.n_columns);
            if (rule.step.schedule == Schedule::adagrad && !weights.squares)
                throw std::invalid_argument("squares must be an array for the schedule adagrad; got None.");
            const AnyTarget any = view(targets, rows.n_rows, weights.n_columns);
            const double *factors = view(row_weights, rows.n_rows);
            double *out = view(scores, rows.n_rows, weights.n_columns);
            const nb::gil_scoped_release release;
            const std::unique_lock lock(clock.lock);
            isokern::learn_primal(rows, any, factors, rule.loss, rule.step, naive, weights, clock, out);
            copy_all(copies);
        },
        cells);
}

void score_primal(const CellsArgument &cells, const Vector<std::int64_t> &starts, const Table<double> &values,
                  const OptionalTable &sums, const Clock &clock, bool naive, const Output<double> &scores, int threads,
                  const Copies &copies) {
    check(copies);
    std::visit(
        [&](const auto &array) {
            const auto rows = view(array, starts);
            const WeightView weights = view(values, sums, rows.n_cells());
            double *out = view(scores, rows.n_rows, weights.n_columns);
            const nb::gil_scoped_release release;
            for (std::int64_t begin = 0; begin == 0 || begin < rows.n_rows; begin += kRowsPerLock) {
                auto some = rows;
                some.cells = rows.row(begin);
                some.n_rows = std::min(kRowsPerLock, rows.n_rows - begin);
                const std::shared_lock lock(clock.lock);
                isokern::score_primal(some, weights, clock, naive, out + begin * weights.n_columns, threads);
                if (begin + some.n_rows == rows.n_rows)
                    copy_all(copies);
            }
        },
        cells);
}

// Memory for copies of a model, of which each replaces the one before.
class Memory {
  public:
    // An array like another one, with any content. Its memory comes back here when nobody uses it any more.
    nb::ndarray<nb::numpy> empty_like(const nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu> &array) const {
        const auto owned = new Owned{recycler_, recycler_->take(array.nbytes())};
        const nb::capsule owner(owned, [](void *p) noexcept {
            const std::unique_ptr<Owned> back(static_cast<Owned *>(p));
            if (const auto recycler = back->recycler.lock())
                recycler->give_back(std::move(back->block));
        });
        std::vector<std::size_t> shape;
        for (std::size_t k = 0; k < array.ndim(); ++k)
            shape.push_back(array.shape(k));
        return {owned->block.memory.get(), shape.size(), shape.data(), owner, nullptr, array.dtype()};
    }

    std::size_t n_bytes() const { return recycler_->n_bytes(); }

  private:
    struct Owned {
        std::weak_ptr<Recycler> recycler;
        Recycler::Block block;
    };

    std::shared_ptr<Recycler> recycler_ = std::make_shared<Recycler>();
};

constexpr std::size_t kFewBytes = 1 << 20; // are copied before other threads have started

// Copies arrays of a model that another thread may learn; returns its clock at the same moment.
Clock copy_model(const Clock &clock, const Copies &copies) {
    check(copies);
    const nb::gil_scoped_release release;
    const std::shared_lock lock(clock.lock);
    copy_all(copies);
    return clock;
}

// The same for models that learn together; returns copies of their clocks.
std::vector<Clock> copy_models(const Clock &guard, const std::vector<const Clock *> &clocks, const Copies &copies,
                               int threads) {
    check(copies);
    if (std::find(clocks.begin(), clocks.end(), nullptr) != clocks.end())
        throw std::invalid_argument("clocks must not be None.");
    std::size_t n_bytes = 0;
    for (const auto &pair : copies)
        n_bytes += pair.second.nbytes();
    const nb::gil_scoped_release release;
    const std::shared_lock lock(guard.lock);
    parallel_tiles(std::ssize(copies), 1, n_bytes < kFewBytes ? 1 : threads,
                   [&] { return [&](std::int64_t k, std::int64_t) { copy(copies[static_cast<std::size_t>(k)]); }; });
    std::vector<Clock> copied;
    for (const Clock *clock : clocks)
        copied.push_back(*clock);
    return copied;
}

void sum_by_cell(const CellsArgument &cells, const Vector<std::int64_t> &starts, const Table<double> &values,
                 const Output<double> &sums) {
    std::visit(
        [&](const auto &array) {
            const auto rows = view(array, starts);
            const auto n_columns = static_cast<std::int64_t>(values.shape(1));
            if (static_cast<std::int64_t>(values.shape(0)) != rows.n_rows)
                throw std::invalid_argument("values must have one row per row of cells.");
            double *out = view(sums, rows.n_cells(), n_columns);
            const nb::gil_scoped_release release;
            isokern::sum_by_cell(rows, values.data(), n_columns, out);
        },
        cells);
}

// Adds support vectors to `support` and `values` in place; returns their new number.
template <class Cell>
std::int64_t learn_dual(const Table<Cell> &cells, const Vector<std::int64_t> &starts, const TargetArgument &targets,
                        const OptionalVector &row_weights, const Rule &rule, const Output<Cell> &support,
                        std::int64_t n_support, const Output<double> &values, const OptionalOutput &sums, Clock &clock,
                        const OptionalOutput &scores) {
    const auto rows = view(cells, starts);
    if (n_support < 0 || static_cast<std::int64_t>(support.shape(0)) - rows.n_rows < n_support ||
        support.shape(1) != cells.shape(1))
        throw std::invalid_argument("there must be room for all rows among the support vectors.");
    const Weights weights = view(values, sums, std::nullopt, n_support + rows.n_rows);
    check_columns(rule, weights.n_columns);
    SupportVectors<Cell> vectors{support.data(), weights, n_support};
    const AnyTarget any = view(targets, rows.n_rows, weights.n_columns);
    const double *factors = view(row_weights, rows.n_rows);
    double *out = view(scores, rows.n_rows, weights.n_columns);
    const nb::gil_scoped_release release;
    isokern::learn_dual(rows, any, factors, rule.loss, rule.step, vectors, clock, out);
    return vectors.n;
}

template <class Cell>
void score_dual(const Table<Cell> &cells, const Vector<std::int64_t> &starts, const Table<Cell> &support,
                std::int64_t n_support, const Table<double> &values, const OptionalTable &sums, const Clock &clock,
                const Output<double> &scores, int threads) {
    const auto rows = view(cells, starts);
    if (n_support < 0 || static_cast<std::int64_t>(support.shape(0)) < n_support || support.shape(1) != cells.shape(1))
        throw std::invalid_argument("support must have at least n_support rows, and as many columns as cells.");
    const WeightView weights = view(values, sums, n_support);
    const SupportView<Cell> vectors{support.data(), weights, n_support};
    double *out = view(scores, rows.n_rows, weights.n_columns);
    const nb::gil_scoped_release release;
    isokern::score_dual(rows, vectors, clock, out, threads);
}

// Whether every cell number is below its partitioning's number of cells.
bool are_cells(const CellsArgument &cells, const Vector<std::int64_t> &starts) {
    return std::visit(
        [&]<class Cell>(const Table<Cell> &array) {
            const auto rows = view(array, starts);
            const nb::gil_scoped_release release;
            return isokern::are_cells(rows);
        },
        cells);
}

// Counts targets, n_rows x n_outputs, in their order. state has a row for each number of TargetMoments, and standard a
// table for each one of StandardTarget; both have a column for each output.
//   in: targets, row_weights (or null for 1)      changed: state      out: standard
void count_targets(const Table<double> &targets, const OptionalVector &row_weights, const Output<double> &state,
                   const nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu> &standard) {
    constexpr std::size_t kNumbers = sizeof(TargetMoments) / sizeof(double),
                          kTables = sizeof(StandardTarget) / sizeof(double);
    const std::size_t n_rows = targets.shape(0), n = targets.shape(1);
    if (state.shape(0) != kNumbers || state.shape(1) != n || standard.shape(0) != kTables ||
        standard.shape(1) != n_rows || standard.shape(2) != n)
        throw std::invalid_argument("state and standard must have a column for each output.");
    const double *weights = view(row_weights, static_cast<std::int64_t>(n_rows));
    const nb::gil_scoped_release release;
    for (std::size_t k = 0; k < n; ++k) {
        std::array<double, kNumbers> numbers;
        for (std::size_t i = 0; i < kNumbers; ++i)
            numbers[i] = state.data()[i * n + k];
        auto moments = std::bit_cast<TargetMoments>(numbers);
        for (std::size_t r = 0; r < n_rows; ++r) {
            const auto next = std::bit_cast<std::array<double, kTables>>(
                next_target(moments, targets.data()[r * n + k], weights ? weights[r] : 1.0));
            for (std::size_t i = 0; i < kTables; ++i)
                standard.data()[(i * n_rows + r) * n + k] = next[i];
        }
        numbers = std::bit_cast<std::array<double, kNumbers>>(moments);
        for (std::size_t i = 0; i < kNumbers; ++i)
            state.data()[i * n + k] = numbers[i];
    }
}

// Checks a clock that Python has stored, for example in a file.
Clock make_clock(std::int64_t rounds, std::int64_t n_support, double scale, double scale_sum, std::int64_t n_rows) {
    const bool is_sound = rounds >= 0 && rounds <= kLargestRound && n_support >= 0 && n_support <= rounds &&
                          scale > 0.0 && scale <= 1.0 && scale_sum >= 0.0 && scale_sum <= static_cast<double>(rounds) &&
                          n_rows >= 0 && n_rows <= rounds;
    if (!is_sound)
        throw std::invalid_argument("a clock must have 0 <= n_support <= rounds, 0 < scale <= 1, 0 <= scale_sum <= "
                                    "rounds and 0 <= n_rows <= rounds.");
    return {rounds, n_support, scale, scale_sum, n_rows};
}

template <class Cell> void register_dual(nb::module_ &m) {
    using namespace nb::literals;
    m.def("learn_dual", &learn_dual<Cell>, "cells"_a.noconvert(), "starts"_a.noconvert(), "targets"_a.noconvert(),
          "row_weights"_a.noconvert().none(), "rule"_a, "support"_a.noconvert(), "n_support"_a, "values"_a.noconvert(),
          "sums"_a.noconvert().none(), "clock"_a, "scores"_a.noconvert().none());
    m.def("score_dual", &score_dual<Cell>, "cells"_a.noconvert(), "starts"_a.noconvert(), "support"_a.noconvert(),
          "n_support"_a, "values"_a.noconvert(), "sums"_a.noconvert().none(), "clock"_a, "scores"_a.noconvert(),
          "threads"_a);
}

} // namespace

void register_online(nb::module_ &m) {
    using namespace nb::literals;

    nb::class_<Rule>(m, "Rule")
        .def_prop_ro("is_new", [](const Rule &rule) { return rule.step.is_new; })
        .def(
            "__init__",
            [](Rule *self, const std::string &loss, double epsilon, const std::string &schedule, double rate,
               double shrinkage, const std::vector<std::int64_t> &counted_from, bool is_new,
               const std::vector<double> &quantiles) {
                const Step step{schedule_by_name(schedule), rate, shrinkage, counted_from, is_new};
                new (self) Rule{loss_by_name(loss, epsilon, quantiles), step};
            },
            "loss"_a, "epsilon"_a, "schedule"_a, "rate"_a, "shrinkage"_a, "counted_from"_a, "is_new"_a = true,
            "quantiles"_a = std::vector<double>());

    nb::class_<Clock>(m, "Clock")
        .def(
            "__init__",
            [](Clock *self, std::int64_t rounds, std::int64_t n_support, double scale, double scale_sum,
               std::int64_t n_rows) { new (self) Clock(make_clock(rounds, n_support, scale, scale_sum, n_rows)); },
            "rounds"_a = 0, "n_support"_a = 0, "scale"_a = 1.0, "scale_sum"_a = 0.0, "n_rows"_a = 0)
        .def_ro("rounds", &Clock::rounds)
        .def_ro("n_support", &Clock::n_support)
        .def_ro("scale", &Clock::scale)
        .def_ro("scale_sum", &Clock::scale_sum)
        .def_ro("n_rows", &Clock::n_rows);

    m.def("learn_primal", &learn_primal, "cells"_a.noconvert(), "starts"_a.noconvert(), "targets"_a.noconvert(),
          "row_weights"_a.noconvert().none(), "rule"_a, "naive"_a, "values"_a.noconvert(), "sums"_a.noconvert().none(),
          "squares"_a.noconvert().none(), "clock"_a, "scores"_a.noconvert().none(), "copies"_a.noconvert() = Copies());
    m.def("score_primal", &score_primal, "cells"_a.noconvert(), "starts"_a.noconvert(), "values"_a.noconvert(),
          "sums"_a.noconvert().none(), "clock"_a, "naive"_a, "scores"_a.noconvert(), "threads"_a,
          "copies"_a.noconvert() = Copies());
    m.def("count_targets", &count_targets, "targets"_a.noconvert(), "row_weights"_a.noconvert().none(),
          "state"_a.noconvert(), "standard"_a.noconvert());
    m.def("copy_model", &copy_model, "clock"_a, "copies"_a.noconvert());
    m.def("copy_models", &copy_models, "guard"_a, "clocks"_a, "copies"_a.noconvert(), "threads"_a = 1);
    nb::class_<Memory>(m, "Memory")
        .def(nb::init<>())
        .def("empty_like", &Memory::empty_like, "array"_a.noconvert())
        .def_prop_ro("n_bytes", &Memory::n_bytes);
    m.def("before_fork", &before_fork, nb::call_guard<nb::gil_scoped_release>());
    m.def("after_fork_in_parent", &after_fork_in_parent);
    m.def("after_fork_in_child", &after_fork_in_child);
    m.def("sum_by_cell", &sum_by_cell, "cells"_a.noconvert(), "starts"_a.noconvert(), "values"_a.noconvert(),
          "sums"_a.noconvert());
    m.def("are_cells", &are_cells, "cells"_a.noconvert(), "starts"_a.noconvert());
    register_dual<std::uint8_t>(m);
    register_dual<std::uint16_t>(m);
    register_dual<std::uint32_t>(m);
}

} // namespace isokern::bindings
