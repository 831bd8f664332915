// Transposes a table of bytes that is stored by column into rows.
//
// In: columns of kColumnBytes bytes each. Out: the bytes of each row, at a place of its own. Squares of 16 x 16 bytes
// are transposed in registers by four rounds of interleaving (perfect shuffles): each moves one bit of the index of a
// column into the index of a row, and one the other way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace isokern {

constexpr std::int64_t kSquare = 16;
typedef std::uint8_t ByteVector __attribute__((vector_size(kSquare)));

//  square[i][j] <-> square[j][i]
inline void transpose_square(ByteVector *square) {
    constexpr int kHalf = kSquare / 2;
    for (int round = 0; round < 4; ++round) {
        ByteVector next[kSquare];
#pragma GCC unroll 8
        for (int k = 0; k < kHalf; ++k) {
            const ByteVector a = square[k], b = square[k + kHalf];
            next[2 * k] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            next[2 * k + 1] =
                __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        }
        std::copy_n(next, kSquare, square);
    }
}

//  row_at(r)[c] = columns[c * height + r]
//   in: height, a multiple of kSquare; n_rows <= height      out: n_columns bytes at row_at(r), for each row r
template <class RowAt>
void write_byte_rows(const std::uint8_t *columns, std::int64_t height, std::int64_t n_rows, std::int64_t n_columns,
                     RowAt row_at) {
    for (std::int64_t first = 0; first < n_rows; first += kSquare) {
        const std::int64_t n = std::min(kSquare, n_rows - first);
        for (std::int64_t next = 0; next < n_columns; next += kSquare) {
            // The last square overlaps the one before, so that all are whole if there are kSquare columns.
            const std::int64_t c = std::max<std::int64_t>(std::min(next, n_columns - kSquare), 0);
            const std::int64_t width = std::min(kSquare, n_columns);
            ByteVector square[kSquare];
            for (std::int64_t k = 0; k < kSquare; ++k)
                std::memcpy(&square[k], columns + (k < width ? c + k : c) * height + first, kSquare);
            transpose_square(square);
            for (std::int64_t r = 0; r < n; ++r)
                if (width == kSquare) // a size that the compiler knows
                    std::memcpy(row_at(first + r) + c, &square[r], kSquare);
                else
                    std::memcpy(row_at(first + r) + c, &square[r], static_cast<std::size_t>(width));
        }
    }
}

} // namespace isokern
