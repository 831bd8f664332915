// Binds isolation trees: growing them from samples, and mapping rows by them.
//
// In: rows and samples; then the arrays of a forest. Out: those arrays; then the cells of rows, at one or all scales.
#include "bindings/maps.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>

#include <nanobind/stl/optional.h>

#include "trees/relevance.hpp"
#include "trees/scales.hpp"
#include "trees/splits.hpp"
#include "trees/tree_map.hpp"

namespace isokern::bindings {
namespace {

// The cells of each leaf of each tree at all scales.
template <class Cell> using Paths = nb::ndarray<Cell, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using PathsOutput = std::variant<Paths<std::uint8_t>, Paths<std::uint16_t>, Paths<std::uint32_t>>;
using PathsArgument = std::variant<Paths<const std::uint8_t>, Paths<const std::uint16_t>, Paths<const std::uint32_t>>;

void check_growth(const AnyRows &any, const Table<std::int64_t> &samples, const GrowthRules &rules) {
    std::visit(
        [&](const auto &table) {
            for (std::size_t k = 0; k < samples.size(); ++k)
                if (samples.data()[k] < 0 || samples.data()[k] >= table.n_rows)
                    throw std::invalid_argument("samples must be row numbers from 0 to n_rows - 1.");
            for (const std::int32_t column : rules.categorical)
                if (column < 0 || column >= table.n_columns)
                    throw std::invalid_argument("categorical columns must be numbers of columns.");
            // A tiny weight would be refused almost forever.
            for (std::int64_t j = 0; rules.column_weights && j < table.n_columns; ++j)
                if (const double weight = rules.column_weights[j];
                    weight != 0.0 && !(weight >= 0x1p-20 && weight <= 1.0))
                    throw std::invalid_argument("column_weights must be 0, or from 2^-20 to 1.");
        },
        any);
}

std::int64_t n_columns_of(const AnyRows &any) {
    return std::visit([](const auto &table) { return table.n_columns; }, any);
}

GrowthRules growth_rules(const AnyRows &any, std::int64_t max_depth, std::uint64_t seed,
                         const Vector<std::int32_t> &categorical, int threads, const OptionalVector &column_weights) {
    if (column_weights && static_cast<std::int64_t>(column_weights->size()) != n_columns_of(any))
        throw std::invalid_argument("column_weights must have one entry for each column.");
    return {max_depth, seed, std::span(categorical.data(), categorical.size()),
            column_weights ? column_weights->data() : nullptr, threads};
}

auto to_arrays(Forest forest) {
    return nb::make_tuple(to_array(std::move(forest.split)), to_array(std::move(forest.column)),
                          to_array(std::move(forest.left)), to_array(std::move(forest.missing_right)),
                          to_array(std::move(forest.n_points)), to_array(std::move(forest.starts)));
}

auto grow_trees(const RowsArgument &rows, const Table<std::int64_t> &samples, std::int64_t max_depth,
                std::uint64_t seed, const Vector<std::int32_t> &categorical, int threads,
                const std::optional<Vector<std::int64_t>> &number, const OptionalVector &column_weights) {
    if (number && number->size() != samples.shape(0))
        throw std::invalid_argument("number must have one entry for each tree.");
    Forest forest;
    const AnyRows any = view(rows);
    const GrowthRules rules = growth_rules(any, max_depth, seed, categorical, threads, column_weights);
    {
        const nb::gil_scoped_release release;
        check_growth(any, samples, rules);
        std::visit(
            [&](const auto &table) {
                forest = isokern::grow_trees(table, samples.data(), static_cast<std::int64_t>(samples.shape(0)),
                                             static_cast<std::int64_t>(samples.shape(1)),
                                             number ? number->data() : nullptr, rules);
            },
            any);
    }
    return to_arrays(std::move(forest));
}

// Grows trees whose arrays a TreeMap has validated. Returns the arrays of the new forest, its number of cells, and the
// former cell of each.
auto grow_further(const Vector<double> &split, const Vector<std::int32_t> &column, const Vector<std::int32_t> &left,
                  const Vector<std::uint8_t> &missing_right, const Vector<std::int64_t> &starts, std::int64_t n_cells,
                  const RowsArgument &rows, const Table<std::int64_t> &samples, const Table<std::int32_t> &cells,
                  std::int64_t max_depth, std::uint64_t seed, const Vector<std::int32_t> &categorical, int threads,
                  const OptionalVector &column_weights) {
    if (samples.shape(0) + 1 != starts.size() || samples.shape(1) == 0 || cells.shape(0) != samples.shape(0) ||
        cells.shape(1) != samples.shape(1))
        throw std::invalid_argument("samples and cells must have a row for each tree, and a column for each point.");
    GrownForest grown;
    const AnyRows any = view(rows);
    const GrowthRules rules = growth_rules(any, max_depth, seed, categorical, threads, column_weights);
    {
        const nb::gil_scoped_release release;
        check_growth(any, samples, rules);
        std::visit(
            [&](const auto &table) {
                const ForestView from{
                    split.data(), column.data(), left.data(), missing_right.data(), {starts.data(), starts.size()},
                    n_cells};
                grown = isokern::grow_further(from, table, samples.data(), cells.data(),
                                              static_cast<std::int64_t>(samples.shape(1)), rules);
            },
            any);
    }
    return nb::make_tuple(to_arrays(std::move(grown.forest)), grown.n_cells, to_array(std::move(grown.parents)));
}

TreeMap make_tree_map(const Vector<double> &split, const Vector<std::int32_t> &column, const Vector<std::int32_t> &left,
                      const Vector<std::uint8_t> &missing_right, const Vector<std::int32_t> &n_points,
                      const Vector<std::int64_t> &starts, const Vector<std::int32_t> &categorical,
                      std::int64_t n_columns, std::int64_t n_cells) {
    const std::size_t n_nodes = split.size();
    if (column.size() != n_nodes || left.size() != n_nodes || missing_right.size() != n_nodes ||
        n_points.size() != n_nodes || starts.size() < 2 ||
        starts.data()[starts.size() - 1] != static_cast<std::int64_t>(n_nodes))
        throw std::invalid_argument("the arrays of a forest must have the same length.");
    const nb::gil_scoped_release release;
    return TreeMap(split.data(), column.data(), left.data(), missing_right.data(), n_points.data(),
                   {starts.data(), starts.size()}, {categorical.data(), categorical.size()}, n_columns, n_cells);
}

// The codes of categories as float64, NaN for those that are missing.
//   in: values; name_of, which returns the name of a value that is not a str, or None if it is missing
auto category_codes(const nb::list &values, const nb::callable &name_of) {
    std::vector<double> codes;
    codes.reserve(nb::len(values));
    for (const nb::handle value : values) {
        const nb::object name = nb::isinstance<nb::str>(value) ? nb::borrow(value) : name_of(value);
        if (name.is_none()) {
            codes.push_back(std::numeric_limits<double>::quiet_NaN());
            continue;
        }
        Py_ssize_t length = 0;
        const char *text = PyUnicode_AsUTF8AndSize(name.ptr(), &length);
        if (text == nullptr)
            throw nb::python_error();
        codes.push_back(category_code(std::string_view(text, static_cast<std::size_t>(length))));
    }
    return to_array(std::move(codes));
}

// cells[r, i] = the cell of row r in tree i      out: cells
void find_cells(const TreeMap &map, const RowsArgument &rows, const CellsOutput &cells, int threads) {
    const AnyRows any = view(rows);
    const nb::gil_scoped_release release;
    std::visit(
        [&](const auto &table, const auto &output) {
            check_output(table.n_rows, map.n_trees(), cells);
            map.apply(table, output.data(), threads);
        },
        any, cells);
}

ScaledTrees scaled_trees(const Vector<std::int32_t> &left, const Vector<std::int32_t> &n_points,
                         const Vector<std::int64_t> &starts, std::int64_t n_cells, std::int64_t n_scales) {
    constexpr std::int64_t kMostScales = 31; // 4^31 is the largest power of four that fits
    const std::span<const std::int64_t> ends(starts.data(), starts.size());
    if (left.size() != n_points.size() || ends.size() < 2 || ends.front() != 0 ||
        ends.back() != static_cast<std::int64_t>(left.size()) || !std::is_sorted(ends.begin(), ends.end()))
        throw std::invalid_argument("the arrays of a forest must have the same length, and starts must ascend from 0.");
    if (n_cells < 1 || n_scales < 1 || n_scales > kMostScales)
        throw std::invalid_argument("n_cells must be at least 1, and n_scales from 1 to 31.");
    return {left.data(), n_points.data(), ends, n_cells, n_scales};
}

// The number of cells of each tree at each scale, n_trees x n_scales, tree by tree.
auto count_scale_cells(const Vector<std::int32_t> &left, const Vector<std::int32_t> &n_points,
                       const Vector<std::int64_t> &starts, std::int64_t n_cells, std::int64_t n_scales) {
    const ScaledTrees trees = scaled_trees(left, n_points, starts, n_cells, n_scales);
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(trees.n_trees() * n_scales));
    {
        const nb::gil_scoped_release release;
        isokern::count_scale_cells(trees, sizes.data());
    }
    return to_array(std::move(sizes));
}

//   out: paths, n_trees x n_cells x n_scales
void find_paths(const Vector<std::int32_t> &left, const Vector<std::int32_t> &n_points,
                const Vector<std::int64_t> &starts, const PathsOutput &paths) {
    std::visit(
        [&]<class Cell>(const Paths<Cell> &output) {
            const auto n_cells = static_cast<std::int64_t>(output.shape(1));
            const ScaledTrees trees =
                scaled_trees(left, n_points, starts, n_cells, static_cast<std::int64_t>(output.shape(2)));
            if (static_cast<std::int64_t>(output.shape(0)) != trees.n_trees() ||
                n_cells - 1 > std::int64_t{std::numeric_limits<Cell>::max()})
                throw std::invalid_argument("paths must have a table for each tree, in a dtype that holds all cells.");
            const nb::gil_scoped_release release;
            isokern::find_paths(trees, output.data());
        },
        paths);
}

//  cells[r, i n_scales + l] = paths[i, leaves[r, i], l]      out: cells
void expand_leaves(const CellsArgument &leaves, const PathsArgument &paths, const CellsOutput &cells, int threads) {
    const nb::gil_scoped_release release;
    std::visit(
        [&]<class A, class B, class C>(const Table<A> &codes, const Paths<B> &table, const Output<C> &output) {
            if constexpr (!std::is_same_v<const A, B> || !std::is_same_v<A, C>)
                throw std::invalid_argument("leaves, paths and cells must have the same dtype.");
            else if (codes.shape(1) != table.shape(0) || output.shape(0) != codes.shape(0) ||
                     output.shape(1) != table.shape(0) * table.shape(2))
                throw std::invalid_argument("leaves must have a column for each tree, and cells one for each scale of "
                                            "each tree.");
            else
                isokern::expand_leaves(codes.data(), static_cast<std::int64_t>(codes.shape(0)), table.data(),
                                       static_cast<std::int64_t>(table.shape(0)),
                                       static_cast<std::int64_t>(table.shape(1)),
                                       static_cast<std::int64_t>(table.shape(2)), output.data(), threads);
        },
        leaves, paths, cells);
}

// By column of the rows, the gains of its splits and how many rows passed them (relevance.hpp).
auto split_gains(const Vector<std::int32_t> &column, const Vector<std::int32_t> &left,
                 const Vector<std::int64_t> &starts, std::int64_t n_cells, std::int64_t n_columns,
                 const CellsArgument &leaves, const Table<double> &targets) {
    const std::span<const std::int64_t> ends(starts.data(), starts.size());
    if (left.size() != column.size() || ends.size() < 2 || ends.front() != 0 || n_cells < 1 || n_columns < 1 ||
        ends.back() != static_cast<std::int64_t>(left.size()) || !std::is_sorted(ends.begin(), ends.end()))
        throw std::invalid_argument("the arrays of a forest must have the same length, and starts must ascend from 0.");
    std::vector<double> gains(static_cast<std::size_t>(n_columns)), visits(gains.size());
    {
        const nb::gil_scoped_release release;
        std::visit(
            [&](const auto &cells) {
                if (cells.shape(0) != targets.shape(0) || cells.shape(1) + 1 != ends.size())
                    throw std::invalid_argument("leaves must have a row per target and a column per tree.");
                isokern::split_gains({column.data(), left.data(), ends, n_cells, targets.data(),
                                      static_cast<std::int64_t>(targets.shape(0)),
                                      static_cast<std::int64_t>(targets.shape(1))},
                                     cells.data(), gains, visits);
            },
            leaves);
    }
    return nb::make_tuple(to_array(std::move(gains)), to_array(std::move(visits)));
}

} // namespace

void register_trees(nb::module_ &m) {
    using namespace nb::literals;
    m.def("category_codes", &category_codes, "values"_a, "name_of"_a);
    m.def("grow_trees", &grow_trees, "rows"_a.noconvert(), "samples"_a.noconvert(), "max_depth"_a, "seed"_a,
          "categorical"_a.noconvert(), "threads"_a, "number"_a.noconvert() = nb::none(),
          "column_weights"_a.noconvert() = nb::none());
    m.def("grow_further", &grow_further, "split"_a.noconvert(), "column"_a.noconvert(), "left"_a.noconvert(),
          "missing_right"_a.noconvert(), "starts"_a.noconvert(), "n_cells"_a, "rows"_a.noconvert(),
          "samples"_a.noconvert(), "cells"_a.noconvert(), "max_depth"_a, "seed"_a, "categorical"_a.noconvert(),
          "threads"_a, "column_weights"_a.noconvert() = nb::none());
    nb::class_<TreeMap>(m, "TreeMap")
        .def(
            "__init__",
            [](TreeMap *self, const Vector<double> &split, const Vector<std::int32_t> &column,
               const Vector<std::int32_t> &left, const Vector<std::uint8_t> &missing_right,
               const Vector<std::int32_t> &n_points, const Vector<std::int64_t> &starts,
               const Vector<std::int32_t> &categorical, std::int64_t n_columns, std::int64_t n_cells) {
                new (self) TreeMap(make_tree_map(split, column, left, missing_right, n_points, starts, categorical,
                                                 n_columns, n_cells));
            },
            "split"_a.noconvert(), "column"_a.noconvert(), "left"_a.noconvert(), "missing_right"_a.noconvert(),
            "n_points"_a.noconvert(), "starts"_a.noconvert(), "categorical"_a.noconvert(), "n_columns"_a, "n_cells"_a)
        .def("apply", &find_cells, "rows"_a.noconvert(), "cells"_a.noconvert(), "threads"_a);
    m.def("split_gains", &split_gains, "column"_a.noconvert(), "left"_a.noconvert(), "starts"_a.noconvert(),
          "n_cells"_a, "n_columns"_a, "leaves"_a.noconvert(), "targets"_a.noconvert());
    m.def("count_scale_cells", &count_scale_cells, "left"_a.noconvert(), "n_points"_a.noconvert(),
          "starts"_a.noconvert(), "n_cells"_a, "n_scales"_a);
    m.def("find_paths", &find_paths, "left"_a.noconvert(), "n_points"_a.noconvert(), "starts"_a.noconvert(),
          "paths"_a.noconvert());
    m.def("expand_leaves", &expand_leaves, "leaves"_a.noconvert(), "paths"_a.noconvert(), "cells"_a.noconvert(),
          "threads"_a);
}

} // namespace isokern::bindings
