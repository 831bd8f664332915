// Chooses the implementation of trees/group_layout.hpp at run time. In: the CPU's instruction set. Out: a table of
// functions.
#include "trees/group_layout.hpp"

#include "simd/cpu.hpp"

namespace isokern {

extern const GroupLayouts group_layouts_baseline;
#if defined(__x86_64__)
extern const GroupLayouts group_layouts_avx2;
extern const GroupLayouts group_layouts_avx512;
#endif

const GroupLayouts &best_group_layouts() {
#if defined(__x86_64__)
    if (instruction_set() >= InstructionSet::avx512)
        return group_layouts_avx512;
    if (instruction_set() >= InstructionSet::avx2)
        return group_layouts_avx2;
#endif
    return group_layouts_baseline;
}

} // namespace isokern
