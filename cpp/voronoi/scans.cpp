// Chooses the implementation of voronoi/scans.hpp at run time. In: the CPU's instruction set. Out: a table of
// functions.
//
// Each implementation is scans_kernel.cpp, compiled with the flags of one instruction set.
#include "voronoi/scans.hpp"

#include "simd/cpu.hpp"

namespace isokern {

extern const Scans scans_baseline;
#if defined(__x86_64__)
extern const Scans scans_avx2;
extern const Scans scans_avx512;
#endif

const Scans &best_scans() {
#if defined(__x86_64__)
    if (instruction_set() >= InstructionSet::avx512)
        return scans_avx512;
    if (instruction_set() == InstructionSet::avx2)
        return scans_avx2;
#endif
    return scans_baseline;
}

} // namespace isokern
