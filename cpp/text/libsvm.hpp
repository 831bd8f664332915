// Reads and writes LIBSVM text: one row per line, `label index:value index:value ... # comment`, indices ascending.
//
// In: whole lines of text, limits of indices and values. Out: labels and CSR rows, and what is wrong with the first bad
// line; or text from such rows. Values are read to the nearest double and written in the fewest digits that give the
// same double again.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace isokern {

// The range of feature indices, and the largest absolute value. A column is an index minus the first; it must fit into
// 32 bits.
struct LibsvmLimits {
    std::int64_t first = 0;
    std::int64_t last = std::numeric_limits<std::int32_t>::max();
    double largest = std::numeric_limits<double>::max();
};

struct LibsvmRows {
    std::vector<double> labels; // NaN where the label is "?" or "nan"
    std::vector<double> values;
    std::vector<std::int32_t> columns;
    std::vector<std::int64_t> starts{0};
    std::int64_t n_lines = 0;
    std::string mistake; // what is wrong with line n_lines (from 1), where reading stopped; empty if nothing is wrong
};

// Reads whole lines. Blank lines and comments are skipped, and so are "qid:" entries.
LibsvmRows read_libsvm(std::string_view text, LibsvmLimits limits, int threads);

// Writes rows as text. In: labels; CSR rows, columns ascending; `first`, the index of the first column.
std::string write_libsvm(const double *labels, const double *values, const std::int32_t *columns,
                         const std::int64_t *starts, std::int64_t n_rows, std::int64_t first);

} // namespace isokern
