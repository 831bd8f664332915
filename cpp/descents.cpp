#include "descents.hpp"

#include "cpu.hpp"

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
