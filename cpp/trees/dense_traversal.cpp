// Chooses the implementation of trees/dense_traversal.hpp at run time. In: the CPU's instruction set. Out: a table of
// functions.
//
// There is a version for AVX-512, whose compress instructions compact the work list, and a scalar one for all others.
#include "trees/dense_traversal.hpp"

#include "simd/cpu.hpp"

namespace isokern {

extern const Descents descents_baseline;
#if defined(__x86_64__)
extern const Descents descents_avx512;
#endif

const Descents &best_descents() {
#if defined(__x86_64__)
    if (instruction_set() >= InstructionSet::avx512)
        return descents_avx512;
#endif
    return descents_baseline;
}

} // namespace isokern
