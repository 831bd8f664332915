// Detects the CPU's instruction set by CPUID.
//
// In: CPUID, ISOKERN_ISA. Out: one InstructionSet for the whole process. ISOKERN_ISA can only narrow the choice, so
// that tests can run every kernel that the CPU supports; an unknown name is ignored.
#include "simd/cpu.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "common/cpus.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace isokern {
namespace {

constexpr std::array<const char *, 5> kNames{"baseline", "avx2", "avx512", "avx512vnni", "amx"};

#if defined(__x86_64__)

// Bits of XCR0: the operating system saves the registers of AVX (xmm, ymm), of AVX-512 (also opmask, zmm), and of AMX
// (also tiles).
constexpr unsigned kAvxState = 0x06;
constexpr unsigned kAvx512State = 0xe6;
constexpr unsigned kTileState = 0x600e6;
// Bits of CPUID: tiles and their int8 products. Compilers name them differently.
constexpr unsigned kAmx = 0x03000000;

// Returns the lower half of XCR0. Only allowed if CPUID reports OSXSAVE.
unsigned saved_state() {
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

constexpr bool contains(unsigned bits, unsigned wanted) { return (bits & wanted) == wanted; }

// Asks for the extensions that CMakeLists.txt compiles the kernels with. __builtin_cpu_supports would be shorter, but
// reads variables of libgcc or compiler-rt, which are not linked on all platforms.
InstructionSet widest() {
    unsigned eax, ebx, ecx, edx;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !contains(ecx, bit_OSXSAVE | bit_AVX | bit_FMA))
        return InstructionSet::baseline;
    const unsigned state = saved_state();
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || !contains(ebx, bit_AVX2) || !contains(state, kAvxState))
        return InstructionSet::baseline;
    if (!contains(ebx, bit_AVX512F | bit_AVX512BW | bit_AVX512VL | bit_AVX512DQ) || !contains(state, kAvx512State))
        return InstructionSet::avx2;
    if (!contains(ecx, bit_AVX512VNNI))
        return InstructionSet::avx512;
    const bool has_tiles = contains(edx, kAmx) && contains(state, kTileState) && may_use_tiles();
    return has_tiles ? InstructionSet::amx : InstructionSet::avx512vnni;
}

#else

InstructionSet widest() { return InstructionSet::baseline; }

#endif

InstructionSet chosen() {
    const char *wanted = std::getenv("ISOKERN_ISA");
    for (std::size_t k = 0; wanted && k < kNames.size(); ++k)
        if (std::string_view(wanted) == kNames[k])
            return std::min(static_cast<InstructionSet>(k), widest());
    return widest();
}

} // namespace

InstructionSet instruction_set() {
    static const InstructionSet set = chosen();
    return set;
}

const char *name_of(InstructionSet set) { return kNames[static_cast<std::size_t>(set)]; }

} // namespace isokern
