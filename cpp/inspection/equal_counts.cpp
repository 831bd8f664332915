// Chooses the implementation of equal_counts.hpp at run time. In: the CPU's instruction set. Out: a table of functions.
#include "inspection/equal_counts.hpp"

#include "simd/cpu.hpp"

namespace isokern {

extern const EqualCounts equal_counts_baseline;
#if defined(__x86_64__)
extern const EqualCounts equal_counts_avx2;
extern const EqualCounts equal_counts_avx512;
#endif

const EqualCounts &best_equal_counts() {
#if defined(__x86_64__)
    if (instruction_set() >= InstructionSet::avx512)
        return equal_counts_avx512;
    if (instruction_set() == InstructionSet::avx2)
        return equal_counts_avx2;
#endif
    return equal_counts_baseline;
}

} // namespace isokern
