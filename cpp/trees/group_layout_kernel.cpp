// The transpositions of trees/group_layout.hpp. In: rows, or columns of bytes. Out: columns, or rows of bytes. Compiled
// once per instruction set (simd/for_isa.hpp).
#include "trees/group_layout.hpp"

#include <utility>

#include "simd/for_isa.hpp"
#include "trees/group_descent.hpp" // only its constants
#include "trees/splits.hpp"        // only what is always inlined

namespace isokern {
namespace {

// Squares of kSide x kSide numbers; as many squares of kByteSide x kByteSide bytes as a register holds, side by side.
#if defined(__AVX2__)
constexpr int kSide = 8;
#else
constexpr int kSide = 4;
#endif
#if defined(__AVX512BW__)
constexpr int kSquares = 4;
#elif defined(__AVX2__)
constexpr int kSquares = 2;
#else
constexpr int kSquares = 1;
#endif
constexpr int kByteSide = 16;

typedef float Numbers __attribute__((vector_size(kSide * sizeof(float))));
typedef double Doubles __attribute__((vector_size(kSide * sizeof(double))));
typedef std::int32_t Masks __attribute__((vector_size(kSide * sizeof(float)))); // lanes are 0 or -1
typedef std::uint8_t Bytes __attribute__((vector_size(kSquares * kByteSide)));

template <class To> To load(const void *from) {
    To loaded;
    __builtin_memcpy(&loaded, from, sizeof loaded);
    return loaded;
}

// Interleaves the halves of each square's row of `side` elements:  a0 b0 a1 b1 ..., the lower halves or the upper ones.
template <int side, int half, class Vector, int... k>
Vector interleave(Vector a, Vector b, std::integer_sequence<int, k...>) {
    return __builtin_shufflevector(
        a, b, (k / side * side + half * side / 2 + k % side / 2 + k % 2 * static_cast<int>(sizeof...(k)))...);
}

//  square[i][j] <-> square[j][i], in each of the squares that lie side by side
template <int side, class Vector> void transpose(Vector *square) {
    constexpr std::make_integer_sequence<int, sizeof(Vector) / sizeof(square[0][0])> places;
#pragma GCC unroll 4
    for (int round = 1; round < side; round *= 2) {
        Vector next[side];
#pragma GCC unroll 8
        for (int k = 0; k < side / 2; ++k) {
            next[2 * k] = interleave<side, 0>(square[k], square[k + side / 2], places);
            next[2 * k + 1] = interleave<side, 1>(square[k], square[k + side / 2], places);
        }
#pragma GCC unroll 16
        for (int k = 0; k < side; ++k)
            square[k] = next[k];
    }
}

// Rounds numbers up to float32, and notes which are no float32 numbers, or missing or at least kHuge.
struct Rounding {
    Masks inexact{}, special{};

    Numbers operator()(const float *numbers) {
        const auto rounded = load<Numbers>(numbers);
        special |= ~(rounded < kHuge);
        return rounded;
    }

    // As round_up in splits.hpp.
    Numbers operator()(const double *numbers) {
        const auto exact = load<Doubles>(numbers);
        const auto nearest = __builtin_convertvector(exact, Numbers);
        const auto widened = __builtin_convertvector(nearest, Doubles);
        const auto bits = reinterpret_cast<Masks>(nearest);
        const auto rounded =
            reinterpret_cast<Numbers>(bits + (__builtin_convertvector(widened < exact, Masks) & (bits >> 31 | 1)));
        inexact |= __builtin_convertvector(widened != exact, Masks);
        special |= ~(rounded < kHuge);
        return rounded;
    }

    NumberKinds kinds() const { return {!is_any(inexact), !is_any(special)}; }

    static bool is_any(Masks masks) {
        std::int32_t any = 0;
        for (int k = 0; k < kSide; ++k)
            any |= masks[k];
        return any != 0;
    }
};

// A row of fewer than kSide numbers would not fill a vector.
template <class Exact>
NumberKinds take_narrow(const Exact *const *rows, std::int64_t n_columns, const std::int32_t *packed, float *values) {
    bool are_exact = true, are_ordinary = true;
    for (std::int64_t r = 0; r < kGroupRows; ++r)
        for (std::int64_t j = 0; j < n_columns; ++j) {
            const float rounded = values[packed[j] * kGroupRows + r] = round_up(rows[r][j]);
            are_exact &= static_cast<Exact>(rounded) == rows[r][j];
            are_ordinary &= rounded < kHuge;
        }
    return {are_exact, are_ordinary};
}

template <class Exact>
NumberKinds take(const Exact *const *rows, std::int64_t n_columns, const std::int32_t *packed, float *values) {
    if (n_columns < kSide)
        return take_narrow(rows, n_columns, packed, values);
    Rounding rounding;
    for (std::int64_t first = 0; first < kGroupRows; first += kSide)
        for (std::int64_t next = 0; next < n_columns; next += kSide) {
            // The last square overlaps the one before, so that all are whole.
            const std::int64_t column = next + kSide <= n_columns ? next : n_columns - kSide;
            Numbers square[kSide];
#pragma GCC unroll 8
            for (int k = 0; k < kSide; ++k) {
                __builtin_prefetch(rows[first + k + kRowsAhead] + column);
                square[k] = rounding(rows[first + k] + column);
            }
            transpose<kSide>(square);
#pragma GCC unroll 8
            for (int k = 0; k < kSide; ++k)
                __builtin_memcpy(values + packed[column + k] * kGroupRows + first, &square[k], sizeof square[k]);
        }
    return rounding.kinds();
}

// Copies fewer than kByteSide bytes, as two words that may overlap.
void copy_few(std::uint8_t *to, const std::uint8_t *from, std::int64_t n) {
    const auto copy_words = [=](auto word) {
        const auto first = load<decltype(word)>(from), last = load<decltype(word)>(from + n - sizeof word);
        __builtin_memcpy(to, &first, sizeof word);
        __builtin_memcpy(to + n - sizeof word, &last, sizeof word);
    };
    if (n >= 8)
        copy_words(std::uint64_t{});
    else if (n >= 4)
        copy_words(std::uint32_t{});
    else
        for (std::int64_t k = 0; k < n; ++k)
            to[k] = from[k];
}

void write(const std::uint8_t *columns, std::int64_t n_columns, std::int64_t n_rows, std::uint8_t *const *rows) {
    const std::int64_t width = n_columns < kByteSide ? n_columns : kByteSide;
    for (std::int64_t next = 0; next < n_columns; next += kByteSide) {
        // The last square overlaps the one before, so that all are whole if there are kByteSide columns.
        const std::int64_t column = next + width <= n_columns ? next : n_columns - width;
        for (std::int64_t first = 0; first < n_rows; first += kSquares * kByteSide) {
            Bytes squares[kByteSide];
#pragma GCC unroll 16
            for (int k = 0; k < kByteSide; ++k)
                squares[k] = load<Bytes>(columns + (column + (k < width ? k : 0)) * kGroupRows + first);
            transpose<kByteSide>(squares);
            for (int s = 0; s < kSquares; ++s)
                for (int k = 0; k < kByteSide && first + s * kByteSide + k < n_rows; ++k) {
                    const std::uint8_t *row = reinterpret_cast<std::uint8_t *>(&squares[k]) + s * kByteSide;
                    std::uint8_t *to = rows[first + s * kByteSide + k] + column;
                    if (width == kByteSide)
                        __builtin_memcpy(to, row, kByteSide);
                    else
                        copy_few(to, row, width);
                }
        }
    }
}

} // namespace

extern const GroupLayouts ISOKERN_FOR_ISA(group_layouts);
const GroupLayouts ISOKERN_FOR_ISA(group_layouts) = {take<float>, take<double>, write};

} // namespace isokern
