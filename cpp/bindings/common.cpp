// Binds what all parts share: samples, input checks, the kernel of cells, and the name of the instruction set.
//
// In: NumPy arrays. Out: samples as a new array; positions, booleans and names; shares of equal cells, filled in place.
#include "bindings/arrays.hpp"

#include <limits>
#include <span>

#include "bindings/rules.hpp"

#include "common/sampling.hpp"
#include "online/match.hpp"
#include "simd/cpu.hpp"

namespace isokern::bindings {
namespace {

auto draw_samples(std::int64_t n_rows, std::int64_t n_partitionings, std::int64_t sample_size, std::uint64_t seed) {
    if (n_partitionings < 1 || sample_size < 1 || sample_size > n_rows)
        throw std::invalid_argument("sample_size must be from 1 to n_rows, and n_partitionings at least 1.");
    if (n_partitionings > std::numeric_limits<std::int64_t>::max() / sample_size)
        throw std::invalid_argument("the samples must be fewer than 2^63.");
    std::vector<std::int64_t> samples(static_cast<std::size_t>(n_partitionings * sample_size));
    {
        const nb::gil_scoped_release release;
        isokern::draw_samples(n_rows, n_partitionings, sample_size, seed, samples.data());
    }
    return to_array(std::move(samples));
}

template <class Real>
void match_cells(const CellsArgument &first, const CellsArgument &second, const Output<Real> &shares, int threads,
                 const OptionalVector &weights) {
    const double one_scale = 1.0;
    const std::span<const double> by_scale =
        weights ? std::span(weights->data(), weights->size()) : std::span(&one_scale, 1);
    const nb::gil_scoped_release release;
    std::visit(
        [&]<class A, class B>(const Table<A> &a, const Table<B> &b) {
            if constexpr (!std::is_same_v<A, B>)
                throw std::invalid_argument("first and second must have the same dtype.");
            else if (a.shape(1) != b.shape(1) || shares.shape(0) != a.shape(0) || shares.shape(1) != b.shape(0))
                throw std::invalid_argument("first and second must have equally many columns, and shares a row and a "
                                            "column for each of their rows.");
            else if (by_scale.empty() || a.shape(1) % by_scale.size() != 0)
                throw std::invalid_argument("first must have equally many columns for each of the weights.");
            else
                isokern::match_cells(
                    a.data(), static_cast<std::int64_t>(a.shape(0)), b.data(), static_cast<std::int64_t>(b.shape(0)),
                    static_cast<std::int64_t>(a.shape(1) / by_scale.size()), by_scale, shares.data(), threads);
        },
        first, second);
}

template <class T> std::int64_t find_nonfinite(const Vector<T> &values, bool allow_nan) {
    const nb::gil_scoped_release release;
    return first_nonfinite(values.data(), static_cast<std::int64_t>(values.size()), allow_nan);
}

bool is_canonical(const Vector<std::int32_t> &columns, const Vector<std::int64_t> &starts, std::int64_t n_columns) {
    return starts.size() > 0 &&
           is_sound_csr(columns.data(), starts.data(), static_cast<std::int64_t>(starts.size()) - 1,
                        static_cast<std::int64_t>(columns.size()), n_columns);
}

} // namespace

void register_common(nb::module_ &m) {
    using namespace nb::literals;
    m.def("instruction_set", [] { return nb::str(name_of(instruction_set())); });
    m.def("draw_samples", &draw_samples, "n_rows"_a, "n_partitionings"_a, "sample_size"_a, "seed"_a);
    m.def("match_cells", &match_cells<float>, "first"_a.noconvert(), "second"_a.noconvert(), "shares"_a.noconvert(),
          "threads"_a, "weights"_a = nb::none());
    m.def("match_cells", &match_cells<double>, "first"_a.noconvert(), "second"_a.noconvert(), "shares"_a.noconvert(),
          "threads"_a, "weights"_a = nb::none());
    m.def("find_nonfinite", &find_nonfinite<float>, "values"_a.noconvert(), "allow_nan"_a = false);
    m.def("find_nonfinite", &find_nonfinite<double>, "values"_a.noconvert(), "allow_nan"_a = false);
    m.def("is_canonical", &is_canonical, "columns"_a.noconvert(), "starts"_a.noconvert(), "n_columns"_a);
}

} // namespace isokern::bindings
