// The loops of similarities.hpp: sums over columns for eight points at a time, and a vectorised exponential.
//
// In: a row and a panel of points. Out: eight sums or exponentials. Compiled once per instruction set
// (simd/for_isa.hpp), without fused multiply-add, so that all CPUs give the same numbers.
#include "rivals/similarities.hpp"

#include "simd/for_isa.hpp"

namespace isokern {
namespace {

typedef double Vector __attribute__((vector_size(kLane * sizeof(double)), aligned(8), may_alias));
typedef long long Integers __attribute__((vector_size(kLane * sizeof(long long))));

Vector load(const double *p) { return *reinterpret_cast<const Vector *>(p); }
void store(double *p, Vector v) { *reinterpret_cast<Vector *>(p) = v; }
Vector select(Integers mask, Vector a, Vector b) { return (Vector)((mask & (Integers)a) | (~mask & (Integers)b)); }
Vector absolute(Vector v) { return (Vector)((Integers)v & 0x7FFFFFFFFFFFFFFFLL); }

// For each measure, what a column adds to the sums: term(x, z) for a row value x and eight point values z, and
// at_zero(z) = term(0, z).
struct L1 {
    static Vector term(double x, Vector z) { return absolute(x - z); }
    static Vector at_zero(Vector z) { return absolute(z); }
};
struct SquaredL2 {
    static Vector term(double x, Vector z) { return (x - z) * (x - z); }
    static Vector at_zero(Vector z) { return z * z; }
};
struct Dot {
    static Vector term(double x, Vector z) { return x * z; }
    static Vector at_zero(Vector) { return Vector{}; }
};
struct ChiSquared { // 2 x z / (x + z), 0 for 0 / 0
    static Vector term(double x, Vector z) {
        const Vector sum = x + z;
        return select(sum == 0.0, Vector{}, 2.0 * (x * (z / select(sum == 0.0, Vector{} + 1.0, sum))));
    }
    static Vector at_zero(Vector) { return Vector{}; }
};
struct Intersection {
    static Vector term(double x, Vector z) { return select(z < x, z, Vector{} + x); }
    static Vector at_zero(Vector) { return Vector{}; }
};

//  sums = totals + sum_k (term(values[k], z_k) - term(0, z_k)),   z_k = panel[columns[k]]
template <class Term>
void add_sparse(const std::int32_t *columns, const double *values, std::int64_t n, const double *panel,
                const double *totals, double *sums) {
    Vector sum = load(totals);
    for (std::int64_t k = 0; k < n; ++k) {
        const Vector z = load(panel + columns[k] * kLane);
        sum += Term::term(values[k], z) - Term::at_zero(z);
    }
    store(sums, sum);
}

//  sums = sum_j term(row[j], panel[j])
template <class Term> void add_dense(const double *row, std::int64_t n_columns, const double *panel, double *sums) {
    Vector sum = {};
    for (std::int64_t j = 0; j < n_columns; ++j)
        sum += Term::term(row[j], load(panel + j * kLane));
    store(sums, sum);
}

void sparse_sums(Measure measure, const std::int32_t *columns, const double *values, std::int64_t n,
                 const double *panel, const double *totals, double *sums) {
    switch (measure) {
    case Measure::l1:
        return add_sparse<L1>(columns, values, n, panel, totals, sums);
    case Measure::squared_l2:
        return add_sparse<SquaredL2>(columns, values, n, panel, totals, sums);
    case Measure::dot:
        return add_sparse<Dot>(columns, values, n, panel, totals, sums);
    case Measure::chi_squared:
        return add_sparse<ChiSquared>(columns, values, n, panel, totals, sums);
    case Measure::intersection:
        return add_sparse<Intersection>(columns, values, n, panel, totals, sums);
    }
}

void dense_sums(Measure measure, const double *row, std::int64_t n_columns, const double *panel, double *sums) {
    switch (measure) {
    case Measure::l1:
        return add_dense<L1>(row, n_columns, panel, sums);
    case Measure::squared_l2:
        return add_dense<SquaredL2>(row, n_columns, panel, sums);
    case Measure::dot:
        return add_dense<Dot>(row, n_columns, panel, sums);
    case Measure::chi_squared:
        return add_dense<ChiSquared>(row, n_columns, panel, sums);
    case Measure::intersection:
        return add_dense<Intersection>(row, n_columns, panel, sums);
    }
}

//  exp(x) = 2^n exp(r),   n = round(x / ln 2),   r = x - n ln 2,   |r| <= ln(2) / 2      for x <= 0
// exp(r) is Taylor's series to r^13, by Horner's rule; ln 2 is split in two, so that r is accurate (Cody and Waite).
// The result is good to about one unit in the last place.
Vector exponential(Vector x) {
    constexpr double kInverse[] = {1.0 / 6227020800.0,
                                   1.0 / 479001600.0,
                                   1.0 / 39916800.0,
                                   1.0 / 3628800.0,
                                   1.0 / 362880.0,
                                   1.0 / 40320.0,
                                   1.0 / 5040.0,
                                   1.0 / 720.0,
                                   1.0 / 120.0,
                                   1.0 / 24.0,
                                   1.0 / 6.0,
                                   0.5,
                                   1.0,
                                   1.0};
    const Integers vanishes = ~(x >= -700.0); // also true for NaN, from sums that overflowed
    x = select(vanishes, Vector{}, x);
    // Adding and subtracting 1.5 * 2^52 rounds to the nearest integer, and leaves n in the low bits of `shifted`, from
    // where it is added to the exponent of the result.
    const Vector shifted = x * 0x1.71547652b82fep+0 + 0x1.8p+52;
    const Vector n = shifted - 0x1.8p+52;
    const Vector r = (x - n * 0x1.62e42fefa3800p-1) - n * 0x1.ef35793c76730p-45;
    Vector sum = {};
    for (const double inverse : kInverse)
        sum = sum * r + inverse;
    const Vector scaled = (Vector)((Integers)sum + (((Integers)shifted) << 52));
    return select(vanishes, Vector{}, scaled);
}

void decay(double factor, double *values, std::int64_t n) {
    for (std::int64_t k = 0; k < n; k += kLane) {
        const Vector sum = load(values + k);
        store(values + k, exponential(-factor * select(sum < 0.0, Vector{}, sum)));
    }
}

} // namespace

extern const Similarities ISOKERN_FOR_ISA(similarities);
const Similarities ISOKERN_FOR_ISA(similarities) = {sparse_sums, dense_sums, decay};

} // namespace isokern
