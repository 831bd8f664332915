// LIBSVM text: a row a line, `label index:value index:value ... # comment`, indices ascending.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace isokern {

// Which feature indices may occur, and how large values may be; a column is an index less the first. Columns must fit
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
    std::string mistake; // what is wrong with line n_lines (from 1), where reading stopped; empty if nothing is
};

// Reads whole lines. Blank lines and comments are no rows; "qid:" entries are passed over.
LibsvmRows read_libsvm(std::string_view text, LibsvmLimits limits, int threads);

// Writes rows, of which the columns ascend, as text; `first` is the index of the first column.
std::string write_libsvm(const double *labels, const double *values, const std::int32_t *columns,
                         const std::int64_t *starts, std::int64_t n_rows, std::int64_t first);

} // namespace isokern
