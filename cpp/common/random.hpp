// A counter-based random number generator: SplitMix64 with random access.
//
// In: a seed, a purpose and a number, which together give the key of a stream. Out: 64-bit integers, integers below n,
// or numbers in (0, 1]. The c-th draw is mix(key + c * step), so streams are independent of each other and of the order
// in which threads use them. It needs integer arithmetic only and no call into libm: all CPUs draw the same numbers.
#pragma once

#include <cstdint>

namespace isokern {

constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15u; // 2^64 / golden ratio, odd; also the factor of Fibonacci hashing

// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
constexpr std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

// The upper 64 bits of the 128-bit product a * b, by schoolbook multiplication: standard C++ has no 128-bit integers.
constexpr std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
    const std::uint64_t a_low = a & 0xFFFFFFFFu, a_high = a >> 32;
    const std::uint64_t b_low = b & 0xFFFFFFFFu, b_high = b >> 32;
    const std::uint64_t low = a_low * b_low;
    const std::uint64_t middle = a_high * b_low + (low >> 32);
    const std::uint64_t other = a_low * b_high + (middle & 0xFFFFFFFFu);
    return a_high * b_high + (middle >> 32) + (other >> 32);
}

// Each purpose has one stream per partitioning (sample, tree) or per column of scores (machine).
enum class Purpose : std::uint64_t { sample = 1, tree = 2, machine = 3 };

constexpr std::uint64_t stream_key(std::uint64_t seed, Purpose purpose, std::uint64_t number) {
    return mix(mix(mix(seed + kStep) + static_cast<std::uint64_t>(purpose) * kStep) + number * kStep);
}

// The draws of one stream, in order.
class Draws {
  public:
    explicit constexpr Draws(std::uint64_t key) : key_(key) {}

    constexpr std::uint64_t next() { return mix(key_ + ++counter_ * kStep); }

    // Uniform on 0 .. n - 1, by multiply-shift (Lemire, 2019) without rejection: the bias, below n / 2^64, is far too
    // small to be measured.
    constexpr std::uint64_t below(std::uint64_t n) { return multiply_high(next(), n); }

    // Uniform on the multiples of 2^-53 in (0, 1].
    constexpr double unit() { return static_cast<double>((next() >> 11) + 1) * 0x1p-53; }

  private:
    std::uint64_t key_;
    std::uint64_t counter_ = 0;
};

} // namespace isokern
