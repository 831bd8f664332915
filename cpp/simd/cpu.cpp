// Detects the CPU's instruction set by CPUID, through the compiler's built-ins.
//
// In: CPUID, ISOKERN_ISA. Out: one InstructionSet for the whole process. ISOKERN_ISA can only narrow the choice, so
// that tests can run every kernel that the CPU supports; an unknown name is ignored.
#include "simd/cpu.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

namespace isokern {
namespace {

constexpr std::array<const char *, 4> kNames{"baseline", "avx2", "avx512", "avx512vnni"};

// Asks for the extensions that CMakeLists.txt compiles the kernels with.
InstructionSet widest() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq"))
        return __builtin_cpu_supports("avx512vnni") ? InstructionSet::avx512vnni : InstructionSet::avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return InstructionSet::avx2;
#endif
    return InstructionSet::baseline;
}

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
