// Chooses the implementation of trees/group_descent.hpp at run time. In: the CPU's instruction set. Out: a table of
// functions.
#include "trees/group_descent.hpp"

#include "simd/cpu.hpp"

namespace isokern {

extern const GroupDescents group_descents_baseline;
#if defined(__x86_64__)
extern const GroupDescents group_descents_avx2;
extern const GroupDescents group_descents_avx512;
#endif

const GroupDescents &best_group_descents() {
#if defined(__x86_64__)
    if (instruction_set() >= InstructionSet::avx512)
        return group_descents_avx512;
    if (instruction_set() >= InstructionSet::avx2)
        return group_descents_avx2;
#endif
    return group_descents_baseline;
}

} // namespace isokern
