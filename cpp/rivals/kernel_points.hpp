// Evaluates a classic kernel (Laplacian, Gaussian, polynomial, chi-squared, intersection) of a row with many points.
//
// In: points, added one by one; then a row. Out: k(row, point) for a range of points. With few columns,
// or if the first point is dense, points are stored in panels for SIMD loops over columns (similarities.hpp); with many
// columns, as an inverted index. Each kernel value is computed independently of the others, so it does not depend on
// which range is asked for.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/column_numbers.hpp"
#include "common/rows.hpp"
#include "rivals/similarities.hpp"

namespace isokern {

// A kernel as a function of a sum over columns: exp(-factor sum) (decay), (factor sum + offset)^degree (power), or the
// sum itself (plain).
struct KernelSpec {
    enum class Form { decay, power, plain };

    Measure measure;
    Form form;
    double factor = 1.0, offset = 0.0;
    int degree = 1;
    bool normalised = false; // divide by sqrt(k(x, x) k(z, z))
};

// The kernel of this name; parameters that it does not have are ignored. Throws if the name is unknown.
KernelSpec kernel_by_name(std::string_view name, double factor, double offset, int degree, bool normalised);

// A row, prepared for evaluation: its non-zero values, and sums over all of them.
struct KernelRow {
    std::vector<std::int32_t> columns;
    std::vector<double> values;
    std::vector<double> dense; // all values, if most are not zero and points may be in panels; else empty
    double total = 0.0;        // the sum over columns with the all-zero point
    double self = 1.0;         // k(x, x) before normalisation, if the kernel is normalised
    double norm = 1.0;         // k(x, x)
};

// The points, in panels or as an inverted index.
class KernelPoints {
  public:
    KernelPoints(const KernelSpec &spec, std::int64_t n_columns);

    std::int64_t size() const { return size_; }

    // Prepares row r.
    template <class Rows> void load(const Rows &rows, std::int64_t r, KernelRow &row) const;

    // How many points, a multiple of kLane, should be evaluated for several rows before the next ones: they stay in
    // the cache.
    std::int64_t block_size() const;

    // Adds a row as the next point.
    void add(const KernelRow &row);

    //  values[k] = k(row, point first + k) for k < n
    // first must be a multiple of kLane, and values must have room for n, rounded up to a multiple of kLane.
    void evaluate(const KernelRow &row, std::int64_t first, std::int64_t n, double *values) const;

    // All points as CSR: values, columns, starts.
    const std::vector<double> &stored_values() const { return stored_values_; }
    const std::vector<std::int32_t> &stored_columns() const { return stored_columns_; }
    const std::vector<std::int64_t> &stored_starts() const { return stored_starts_; }

  private:
    struct Posting {
        std::int64_t point;
        double value;
    };

    void add_to_panels(const KernelRow &row);
    void add_to_index(const KernelRow &row);
    void sums_from_index(const KernelRow &row, std::int64_t first, std::int64_t n, double *sums) const;
    void refine(const KernelRow &row, std::int64_t first, std::int64_t n, double *sums) const;
    double squared_distance(const KernelRow &row, std::int64_t point) const;
    void finish(const KernelRow &row, std::int64_t first, std::int64_t n, double *values) const;

    KernelSpec spec_;
    std::int64_t n_columns_, size_ = 0;
    bool in_panels_ = false; // set by the first point
    // panels_, if in_panels_: [n_panels][n_columns][kLane].      totals_, selves_: KernelRow::total and self, by point
    std::vector<double> panels_, totals_, selves_;
    ColumnNumbers numbers_;                      // column -> its posting list, if not in_panels_
    std::vector<std::vector<Posting>> postings_; // points that store a column, in order
    std::vector<double> stored_values_;
    std::vector<std::int32_t> stored_columns_;
    std::vector<std::int64_t> stored_starts_{0};
};

//  values[a, b] = k(row a, point b)      out: values, rows.n_rows x points.n_rows
template <class Rows, class Points>
void kernel_matrix(const KernelSpec &spec, const Rows &rows, const Points &points, double *values, int threads);

} // namespace isokern
