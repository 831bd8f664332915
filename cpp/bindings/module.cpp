// The Python module isokern._core: a table of contents of the compiled core. Nothing is computed here.
//
// In: NumPy arrays. Out: NumPy arrays, new or filled in place. Samples, trees, Voronoi maps, kernel matrices of cells
// and input checks are bound here; files.cpp, learning.cpp and rivals.cpp bind the rest. Mapping rows, growing trees
// and comparing cells release the GIL.
#include "arrays.hpp"

#include <limits>

#include "../cpu.hpp"
#include "../grid_map.hpp"
#include "../match.hpp"
#include "../nested.hpp"
#include "../sampling.hpp"
#include "../trees.hpp"

namespace isokern::bindings {

void register_files(nb::module_ &m);    // files.cpp
void register_learning(nb::module_ &m); // learning.cpp
void register_rivals(nb::module_ &m);   // rivals.cpp

namespace {

void check_output(std::int64_t n_rows, std::int64_t n_partitionings, const CellsOutput &cells) {
    std::visit(
        [&](const auto &array) {
            if (static_cast<std::int64_t>(array.shape(0)) != n_rows ||
                static_cast<std::int64_t>(array.shape(1)) != n_partitionings)
                throw std::invalid_argument("cells must have a row for each row and a column for each partitioning.");
        },
        cells);
}

// cells[r, i] = the cell of row r in partitioning i, by any map      out: cells, whose dtype is Python's choice
template <class Map>
auto apply(const Map &map, std::int64_t n_partitionings, const RowsArgument &rows, const CellsOutput &cells,
           int threads) {
    const AnyRows any = view(rows);
    const nb::gil_scoped_release release;
    return std::visit(
        [&](const auto &table, const auto &output) {
            check_output(table.n_rows, n_partitionings, cells);
            return map.apply(table, output.data(), threads);
        },
        any, cells);
}

// Maps refer to the arrays of points, which these structs keep alive.
struct Voronoi {
    RowsArgument points;
    VoronoiMap map;
};

struct VoronoiOnGrid {
    RowsArgument points;
    std::unique_ptr<const GridMap> map;
};

// Null, which is None in Python, if the points lie on no grid or the grid does not pay.
VoronoiOnGrid *find_grid_map(const RowsArgument &points, const Table<std::int32_t> &samples) {
    const AnyRows any = view(points);
    std::unique_ptr<const GridMap> map;
    {
        const nb::gil_scoped_release release;
        map = GridMap::find(any, {samples.data(), samples.size()}, static_cast<std::int64_t>(samples.shape(0)));
    }
    return map ? new VoronoiOnGrid{points, std::move(map)} : nullptr;
}

void nested_cells(const RowsArgument &rows, const Table<std::int32_t> &samples, const Vector<std::int64_t> &sizes,
                  const std::vector<CellsOutput> &cells, int threads) {
    const auto n_samples = static_cast<std::int64_t>(samples.shape(0));
    const AnyRows any = view(rows);
    const nb::gil_scoped_release release;
    std::visit(
        [&](const auto &table) {
            if (cells.size() != sizes.size())
                throw std::invalid_argument("cells must have an array for each size.");
            std::vector<CellsOut> out;
            for (const CellsOutput &of_size : cells) {
                check_output(table.n_rows, n_samples, of_size);
                out.push_back(std::visit([](const auto &array) -> CellsOut { return array.data(); }, of_size));
            }
            isokern::nested_cells(table, {samples.data(), samples.size()}, n_samples, {sizes.data(), sizes.size()}, out,
                                  threads);
        },
        any);
}

auto draw_samples(std::int64_t n_rows, std::int64_t n_partitionings, std::int64_t sample_size, std::uint64_t seed) {
    if (n_partitionings < 1 || sample_size < 1 || sample_size > n_rows)
        throw std::invalid_argument("sample_size must be from 1 to n_rows, and n_partitionings at least 1.");
    if (n_partitionings > std::numeric_limits<std::int64_t>::max() / sample_size)
        throw std::invalid_argument("the samples must be fewer than 2^63.");
    std::vector<std::int64_t> samples(static_cast<std::size_t>(n_partitionings * sample_size));
    isokern::draw_samples(n_rows, n_partitionings, sample_size, seed, samples.data());
    return to_array(std::move(samples));
}

auto grow_trees(const RowsArgument &rows, const Table<std::int64_t> &samples, std::int64_t max_depth,
                std::uint64_t seed, int threads) {
    Forest forest;
    const AnyRows any = view(rows);
    {
        const nb::gil_scoped_release release;
        std::visit(
            [&](const auto &table) {
                for (std::size_t k = 0; k < samples.size(); ++k)
                    if (samples.data()[k] < 0 || samples.data()[k] >= table.n_rows)
                        throw std::invalid_argument("samples must be row numbers from 0 to n_rows - 1.");
                forest = isokern::grow_trees(table, samples.data(), static_cast<std::int64_t>(samples.shape(0)),
                                             static_cast<std::int64_t>(samples.shape(1)), max_depth, seed, threads);
            },
            any);
    }
    return nb::make_tuple(to_array(std::move(forest.split)), to_array(std::move(forest.column)),
                          to_array(std::move(forest.left)), to_array(std::move(forest.starts)));
}

TreeMap make_tree_map(const Vector<double> &split, const Vector<std::int32_t> &column, const Vector<std::int32_t> &left,
                      const Vector<std::int64_t> &starts, std::int64_t n_columns, std::int64_t n_cells) {
    const std::size_t n_nodes = split.size();
    if (column.size() != n_nodes || left.size() != n_nodes || starts.size() < 2 ||
        starts.data()[starts.size() - 1] != static_cast<std::int64_t>(n_nodes))
        throw std::invalid_argument("the arrays of a forest must have the same length.");
    return TreeMap(split.data(), column.data(), left.data(), starts.data(),
                   static_cast<std::int64_t>(starts.size()) - 1, n_columns, n_cells);
}

template <class Real>
void match_cells(const CellsArgument &first, const CellsArgument &second, const Output<Real> &shares, int threads) {
    const nb::gil_scoped_release release;
    std::visit(
        [&]<class A, class B>(const Table<A> &a, const Table<B> &b) {
            if constexpr (!std::is_same_v<A, B>)
                throw std::invalid_argument("first and second must have the same dtype.");
            else if (a.shape(1) != b.shape(1) || shares.shape(0) != a.shape(0) || shares.shape(1) != b.shape(0))
                throw std::invalid_argument("first and second must have equally many columns, and shares a row and a "
                                            "column for each of their rows.");
            else
                isokern::match_cells(a.data(), static_cast<std::int64_t>(a.shape(0)), b.data(),
                                     static_cast<std::int64_t>(b.shape(0)), static_cast<std::int64_t>(a.shape(1)),
                                     shares.data(), threads);
        },
        first, second);
}

template <class T> std::int64_t find_nonfinite(const Vector<T> &values) {
    const nb::gil_scoped_release release;
    return first_nonfinite(values.data(), static_cast<std::int64_t>(values.size()));
}

bool is_canonical(const Vector<std::int32_t> &columns, const Vector<std::int64_t> &starts, std::int64_t n_columns) {
    return starts.size() > 0 &&
           is_sound_csr(columns.data(), starts.data(), static_cast<std::int64_t>(starts.size()) - 1,
                        static_cast<std::int64_t>(columns.size()), n_columns);
}

} // namespace
} // namespace isokern::bindings

NB_MODULE(_core, m) {
    using namespace isokern;
    using namespace isokern::bindings;
    using namespace nb::literals;

    m.doc() = "The compiled core of isokern.";
    // A cache may still hold a model when the interpreter exits; users need no warning about that.
    nb::set_leak_warnings(false);
    m.def("instruction_set", [] { return nb::str(name_of(instruction_set())); });
    m.def("draw_samples", &bindings::draw_samples, "n_rows"_a, "n_partitionings"_a, "sample_size"_a, "seed"_a);
    m.def("grow_trees", &bindings::grow_trees, "rows"_a.noconvert(), "samples"_a.noconvert(), "max_depth"_a, "seed"_a,
          "threads"_a);
    m.def("match_cells", &bindings::match_cells<float>, "first"_a.noconvert(), "second"_a.noconvert(),
          "shares"_a.noconvert(), "threads"_a);
    m.def("match_cells", &bindings::match_cells<double>, "first"_a.noconvert(), "second"_a.noconvert(),
          "shares"_a.noconvert(), "threads"_a);
    m.def("find_nonfinite", &find_nonfinite<float>, "values"_a.noconvert());
    m.def("find_nonfinite", &find_nonfinite<double>, "values"_a.noconvert());
    m.def("is_canonical", &is_canonical, "columns"_a.noconvert(), "starts"_a.noconvert(), "n_columns"_a);

    nb::class_<TreeMap>(m, "TreeMap")
        .def(
            "__init__",
            [](TreeMap *self, const Vector<double> &split, const Vector<std::int32_t> &column,
               const Vector<std::int32_t> &left, const Vector<std::int64_t> &starts, std::int64_t n_columns,
               std::int64_t n_cells) {
                new (self) TreeMap(make_tree_map(split, column, left, starts, n_columns, n_cells));
            },
            "split"_a.noconvert(), "column"_a.noconvert(), "left"_a.noconvert(), "starts"_a.noconvert(), "n_columns"_a,
            "n_cells"_a)
        .def(
            "apply",
            [](const TreeMap &map, const RowsArgument &rows, const CellsOutput &cells, int threads) {
                apply(map, map.n_trees(), rows, cells, threads);
            },
            "rows"_a.noconvert(), "cells"_a.noconvert(), "threads"_a);

    nb::class_<Voronoi>(m, "VoronoiMap")
        .def(
            "__init__",
            [](Voronoi *self, const RowsArgument &points, const Table<std::int32_t> &samples,
               const Table<double> &axes) {
                new (self) Voronoi{points,
                                   VoronoiMap(view(points), {samples.data(), samples.size()},
                                              static_cast<std::int64_t>(samples.shape(0)), {axes.data(), axes.size()})};
            },
            "points"_a.noconvert(), "samples"_a.noconvert(), "axes"_a.noconvert())
        .def(
            "apply",
            [](const Voronoi &voronoi, const RowsArgument &rows, const CellsOutput &cells, int threads) {
                apply(voronoi.map, voronoi.map.n_partitionings(), rows, cells, threads);
            },
            "rows"_a.noconvert(), "cells"_a.noconvert(), "threads"_a);

    nb::class_<VoronoiOnGrid>(m, "GridMap")
        .def(
            "apply",
            [](const VoronoiOnGrid &voronoi, const RowsArgument &rows, const CellsOutput &cells, int threads) {
                return apply(*voronoi.map, voronoi.map->n_partitionings(), rows, cells, threads);
            },
            "rows"_a.noconvert(), "cells"_a.noconvert(), "threads"_a);
    m.def("find_grid_map", &find_grid_map, "points"_a.noconvert(), "samples"_a.noconvert(),
          nb::rv_policy::take_ownership);

    m.def("nested_cells", &bindings::nested_cells, "rows"_a.noconvert(), "samples"_a.noconvert(), "sizes"_a.noconvert(),
          "cells"_a.noconvert(), "threads"_a);

    register_files(m);
    register_learning(m);
    register_rivals(m);
}
