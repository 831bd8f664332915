// Python bindings of the solver of support vector machines (svm.hpp).
//
// In: NumPy arrays of cells, linear rows, targets and costs. Out: the arrays of a solution changed in place. Shapes are
// checked here, because the core trusts its arguments; cell numbers are not, callers check them once with are_cells.
// The loop releases the GIL.
#include "bindings/rules.hpp"

#include <limits>
#include <optional>
#include <span>

#include "online/svm.hpp"

namespace isokern::bindings {
namespace {

using bindings::view; // the overloads below would hide it

using OptionalCells = std::optional<CellsArgument>;
using OptionalStarts = std::optional<Vector<std::int64_t>>;
using LinearArgument = std::optional<std::variant<Table<float>, Csr<float>>>;

SvmRows view(const OptionalCells &cells, const OptionalStarts &starts, const Vector<float> &shares,
             const LinearArgument &linear, std::int64_t n_rows) {
    SvmRows rows{n_rows, std::nullopt, {shares.data(), shares.size()}, std::nullopt};
    if (bool(cells) != bool(starts) || (!cells && !linear) || shares.size() == 0)
        throw std::invalid_argument("rows must be cells with starts and shares, linear rows, or both.");
    const auto check_rows = [&](std::int64_t n) {
        if (n != n_rows)
            throw std::invalid_argument("cells and linear rows must have one row per target.");
    };
    if (cells)
        std::visit(
            [&](const auto &array) {
                const auto known = view(array, *starts);
                check_rows(known.n_rows);
                if (known.t % static_cast<std::int64_t>(shares.size()) != 0)
                    throw std::invalid_argument("cells must have a column for each share.");
                rows.cells = known;
            },
            *cells);
    if (linear)
        std::visit(
            [&](const auto &array) {
                const auto known = view(array);
                check_rows(known.n_rows);
                rows.linear = LinearRows{known, 0.0f};
            },
            *linear);
    return rows;
}

template <class T>
void check_shape(const Output<T> &table, std::int64_t n_rows, std::int64_t n_columns, const char *message) {
    if (static_cast<std::int64_t>(table.shape(0)) != n_rows || static_cast<std::int64_t>(table.shape(1)) != n_columns)
        throw std::invalid_argument(message);
}

std::span<const std::int32_t> view_which(const Vector<std::int32_t> &which, std::int64_t n_rows) {
    const std::span<const std::int32_t> rows(which.data(), which.size());
    if (std::ranges::any_of(rows, [&](std::int32_t r) { return r < 0 || r >= n_rows; }))
        throw std::invalid_argument("which must be numbers of rows.");
    return rows;
}

// Returns the number of passes by column.
template <class Weight>
auto solve_svm(const OptionalCells &cells, const OptionalStarts &starts, const Vector<float> &shares,
               const LinearArgument &linear, const Vector<std::int32_t> &which, const Vector<std::int32_t> &targets,
               const OptionalVector &row_weights, const SvmRule &rule, const Output<Weight> &weights,
               const Output<double> &intercepts, const OptionalOutput &alpha, int threads) {
    const auto n_rows = static_cast<std::int64_t>(targets.size()), n = static_cast<std::int64_t>(weights.shape(0));
    if (n < 1 || n_rows > std::numeric_limits<std::int32_t>::max())
        throw std::invalid_argument("weights must have at least 1 row, and targets must be shorter than 2^31.");
    const SvmRows rows = view(cells, starts, shares, linear, n_rows);
    check_shape(weights, n, rows.n_weights(), "weights must have a column for each cell and linear column.");
    check_shape(intercepts, 1, n, "intercepts must have one row, with an entry per column of scores.");
    if (alpha)
        check_shape(*alpha, n, n_rows, "alpha must have a row per column of scores and an entry per row.");
    const double *factors = view(row_weights, n_rows);
    std::vector<std::int64_t> n_iter(static_cast<std::size_t>(n));
    const SvmSolution<Weight> solution{weights.data(), intercepts.data(), alpha ? alpha->data() : nullptr,
                                       n_iter.data()};
    {
        const std::span<const std::int32_t> taken = view_which(which, n_rows);
        const nb::gil_scoped_release release;
        isokern::solve_svm(rows, taken, {targets.data()}, factors, rule, n, solution, threads);
    }
    return to_array(std::move(n_iter));
}

template <class Weight> void register_solver(nb::module_ &m) {
    using namespace nb::literals;
    m.def("solve_svm", &solve_svm<Weight>, "cells"_a.noconvert().none(), "starts"_a.noconvert().none(),
          "shares"_a.noconvert(), "linear"_a.noconvert().none(), "which"_a.noconvert(), "targets"_a.noconvert(),
          "row_weights"_a.noconvert().none(), "rule"_a, "weights"_a.noconvert(), "intercepts"_a.noconvert(),
          "alpha"_a.noconvert().none(), "threads"_a);
}

} // namespace

void register_svm(nb::module_ &m) {
    using namespace nb::literals;
    nb::class_<SvmRule>(m, "SvmRule")
        .def(nb::init<bool, double, double, double, double, std::int64_t, std::uint64_t>(), "is_squared"_a, "cost"_a,
             "intercept"_a, "tolerance"_a, "gain"_a, "max_iter"_a, "seed"_a);
    register_solver<double>(m);
    register_solver<float>(m);
}

} // namespace isokern::bindings
