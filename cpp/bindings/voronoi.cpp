// Binds Voronoi cells: maps for one number of cells, on a grid or not, and the search for all numbers of cells.
//
// In: points and samples; then rows. Out: the cells of rows.
#include "bindings/maps.hpp"
#include "voronoi/grid_map.hpp"
#include "voronoi/nested.hpp"
#include "voronoi/voronoi_map.hpp"

namespace isokern::bindings {
namespace {

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

} // namespace

void register_voronoi(nb::module_ &m) {
    using namespace nb::literals;
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

    m.def("nested_cells", &nested_cells, "rows"_a.noconvert(), "samples"_a.noconvert(), "sizes"_a.noconvert(),
          "cells"_a.noconvert(), "threads"_a);
}

} // namespace isokern::bindings
