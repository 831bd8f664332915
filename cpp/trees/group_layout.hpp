// Moves a group of rows into columns, as the descent reads them, and its cells back into rows.
//
// In: a group of kGroupRows rows; cells, byte by byte in the order of memory. Out: the columns of the group; the cells
// of each row, at a place of its own. Both are transpositions: squares of a table are transposed in registers by rounds
// of interleaving (perfect shuffles), each of which moves one bit of the index of a column into the index of a row, and
// one the other way.
#pragma once

#include <cstdint>

namespace isokern {

// What is known about all numbers of a group.
struct NumberKinds {
    bool are_exact;    // they are float32 numbers
    bool are_ordinary; // they are present and less than kHuge
};

struct GroupLayouts {
    //  values[packed[j] * kGroupRows + r] = rows[r][j], rounded up to float32
    //   in: kGroupRows rows, then kRowsAhead that are read next      out: values
    template <class Exact>
    using Take = NumberKinds (*)(const Exact *const *rows, std::int64_t n_columns, const std::int32_t *packed,
                                 float *values);

    //  rows[r][c] = columns[c * kGroupRows + r]
    //   in: bytes in n_columns columns      out: the first n_rows rows
    using Write = void (*)(const std::uint8_t *columns, std::int64_t n_columns, std::int64_t n_rows,
                           std::uint8_t *const *rows);

    Take<float> take_floats;
    Take<double> take_doubles;
    Write write;
};
constexpr std::int64_t kRowsAhead = 8; // fetched into the cache before they are taken

// The implementation for the widest instruction set that this CPU supports.
const GroupLayouts &best_group_layouts();

} // namespace isokern
