// Classic kernels of one row with many points: SIMD panels for few columns or dense points, else an inverted index.
//
// In: a kernel, points, a row. Out: kernel values. All five kernels are functions of a sum over columns of term(x, z).
// For sparse rows it is computed from the sums with zeros (totals), with corrections for non-zero columns. Squared
// distances that lose digits to cancellation on the way are recomputed from differences.
#include "rivals/kernel_points.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "common/threads.hpp"

namespace isokern {
namespace {

// Up to so many columns, points are stored in panels, and dense ones up to kDenseColumns. Dense rows of 3,072 columns
// (cifar-10) take ten times as long by the inverted index, which pays only if most values are zero. A point of
// kDenseColumns takes 256 KB of a panel. isokern.learners.duals has the same limits.
constexpr std::int64_t kPanelColumns = 4096, kDenseColumns = 32768;

// Bytes of a block of points that stays in the cache.
constexpr std::int64_t kBlockBytes = 1 << 19;

// What a column with values x and z adds to the sum.
double term(Measure measure, double x, double z) {
    switch (measure) {
    case Measure::l1:
        return std::abs(x - z);
    case Measure::squared_l2:
        return (x - z) * (x - z);
    case Measure::dot:
        return x * z;
    case Measure::chi_squared:
        return x + z == 0.0 ? 0.0 : 2.0 * (x * (z / (x + z)));
    default:
        return std::min(x, z);
    }
}

double power(double base, int degree) {
    double result = 1.0;
    for (int k = 0; k < degree; ++k)
        result *= base;
    return result;
}

} // namespace

KernelSpec kernel_by_name(std::string_view name, double factor, double offset, int degree, bool normalised) {
    using Form = KernelSpec::Form;
    if (name == "laplacian")
        return {Measure::l1, Form::decay, factor};
    if (name == "gaussian")
        return {Measure::squared_l2, Form::decay, factor};
    if (name == "polynomial")
        return {Measure::dot, Form::power, factor, offset, degree, normalised};
    if (name == "chi2")
        return {Measure::chi_squared, Form::plain, 1.0, 0.0, 1, normalised};
    if (name == "intersection")
        return {Measure::intersection, Form::plain, 1.0, 0.0, 1, normalised};
    throw std::invalid_argument("kernel must be laplacian, gaussian, polynomial, chi2 or intersection; got " +
                                std::string(name));
}

KernelPoints::KernelPoints(const KernelSpec &spec, std::int64_t n_columns) : spec_(spec), n_columns_(n_columns) {}

template <class Rows> void KernelPoints::load(const Rows &rows, std::int64_t r, KernelRow &row) const {
    if (rows.n_columns != n_columns_)
        throw std::invalid_argument("rows must have as many columns as the points; got another number of columns.");
    row.columns.clear();
    row.values.clear();
    row.dense.clear();
    row.total = 0.0;
    double own = 0.0;
    for_each_nonzero(rows, r, [&](std::int32_t column, double value) {
        row.columns.push_back(column);
        row.values.push_back(value);
        row.total += term(spec_.measure, value, 0.0);
        own += term(spec_.measure, value, value);
    });
    if (spec_.form == KernelSpec::Form::power)
        own = power(spec_.factor * own + spec_.offset, spec_.degree);
    if (spec_.normalised)
        row.self = own;
    else if (spec_.form != KernelSpec::Form::decay)
        row.norm = own;
    // If most values are not zero, all columns are summed: with data far from zero, differences of totals lose digits.
    if (n_columns_ <= kDenseColumns && 2 * static_cast<std::int64_t>(row.columns.size()) > n_columns_) {
        row.dense.assign(static_cast<std::size_t>(n_columns_), 0.0);
        for (std::size_t k = 0; k < row.columns.size(); ++k)
            row.dense[row.columns[k]] = row.values[k];
    }
}

std::int64_t KernelPoints::block_size() const {
    constexpr std::int64_t kMost = 256;
    const std::int64_t fitting = kBlockBytes / (n_columns_ * static_cast<std::int64_t>(sizeof(double)) + 1);
    return in_panels_ ? std::clamp(fitting / kLane * kLane, kLane, kMost) : kMost;
}

void KernelPoints::add(const KernelRow &row) {
    if (size_ == 0)
        in_panels_ = n_columns_ <= kPanelColumns || !row.dense.empty();
    if (size_ % kLane == 0) {
        totals_.resize(static_cast<std::size_t>(size_ + kLane), 0.0);
        selves_.resize(static_cast<std::size_t>(size_ + kLane), 1.0);
    }
    totals_[size_] = row.total;
    selves_[size_] = row.self;
    if (in_panels_)
        add_to_panels(row);
    else
        add_to_index(row);
    stored_values_.insert(stored_values_.end(), row.values.begin(), row.values.end());
    stored_columns_.insert(stored_columns_.end(), row.columns.begin(), row.columns.end());
    stored_starts_.push_back(static_cast<std::int64_t>(stored_values_.size()));
    ++size_;
}

void KernelPoints::add_to_panels(const KernelRow &row) {
    const std::int64_t panel = size_ / kLane * n_columns_ * kLane;
    if (size_ % kLane == 0)
        panels_.resize(static_cast<std::size_t>(panel + n_columns_ * kLane), 0.0);
    for (std::size_t k = 0; k < row.columns.size(); ++k)
        panels_[panel + row.columns[k] * kLane + size_ % kLane] = row.values[k];
}

void KernelPoints::add_to_index(const KernelRow &row) {
    for (std::size_t k = 0; k < row.columns.size(); ++k) {
        const std::int32_t number = numbers_.number(row.columns[k]);
        if (number == static_cast<std::int32_t>(postings_.size()))
            postings_.emplace_back();
        postings_[number].push_back({size_, row.values[k]});
    }
}

void KernelPoints::evaluate(const KernelRow &row, std::int64_t first, std::int64_t n, double *values) const {
    const Similarities &similarities = best_similarities();
    if (!in_panels_) {
        sums_from_index(row, first, n, values);
        refine(row, first, n, values);
        return finish(row, first, n, values);
    }
    for (std::int64_t k = 0; k < n; k += kLane) {
        const double *panel = panels_.data() + (first + k) * n_columns_;
        if (!row.dense.empty())
            similarities.dense_sums(spec_.measure, row.dense.data(), n_columns_, panel, values + k);
        else
            similarities.sparse_sums(spec_.measure, row.columns.data(), row.values.data(),
                                     static_cast<std::int64_t>(row.columns.size()), panel, totals_.data() + first + k,
                                     values + k);
    }
    if (row.dense.empty())
        refine(row, first, n, values);
    finish(row, first, n, values);
}

// Recomputes squared distances that are far smaller than the totals they come from: cancellation has cost them digits.
//   changed: sums
void KernelPoints::refine(const KernelRow &row, std::int64_t first, std::int64_t n, double *sums) const {
    if (spec_.measure != Measure::squared_l2)
        return;
    for (std::int64_t k = 0; k < n; ++k)
        if (!(sums[k] >= 1e-4 * (row.total + totals_[first + k])))
            sums[k] = squared_distance(row, first + k);
}

//  sum_j (x_j - z_j)^2, by merging the sorted non-zero columns of row and point
double KernelPoints::squared_distance(const KernelRow &row, std::int64_t point) const {
    double sum = 0.0;
    std::size_t i = 0;
    for (std::int64_t j = stored_starts_[point]; j < stored_starts_[point + 1]; ++j) {
        for (; i < row.columns.size() && row.columns[i] < stored_columns_[j]; ++i)
            sum += row.values[i] * row.values[i];
        const bool is_shared = i < row.columns.size() && row.columns[i] == stored_columns_[j];
        const double difference = is_shared ? row.values[i++] - stored_values_[j] : stored_values_[j];
        sum += difference * difference;
    }
    for (; i < row.columns.size(); ++i)
        sum += row.values[i] * row.values[i];
    return sum;
}

//  sum(x, z) = total(x) + total(z) + sum over shared columns of (term(x, z) - term(x, 0) - term(0, z))
//  in: row, points first .. first + n - 1      out: sums, padded with 0 to a multiple of kLane
// Posting lists are in order of points, so binary search finds where `first` begins.
void KernelPoints::sums_from_index(const KernelRow &row, std::int64_t first, std::int64_t n, double *sums) const {
    for (std::int64_t k = 0; k < n; ++k)
        sums[k] = row.total + totals_[first + k];
    std::fill(sums + n, sums + (n + kLane - 1) / kLane * kLane, 0.0);
    for (std::size_t k = 0; k < row.columns.size(); ++k) {
        const std::int32_t number = numbers_.find(row.columns[k]);
        if (number < 0)
            continue;
        const auto &list = postings_[number];
        const auto begin = std::lower_bound(list.begin(), list.end(), first,
                                            [](const Posting &posting, std::int64_t p) { return posting.point < p; });
        const double x = row.values[k], alone = term(spec_.measure, x, 0.0);
        for (auto posting = begin; posting != list.end() && posting->point < first + n; ++posting)
            sums[posting->point - first] +=
                (term(spec_.measure, x, posting->value) - alone) - term(spec_.measure, 0.0, posting->value);
    }
}

//  k = exp(-factor s),  (factor s + offset)^degree  or  s;   if normalised, k / sqrt(k(x, x) k(z, z))
//  changed: values, from sums s to kernel values k
void KernelPoints::finish(const KernelRow &row, std::int64_t first, std::int64_t n, double *values) const {
    if (spec_.form == KernelSpec::Form::decay)
        best_similarities().decay(spec_.factor, values, (n + kLane - 1) / kLane * kLane);
    if (spec_.form == KernelSpec::Form::power)
        for (std::int64_t k = 0; k < n; ++k)
            values[k] = power(spec_.factor * values[k] + spec_.offset, spec_.degree);
    if (spec_.normalised)
        for (std::int64_t k = 0; k < n; ++k) {
            const double scale = std::sqrt(row.self) * std::sqrt(selves_[first + k]);
            values[k] = scale > 0.0 ? values[k] / scale : 0.0;
        }
}

template <class Rows, class Points>
void kernel_matrix(const KernelSpec &spec, const Rows &rows, const Points &points, double *values, int threads) {
    KernelPoints set(spec, points.n_columns);
    KernelRow row;
    for (std::int64_t p = 0; p < points.n_rows; ++p) {
        set.load(points, p, row);
        set.add(row);
    }
    constexpr std::int64_t kTile = 16;
    parallel_tiles(rows.n_rows, kTile, threads, [&] {
        return [&, tile = std::vector<KernelRow>(kTile),
                buffer = std::vector<double>(static_cast<std::size_t>(set.block_size()))](std::int64_t begin,
                                                                                          std::int64_t end) mutable {
            for (std::int64_t r = begin; r < end; ++r)
                set.load(rows, r, tile[r - begin]);
            for (std::int64_t from = 0; from < set.size(); from += set.block_size()) {
                const std::int64_t n = std::min(set.block_size(), set.size() - from);
                for (std::int64_t r = begin; r < end; ++r) {
                    set.evaluate(tile[r - begin], from, n, buffer.data());
                    std::copy_n(buffer.begin(), n, values + r * set.size() + from);
                }
            }
        };
    });
}

#define ISOKERN_INSTANTIATE(Rows)                                                                                      \
    template void KernelPoints::load(const Rows &, std::int64_t, KernelRow &) const;                                   \
    template void kernel_matrix(const KernelSpec &, const Rows &, const DenseRows<float> &, double *, int);            \
    template void kernel_matrix(const KernelSpec &, const Rows &, const DenseRows<double> &, double *, int);           \
    template void kernel_matrix(const KernelSpec &, const Rows &, const CsrRows<float> &, double *, int);              \
    template void kernel_matrix(const KernelSpec &, const Rows &, const CsrRows<double> &, double *, int);
ISOKERN_INSTANTIATE(DenseRows<float>)
ISOKERN_INSTANTIATE(DenseRows<double>)
ISOKERN_INSTANTIATE(CsrRows<float>)
ISOKERN_INSTANTIATE(CsrRows<double>)

} // namespace isokern
