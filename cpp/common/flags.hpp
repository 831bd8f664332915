// Packs flags into a bit set.
//
// In: 64 bytes of 0 or 1. Out: a word, whose bit k is the k-th flag: for eight flags at a time, one product gathers
// them in its uppermost byte. Always inlined, so that kernels may use it (simd/for_isa.hpp).
#pragma once

#include <cstdint>

namespace isokern {

[[gnu::always_inline]] inline std::uint64_t pack_flags(const std::uint8_t (&flags)[64]) {
    std::uint64_t bits = 0;
    for (int k = 0; k < 8; ++k) {
        std::uint64_t bytes = 0;
        for (int b = 0; b < 8; ++b)
            bytes |= static_cast<std::uint64_t>(flags[8 * k + b]) << 8 * b;
        bits |= (bytes * 0x0102040810204080u) >> 56 << 8 * k;
    }
    return bits;
}

} // namespace isokern
