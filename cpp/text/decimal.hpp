// Parses decimal numbers to the nearest double.
//
// In: text. Out: the value, and where the number ends. Short numbers take a fast path: an integer of at most 2^53
// divided by a power of ten, both exact doubles, so that the result is rounded only once (Clinger, 1990). All others go
// to std::from_chars.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <system_error>

namespace isokern {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The decimal exponent of a number's first significant digit, for numbers out of the range of doubles: positive if it
// is too large, not positive if it is too small.
inline std::int64_t decimal_magnitude(const char *at, const char *end) {
    std::int64_t magnitude = 0;
    bool is_significant = false, after_point = false;
    for (; at < end && (is_digit(*at) || *at == '.'); ++at) {
        if (*at == '.') {
            after_point = true;
            continue;
        }
        is_significant = is_significant || *at != '0';
        magnitude += after_point ? -!is_significant : is_significant;
    }
    if (at == end)
        return magnitude;
    at += at + 1 < end && at[1] == '+' ? 2 : 1;
    std::int32_t exponent = 0;
    if (std::from_chars(at, end, exponent).ec != std::errc())
        exponent = *at == '-' ? std::numeric_limits<std::int32_t>::min() : std::numeric_limits<std::int32_t>::max();
    return magnitude + exponent;
}

// Reads a finite decimal number from the start of [at, end), rounded to the nearest double. Numbers too small for a
// double become 0. Returns where the number ends, or nullptr if there is no number or it is too large for a double.
inline const char *read_decimal(const char *at, const char *end, double &value) {
    static constexpr std::array<double, 19> kPowers{1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8, 1e9,
                                                    1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18};
    const bool is_negative = at < end && *at == '-';
    at += is_negative || (at < end && *at == '+');
    if (at == end || !(is_digit(*at) || *at == '.'))
        return nullptr;
    // Fast path: fewer than 19 digits fit into 64 bits. Overflow beyond that is harmless, because the result is unused.
    const char *p = at;
    std::uint64_t digits = 0;
    for (; p < end && is_digit(*p); ++p)
        digits = 10 * digits + static_cast<std::uint64_t>(*p - '0');
    const char *point = p;
    std::int64_t n_digits = p - at;
    if (p < end && *p == '.')
        for (++p; p < end && is_digit(*p); ++p, ++n_digits)
            digits = 10 * digits + static_cast<std::uint64_t>(*p - '0');
    const bool is_plain = p == end || (*p != 'e' && *p != 'E');
    if (is_plain && n_digits > 0 && n_digits < 19 && digits <= (std::uint64_t{1} << 53)) {
        const auto n_decimals = static_cast<std::size_t>(p == point ? 0 : p - point - 1);
        value = static_cast<double>(digits) / kPowers[n_decimals];
    } else {
        const auto [stop, error] = std::from_chars(at, end, value);
        if (error == std::errc::result_out_of_range && decimal_magnitude(at, stop) <= 0)
            value = 0.0;
        else if (error != std::errc())
            return nullptr;
        p = stop;
    }
    value = is_negative ? -value : value;
    return p;
}

} // namespace isokern
