// Where a split sends a value: numbers, missing values and categories.
//
// In: the value of a row in the split's column, the split. Out: left or right. A number goes left if it is less than
// the split. A missing value (NaN) of a numeric column goes to the side of most sampled points, which each node
// remembers. So it stays among typical values; a random side would send it among outliers half of the time. A category
// is a code from 1 to 2^32 - 1, a hash of its name. Its side is one bit of a hash of the code and the split, which is a
// random seed: a random subset of all categories, those never seen included, without a table. A missing category is the
// code 0.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "common/random.hpp"

namespace isokern {

// The code of a category's name in UTF-8: eight bytes at a time are mixed into a hash of 64 bits, which is cut to 32.
inline std::uint32_t category_code(std::string_view name) {
    std::uint64_t hash = name.size() * kStep;
    for (std::size_t begin = 0; begin < name.size(); begin += 8) {
        std::uint64_t word = 0; // the same on every machine: not a load, whose byte order differs
        for (std::size_t k = std::min(name.size(), begin + 8); k-- > begin;)
            word = word << 8 | static_cast<unsigned char>(name[k]);
        hash = mix(hash ^ word) + kStep;
    }
    return std::max<std::uint32_t>(static_cast<std::uint32_t>(mix(hash) >> 32), 1);
}

// A category's code in float64 rows.
inline std::uint32_t category_code(double value) {
    return value > 0 && value < 0x1p32 ? static_cast<std::uint32_t>(value) : 0; // 0 for NaN
}

// Rounds to the least float32 that is not smaller. Always inlined, so that kernels may use it (simd/for_isa.hpp).
[[gnu::always_inline]] inline float round_up(float value) { return value; }
[[gnu::always_inline]] inline float round_up(double value) {
    const float nearest = static_cast<float>(value);
    const auto bits = __builtin_bit_cast(std::int32_t, nearest);
    const std::int32_t is_below = static_cast<double>(nearest) < value;
    const std::int32_t step = -is_below & (bits >> 31 | 1); // without a branch, which would be unpredictable
    return __builtin_bit_cast(float, bits + step);
}

// Three rounds of multiply and shift; the constants are random odd numbers. A split's seeds are drawn until one
// separates, so the bits of two codes must differ for half of all seeds.
constexpr std::uint32_t kCategoryFactors[] = {0x9E3779B1u, 0xB5D1E46Bu, 0xD6E8FEB9u};
constexpr int kCategoryShift = 15;

// Always inlined, like round_up.
[[gnu::always_inline]] inline bool category_goes_right(std::uint32_t code, std::uint32_t seed) {
    std::uint32_t hash = code ^ seed;
    for (const std::uint32_t factor : kCategoryFactors) {
        hash *= factor;
        hash ^= hash >> kCategoryShift;
    }
    return hash & 1;
}

} // namespace isokern
