// Python bindings of the LIBSVM reader and writer (libsvm.hpp).
//
// In: bytes and limits, or labels and CSR rows. Out: NumPy arrays, or bytes. Parsing and formatting release the GIL.
#include <nanobind/stl/string.h>

#include "bindings/arrays.hpp"
#include "text/libsvm.hpp"

namespace isokern::bindings {
namespace {

nb::tuple read_libsvm(const nb::bytes &text, std::int64_t first, std::int64_t last, double largest, int threads) {
    LibsvmRows rows;
    {
        const std::string_view view(static_cast<const char *>(text.data()), text.size());
        const nb::gil_scoped_release release;
        rows = isokern::read_libsvm(view, {first, last, largest}, threads);
    }
    return nb::make_tuple(to_array(std::move(rows.labels)), to_array(std::move(rows.values)),
                          to_array(std::move(rows.columns)), to_array(std::move(rows.starts)), rows.n_lines,
                          rows.mistake);
}

nb::bytes write_libsvm(const Vector<double> &labels, const Csr<double> &csr, std::int64_t first) {
    const CsrRows<double> rows = view(csr);
    if (static_cast<std::int64_t>(labels.size()) != rows.n_rows)
        throw std::invalid_argument("labels must have one entry per row.");
    std::string text;
    {
        const nb::gil_scoped_release release;
        text = isokern::write_libsvm(labels.data(), rows.values, rows.columns, rows.starts, rows.n_rows, first);
    }
    return nb::bytes(text.data(), text.size());
}

} // namespace

void register_text(nb::module_ &m) {
    using namespace nb::literals;
    m.def("read_libsvm", &read_libsvm, "text"_a, "first"_a, "last"_a, "largest"_a, "threads"_a);
    m.def("write_libsvm", &write_libsvm, "labels"_a.noconvert(), "rows"_a.noconvert(), "first"_a);
}

} // namespace isokern::bindings
