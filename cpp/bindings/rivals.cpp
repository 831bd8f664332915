// Python bindings of the paper's rivals: kernel machines, linear learners and AdaRaker.
//
// In: NumPy arrays of rows, targets and state. Out: arrays changed in place, or new ones. Shapes are checked here,
// because the core trusts its arguments. Learning and scoring release the GIL.
#include "bindings/rules.hpp"

#include <mutex>
#include <shared_mutex>
#include <string>

#include <nanobind/stl/string.h>

#include "rivals/adaraker.hpp"
#include "rivals/kernel_machine.hpp"
#include "rivals/linear.hpp"

namespace isokern::bindings {
namespace {

void kernel_matrix(const KernelSpec &spec, const RowsArgument &rows, const RowsArgument &points,
                   const Output<double> &values, int threads) {
    const AnyRows any_rows = view(rows), any_points = view(points);
    const nb::gil_scoped_release release;
    std::visit(
        [&](const auto &a, const auto &b) {
            if (static_cast<std::int64_t>(values.shape(0)) != a.n_rows ||
                static_cast<std::int64_t>(values.shape(1)) != b.n_rows || a.n_columns != b.n_columns)
                throw std::invalid_argument("values must have one row per row and one column per point, and rows and "
                                            "points must have the same number of columns.");
            isokern::kernel_matrix(spec, a, b, values.data(), threads);
        },
        any_rows, any_points);
}

void add_points(KernelMachine &machine, const RowsArgument &rows, const Table<double> &alpha,
                const Vector<std::int64_t> &births) {
    std::visit(
        [&](const auto &table) {
            if (static_cast<std::int64_t>(alpha.shape(0)) != table.n_rows ||
                static_cast<std::int64_t>(alpha.shape(1)) != machine.n_scores() || births.size() != alpha.shape(0))
                throw std::invalid_argument("alpha must have one row per point and one column per score, and births "
                                            "one entry per point.");
            for (std::int64_t r = 0; r < table.n_rows; ++r)
                machine.add(table, r, alpha.data() + r * machine.n_scores(), births.data()[r]);
        },
        view(rows));
}

void check_points(const KernelMachine &machine, std::int64_t n) {
    if (n < 0 || n > machine.points().size())
        throw std::invalid_argument("n_points must be at most the number of support vectors.");
}

void learn_machine(KernelMachine &machine, const RowsArgument &rows, const TargetArgument &targets,
                   const OptionalVector &row_weights, const Rule &rule, Clock &clock, int threads, bool averages,
                   const OptionalOutput &scores) {
    const AnyRows any = view(rows);
    std::visit(
        [&](const auto &table) {
            check_columns(rule, machine.n_scores());
            const AnyTarget target = view(targets, table.n_rows, machine.n_scores());
            const double *factors = view(row_weights, table.n_rows);
            double *out = view(scores, table.n_rows, machine.n_scores());
            const nb::gil_scoped_release release;
            const std::unique_lock lock(machine.lock());
            machine.learn(table, target, factors, rule.loss, rule.step, clock, threads, averages, out);
        },
        any);
}

void score_machine(const KernelMachine &machine, const RowsArgument &rows, std::int64_t n_points,
                   std::int64_t averaged_rounds, const Output<double> &scores, int threads) {
    const AnyRows any = view(rows);
    std::visit(
        [&](const auto &table) {
            if (static_cast<std::int64_t>(scores.shape(0)) != table.n_rows ||
                static_cast<std::int64_t>(scores.shape(1)) != machine.n_scores())
                throw std::invalid_argument("scores must have one row per row and one column per score.");
            const nb::gil_scoped_release release;
            const std::shared_lock lock(machine.lock());
            check_points(machine, n_points);
            machine.score(table, n_points, averaged_rounds, scores.data(), threads);
        },
        any);
}

template <class T> std::vector<T> first(const std::vector<T> &values, std::int64_t n) {
    return {values.begin(), values.begin() + n};
}

// The first n support vectors as CSR arrays, their coefficients (n_scores x n, flattened) and their births.
auto support_of(const KernelMachine &machine, std::int64_t n) {
    std::vector<double> values, alpha;
    std::vector<std::int32_t> columns;
    std::vector<std::int64_t> starts, births;
    {
        const nb::gil_scoped_release release;
        const std::shared_lock lock(machine.lock());
        check_points(machine, n);
        const KernelPoints &points = machine.points();
        starts = first(points.stored_starts(), n + 1);
        values = first(points.stored_values(), starts.back());
        columns = first(points.stored_columns(), starts.back());
        births = first(machine.births(), n);
        for (std::int64_t k = 0; k < machine.n_scores(); ++k)
            alpha.insert(alpha.end(), machine.alpha(k).begin(), machine.alpha(k).begin() + n);
    }
    return std::make_tuple(to_array(std::move(values)), to_array(std::move(columns)), to_array(std::move(starts)),
                           to_array(std::move(alpha)), to_array(std::move(births)));
}

std::int64_t size_of(const KernelMachine &machine) {
    const nb::gil_scoped_release release;
    const std::shared_lock lock(machine.lock());
    return machine.points().size();
}

void learn_linear(const Table<double> &features, const TargetArgument &targets, const OptionalVector &row_weights,
                  const Rule &rule, const Output<double> &values, const OptionalOutput &sums,
                  const nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> &n_updates, Clock &clock,
                  const OptionalOutput &scores) {
    const DenseRows<double> rows = view(features);
    const bool fits = values.shape(0) == features.shape(1) && n_updates.size() == values.shape(1) &&
                      (!sums || (sums->shape(0) == values.shape(0) && sums->shape(1) == values.shape(1)));
    if (!fits)
        throw std::invalid_argument("values must have one row per feature; sums and n_updates must fit values.");
    check_columns(rule, static_cast<std::int64_t>(values.shape(1)));
    const AnyTarget target = view(targets, rows.n_rows, static_cast<std::int64_t>(values.shape(1)));
    const double *factors = view(row_weights, rows.n_rows);
    const LinearWeights weights{values.data(), sums ? sums->data() : nullptr, n_updates.data(),
                                static_cast<std::int64_t>(values.shape(1))};
    double *out = view(scores, rows.n_rows, weights.n_columns);
    const nb::gil_scoped_release release;
    isokern::learn_linear(rows, target, factors, rule.loss, rule.step, weights, clock, out);
}

void project(const RowsArgument &rows, const Table<double> &matrix, const Output<double> &projected, int threads) {
    const AnyRows any = view(rows);
    const nb::gil_scoped_release release;
    std::visit(
        [&](const auto &table) {
            if (static_cast<std::int64_t>(matrix.shape(0)) != table.n_columns ||
                static_cast<std::int64_t>(projected.shape(0)) != table.n_rows || projected.shape(1) != matrix.shape(1))
                throw std::invalid_argument("matrix must have one row per column of rows, and projected the shape of "
                                            "their product.");
            isokern::project(table, matrix.data(), static_cast<std::int64_t>(matrix.shape(1)), projected.data(),
                             threads);
        },
        any);
}

// The state of AdaRaker in Python's arrays: theta (columns, experts, kernels, 2 D), weights (columns, experts,
// kernels), confidences (columns, experts).
struct AdaRaker {
    Vector<double> bandwidths;
    nb::ndarray<float, nb::ndim<4>, nb::c_contig, nb::device::cpu> theta;
    nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu> weights;
    Output<double> confidences;
    double rate, shrinkage;
    bool restarts_cold;

    AdaRakerState state(const Table<double> &projections, std::int64_t rounds) const {
        if (rounds < 0 || rounds > kLargestRound)
            throw std::invalid_argument("rounds must not be negative or more than 2^61.");
        const std::size_t n_columns = theta.shape(0), n_experts = theta.shape(1), n_kernels = bandwidths.size();
        const bool fits = theta.shape(2) == n_kernels && theta.shape(3) == 2 * projections.shape(1) &&
                          weights.shape(0) == n_columns && weights.shape(1) == n_experts &&
                          weights.shape(2) == n_kernels && confidences.shape(0) == n_columns &&
                          confidences.shape(1) == n_experts && n_experts < 62;
        if (!fits)
            throw std::invalid_argument("bandwidths, theta, weights, confidences and projections must have matching "
                                        "shapes, with fewer than 62 experts.");
        return {bandwidths.data(),
                static_cast<std::int64_t>(n_kernels),
                static_cast<std::int64_t>(projections.shape(1)),
                static_cast<std::int64_t>(n_experts),
                static_cast<std::int64_t>(n_columns),
                theta.data(),
                weights.data(),
                confidences.data(),
                rate,
                shrinkage,
                restarts_cold};
    }
};

void score_adaraker(const AdaRaker &model, const Table<double> &projections, std::int64_t rounds,
                    const Output<double> &scores, int threads) {
    const AdaRakerState state = model.state(projections, rounds);
    if (scores.shape(0) != projections.shape(0) || static_cast<std::int64_t>(scores.shape(1)) != state.n_columns)
        throw std::invalid_argument("scores must have one row per row and one column per score.");
    const DenseRows<double> rows = view(projections);
    const nb::gil_scoped_release release;
    isokern::score_adaraker(rows, state, rounds, scores.data(), threads);
}

void learn_adaraker(const AdaRaker &model, const Table<double> &projections, const Vector<std::int32_t> &targets,
                    const OptionalVector &row_weights, std::int64_t rounds, const OptionalOutput &scores) {
    const AdaRakerState state = model.state(projections, rounds);
    const DenseRows<double> rows = view(projections);
    const double *factors = view(row_weights, rows.n_rows);
    if (targets.size() != projections.shape(0))
        throw std::invalid_argument("targets must have one entry per row.");
    double *out = view(scores, rows.n_rows, state.n_columns);
    const nb::gil_scoped_release release;
    isokern::learn_adaraker(rows, targets.data(), factors, state, rounds, out);
}

} // namespace

void register_rivals(nb::module_ &m) {
    using namespace nb::literals;

    nb::class_<KernelSpec>(m, "KernelSpec")
        .def(
            "__init__",
            [](KernelSpec *self, const std::string &name, double factor, double offset, int degree, bool normalised) {
                new (self) KernelSpec(kernel_by_name(name, factor, offset, degree, normalised));
            },
            "name"_a, "factor"_a, "offset"_a, "degree"_a, "normalised"_a);
    m.def("kernel_matrix", &kernel_matrix, "spec"_a, "rows"_a.noconvert(), "points"_a.noconvert(),
          "values"_a.noconvert(), "threads"_a);

    nb::class_<KernelMachine>(m, "KernelMachine")
        .def(nb::init<const KernelSpec &, std::int64_t, std::int64_t>(), "spec"_a, "n_columns"_a, "n_scores"_a)
        .def("add", &add_points, "rows"_a.noconvert(), "alpha"_a.noconvert(), "births"_a.noconvert())
        .def("learn", &learn_machine, "rows"_a.noconvert(), "targets"_a.noconvert(), "row_weights"_a.noconvert().none(),
             "rule"_a, "clock"_a, "threads"_a, "averages"_a = false, "scores"_a.noconvert().none() = nb::none())
        .def("score", &score_machine, "rows"_a.noconvert(), "n_points"_a, "averaged_rounds"_a, "scores"_a.noconvert(),
             "threads"_a)
        .def("support", &support_of, "n_points"_a)
        .def_prop_ro("size", &size_of);

    m.def("learn_linear", &learn_linear, "features"_a.noconvert(), "targets"_a.noconvert(),
          "row_weights"_a.noconvert().none(), "rule"_a, "values"_a.noconvert(), "sums"_a.noconvert().none(),
          "n_updates"_a.noconvert(), "clock"_a, "scores"_a.noconvert().none() = nb::none());
    m.def("project", &project, "rows"_a.noconvert(), "matrix"_a.noconvert(), "projected"_a.noconvert(), "threads"_a);

    nb::class_<AdaRaker>(m, "AdaRaker")
        .def(
            "__init__",
            [](AdaRaker *self, const Vector<double> &bandwidths,
               const nb::ndarray<float, nb::ndim<4>, nb::c_contig, nb::device::cpu> &theta,
               const nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu> &weights,
               const Output<double> &confidences, double rate, double shrinkage, bool restarts_cold) {
                new (self) AdaRaker{bandwidths, theta, weights, confidences, rate, shrinkage, restarts_cold};
            },
            "bandwidths"_a.noconvert(), "theta"_a.noconvert(), "weights"_a.noconvert(), "confidences"_a.noconvert(),
            "rate"_a, "shrinkage"_a, "restarts_cold"_a)
        .def("score", &score_adaraker, "projections"_a.noconvert(), "rounds"_a, "scores"_a.noconvert(), "threads"_a)
        .def("learn", &learn_adaraker, "projections"_a.noconvert(), "targets"_a.noconvert(),
             "row_weights"_a.noconvert().none(), "rounds"_a, "scores"_a.noconvert().none() = nb::none());
}

} // namespace isokern::bindings
