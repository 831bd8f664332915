// Binds what looks into models: Shapley values of trees, and the search for similar rows.
//
// In: the arrays of a forest and the values of its leaves, rows, background rows; panels of cells. Out: Shapley values,
// added in place; the most similar rows, filled in place.
#include "bindings/arrays.hpp"

#include <cmath>
#include <span>
#include <type_traits>

#include "inspection/equal_counts.hpp"
#include "inspection/shapley.hpp"
#include "inspection/similar.hpp"

namespace isokern::bindings {
namespace {

template <class T> using Cube = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// Trees that share their arrays with Python.
class OwnedTrees {
  public:
    OwnedTrees(Vector<double> split, Vector<std::int32_t> column, Vector<std::int64_t> left,
               Vector<std::uint8_t> missing_right, Vector<std::int32_t> n_points, Vector<std::int64_t> starts,
               Table<double> values, const Vector<std::int32_t> &categorical, const Vector<std::int32_t> &used,
               std::int64_t n_columns)
        : kept_(split, column, left, missing_right, n_points, starts, values),
          trees_(view_of(kept_, n_columns), {categorical.data(), categorical.size()}, {used.data(), used.size()}) {}

    void add_path_dependent(const RowsArgument &rows, const Cube<double> &shapley, int threads) const {
        const AnyRows any = view(rows);
        const nb::gil_scoped_release release;
        std::visit(
            [&](const auto &table) {
                check(table, shapley);
                isokern::add_path_dependent(trees_, table, shapley.data(), threads);
            },
            any);
    }

    void add_interventional(const RowsArgument &rows, const RowsArgument &background, const Cube<double> &shapley,
                            int threads) const {
        const AnyRows any = view(rows), others = view(background);
        const nb::gil_scoped_release release;
        TileValues values(trees_.n_features());
        std::visit(
            [&](const auto &table) {
                check_columns(table);
                if (table.n_rows < 1)
                    throw std::invalid_argument("background must have at least one row.");
                values.take(table, 0, table.n_rows, trees_.ranks);
            },
            others);
        std::visit(
            [&](const auto &table) {
                check(table, shapley);
                isokern::add_interventional(trees_, table, values, shapley.data(), threads);
            },
            any);
    }

    void sum_leaves(const RowsArgument &rows, const Output<double> &scores, int threads) const {
        const AnyRows any = view(rows);
        const nb::gil_scoped_release release;
        std::visit(
            [&](const auto &table) {
                check_columns(table);
                if (static_cast<std::int64_t>(scores.shape(0)) != table.n_rows ||
                    static_cast<std::int64_t>(scores.shape(1)) != trees_.forest.n_outputs)
                    throw std::invalid_argument("scores must have a row for each row and a column for each output.");
                isokern::sum_leaves(trees_, table, scores.data(), threads);
            },
            any);
    }

  private:
    using Arrays = std::tuple<Vector<double>, Vector<std::int32_t>, Vector<std::int64_t>, Vector<std::uint8_t>,
                              Vector<std::int32_t>, Vector<std::int64_t>, Table<double>>;

    static LeafForest view_of(const Arrays &arrays, std::int64_t n_columns) {
        const auto &[split, column, left, missing_right, n_points, starts, values] = arrays;
        const std::size_t n_nodes = split.size();
        if (column.size() != n_nodes || left.size() != n_nodes || missing_right.size() != n_nodes ||
            n_points.size() != n_nodes || starts.size() < 2 ||
            starts.data()[starts.size() - 1] != static_cast<std::int64_t>(n_nodes) || values.shape(1) < 1)
            throw std::invalid_argument("the arrays of a forest must have the same length, and values an output.");
        return {split.data(),
                column.data(),
                left.data(),
                missing_right.data(),
                n_points.data(),
                {starts.data(), starts.size()},
                values.data(),
                static_cast<std::int64_t>(values.shape(0)),
                static_cast<std::int64_t>(values.shape(1)),
                n_columns};
    }

    template <class Rows> void check_columns(const Rows &rows) const {
        if (rows.n_columns != trees_.forest.n_columns)
            throw std::invalid_argument("rows must have as many columns as the trees; got another number of columns.");
    }

    template <class Rows> void check(const Rows &rows, const Cube<double> &shapley) const {
        check_columns(rows);
        if (static_cast<std::int64_t>(shapley.shape(0)) != rows.n_rows ||
            static_cast<std::int64_t>(shapley.shape(1)) != trees_.n_features() ||
            static_cast<std::int64_t>(shapley.shape(2)) != trees_.forest.n_outputs)
            throw std::invalid_argument("shapley must have a table of used columns and outputs for each row.");
    }

    Arrays kept_;
    ExplainedTrees trees_;
};

using PanelsArgument = std::variant<Cube<const std::uint8_t>, Cube<const std::uint16_t>, Cube<const std::uint32_t>>;

// The cells of one scale, if panels and rows have the same type and t partitionings.
ScalePanels scale_panels(const PanelsArgument &panels, const CellsArgument &rows, std::size_t t, std::size_t n_rows,
                         std::int64_t n_stored) {
    return std::visit(
        [&]<class A, class B>(const Cube<const A> &stored, const Table<B> &cells) -> ScalePanels {
            if constexpr (!std::is_same_v<A, B>)
                throw std::invalid_argument("panels and rows of a scale must have the same dtype.");
            else if (stored.shape(1) != t || stored.shape(2) != kPanelRows || cells.shape(0) != n_rows ||
                     cells.shape(1) != t || static_cast<std::int64_t>(stored.shape(0)) * kPanelRows < n_stored)
                throw std::invalid_argument("panels must have 64 rows each, and as many partitionings as rows.");
            else
                return {sizeof(A) / 2, stored.data(), cells.data()};
        },
        panels, rows);
}

//   out: indices, similarities, n_rows x k
void find_similar(const std::vector<PanelsArgument> &panels, const std::vector<CellsArgument> &rows,
                  const Vector<double> &weights, std::int64_t n_stored, const Output<std::int64_t> &indices,
                  const Output<double> &similarities, int threads) {
    const auto n_rows = indices.shape(0), k = indices.shape(1);
    if (panels.empty() || panels.size() != rows.size() || panels.size() != weights.size())
        throw std::invalid_argument("panels, rows and weights must have one entry for each scale.");
    if (similarities.shape(0) != n_rows || similarities.shape(1) != k || k < 1 ||
        static_cast<std::int64_t>(k) > n_stored)
        throw std::invalid_argument("k must be from 1 to the number of stored rows.");
    double all = 0.0;
    for (std::size_t l = 0; l < weights.size(); ++l)
        all += weights.data()[l] >= 0.0 ? weights.data()[l] : std::nan("");
    if (!(all > 0.0 && std::isfinite(all)))
        throw std::invalid_argument("weights must be at least 0, and not all 0.");
    const auto t = std::visit([](const auto &first) { return first.shape(1); }, rows[0]);
    std::vector<ScalePanels> scales;
    for (std::size_t l = 0; l < panels.size(); ++l)
        scales.push_back(scale_panels(panels[l], rows[l], t, n_rows, n_stored));
    const nb::gil_scoped_release release;
    isokern::find_similar(scales, {weights.data(), weights.size()}, static_cast<std::int64_t>(t), n_stored,
                          static_cast<std::int64_t>(n_rows), static_cast<std::int64_t>(k), indices.data(),
                          similarities.data(), threads);
}

} // namespace

void register_inspection(nb::module_ &m) {
    using namespace nb::literals;
    m.def("find_similar", &find_similar, "panels"_a.noconvert(), "rows"_a.noconvert(), "weights"_a.noconvert(),
          "n_stored"_a, "indices"_a.noconvert(), "similarities"_a.noconvert(), "threads"_a);
    nb::class_<OwnedTrees>(m, "ExplainedTrees")
        .def(nb::init<Vector<double>, Vector<std::int32_t>, Vector<std::int64_t>, Vector<std::uint8_t>,
                      Vector<std::int32_t>, Vector<std::int64_t>, Table<double>, const Vector<std::int32_t> &,
                      const Vector<std::int32_t> &, std::int64_t>(),
             "split"_a.noconvert(), "column"_a.noconvert(), "left"_a.noconvert(), "missing_right"_a.noconvert(),
             "n_points"_a.noconvert(), "starts"_a.noconvert(), "values"_a.noconvert(), "categorical"_a.noconvert(),
             "used"_a.noconvert(), "n_columns"_a)
        .def("add_path_dependent", &OwnedTrees::add_path_dependent, "rows"_a.noconvert(), "shapley"_a.noconvert(),
             "threads"_a)
        .def("add_interventional", &OwnedTrees::add_interventional, "rows"_a.noconvert(), "background"_a.noconvert(),
             "shapley"_a.noconvert(), "threads"_a)
        .def("sum_leaves", &OwnedTrees::sum_leaves, "rows"_a.noconvert(), "scores"_a.noconvert(), "threads"_a);
}

} // namespace isokern::bindings
