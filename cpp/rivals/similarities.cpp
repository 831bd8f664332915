// Chooses the implementation of similarities.hpp at run time. In: the CPU's instruction set. Out: a table of functions.
//
// Each implementation is similarities_kernel.cpp, compiled with the flags of one instruction set.
#include "rivals/similarities.hpp"

#include "simd/cpu.hpp"

namespace isokern {

extern const Similarities similarities_baseline;
#if defined(__x86_64__)
extern const Similarities similarities_avx2;
extern const Similarities similarities_avx512;
#endif

const Similarities &best_similarities() {
#if defined(__x86_64__)
    if (instruction_set() >= InstructionSet::avx512)
        return similarities_avx512;
    if (instruction_set() == InstructionSet::avx2)
        return similarities_avx2;
#endif
    return similarities_baseline;
}

} // namespace isokern
