// Binds Voronoi maps.
//
// In: points and nested samples; then rows. Out: the cells of rows, one array per size of the samples.
#include <nanobind/stl/function.h>

#include "bindings/maps.hpp"
#include "voronoi/voronoi_map.hpp"

namespace isokern::bindings {
namespace {

// Keeps the arrays alive that the map refers to.
struct Voronoi {
    RowsArgument points;
    Table<std::int32_t> samples;
    VoronoiMap map;
};

// Calls Python, which the core does without the GIL, and copies the axes that it returns.
VoronoiMap::FindAxes find_axes(std::function<Table<double>()> in_python) {
    return [in_python = std::move(in_python)] {
        const nb::gil_scoped_acquire acquire;
        const Table<double> axes = in_python();
        return std::vector<double>(axes.data(), axes.data() + axes.size());
    };
}

void make_map(Voronoi *self, const RowsArgument &points, const Table<std::int32_t> &samples,
              const std::vector<std::int64_t> &sizes, std::function<Table<double>()> axes) {
    const AnyRows any = view(points);
    const nb::gil_scoped_release release;
    new (self) Voronoi{points, samples,
                       VoronoiMap(any, {samples.data(), samples.size()}, static_cast<std::int64_t>(samples.shape(0)),
                                  sizes, find_axes(std::move(axes)))};
}

void find_cells(const Voronoi &voronoi, const RowsArgument &rows, const std::vector<CellsOutput> &cells, int threads) {
    const AnyRows any = view(rows);
    const nb::gil_scoped_release release;
    const std::int64_t n_rows = std::visit([](const auto &table) { return table.n_rows; }, any);
    std::vector<CellsOut> out;
    for (const CellsOutput &of_size : cells) {
        check_output(n_rows, voronoi.map.n_partitionings(), of_size);
        out.push_back(std::visit([](const auto &array) -> CellsOut { return array.data(); }, of_size));
    }
    voronoi.map.apply(any, out, threads);
}

} // namespace

void register_voronoi(nb::module_ &m) {
    using namespace nb::literals;
    nb::class_<Voronoi>(m, "VoronoiMap")
        .def("__init__", &make_map, "points"_a.noconvert(), "samples"_a.noconvert(), "sizes"_a, "axes"_a)
        .def("apply", &find_cells, "rows"_a.noconvert(), "cells"_a.noconvert(), "threads"_a)
        .def_prop_ro("is_on_grid", [](const Voronoi &voronoi) { return voronoi.map.is_on_grid(); });
}

} // namespace isokern::bindings
