// Converts NumPy arrays to the core's views, and vectors to NumPy arrays.
//
// In: arrays whose dtype, number of dimensions and contiguity nanobind checks by type. Out: views without a copy; CSR
// index arrays are checked, so that the core can trust them. Arrays returned to Python own the vectors they come from.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "common/checks.hpp"
#include "common/rows.hpp"

namespace isokern::bindings {

namespace nb = nanobind;

template <class T> using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Table = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using OptionalVector = std::optional<Vector<double>>;
template <class T> using Output = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// CSR rows come as a tuple (values, columns, starts, number of columns).
template <class T> using Csr = std::tuple<Vector<T>, Vector<std::int32_t>, Vector<std::int64_t>, std::int64_t>;
using RowsArgument = std::variant<Table<float>, Table<double>, Csr<float>, Csr<double>>;
using CellsArgument = std::variant<Table<std::uint8_t>, Table<std::uint16_t>, Table<std::uint32_t>>;
using CellsOutput = std::variant<Output<std::uint8_t>, Output<std::uint16_t>, Output<std::uint32_t>>;

template <class T> DenseRows<T> view(const Table<T> &table) {
    return {table.data(), static_cast<std::int64_t>(table.shape(0)), static_cast<std::int64_t>(table.shape(1))};
}

template <class T> CsrRows<T> view(const Csr<T> &csr) {
    const auto &[values, columns, starts, n_columns] = csr;
    const auto n_rows = static_cast<std::int64_t>(starts.shape(0)) - 1;
    const auto n_stored = static_cast<std::int64_t>(std::min(values.shape(0), columns.shape(0)));
    if (n_rows < 0 || !is_sound_csr(columns.data(), starts.data(), n_rows, n_stored, n_columns))
        throw std::invalid_argument("the columns of a CSR row must ascend and lie within the table.");
    return {values.data(), columns.data(), starts.data(), n_rows, n_columns};
}

inline AnyRows view(const RowsArgument &rows) {
    return std::visit([](const auto &array) -> AnyRows { return view(array); }, rows);
}

// A NumPy array that takes over a vector, without a copy.
template <class T, class Allocator> nb::ndarray<nb::numpy, T, nb::ndim<1>> to_array(std::vector<T, Allocator> values) {
    using Values = std::vector<T, Allocator>;
    auto *kept = new Values(std::move(values));
    const nb::capsule owner(kept, [](void *p) noexcept { delete static_cast<Values *>(p); });
    return {kept->data(), {kept->size()}, owner};
}

} // namespace isokern::bindings
