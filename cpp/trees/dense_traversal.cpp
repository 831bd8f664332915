// Chooses the implementation of trees/dense_traversal.hpp at run time. In: the CPU's instruction set. Out: a table of
// functions.
//
// There is a version for AVX-512, whose compress instructions compact the work list, and a scalar one for all others.
#include "trees/dense_traversal.hpp"

#include "simd/cpu.hpp"

namespace isokern {

extern const DenseTraversals dense_traversals_baseline;
#if defined(__x86_64__)
extern const DenseTraversals dense_traversals_avx512;
#endif

const DenseTraversals &best_dense_traversals() {
#if defined(__x86_64__)
    if (instruction_set() >= InstructionSet::avx512)
        return dense_traversals_avx512;
#endif
    return dense_traversals_baseline;
}

} // namespace isokern
