// Chooses the implementation of path_products.hpp at run time. In: the CPU's instruction set. Out: a table of
// functions.
#include "inspection/path_products.hpp"

#include "simd/cpu.hpp"

namespace isokern {

extern const PathProducts path_products_baseline;
#if defined(__x86_64__)
extern const PathProducts path_products_avx2;
extern const PathProducts path_products_avx512;
#endif

const PathProducts &best_path_products() {
#if defined(__x86_64__)
    if (instruction_set() >= InstructionSet::avx512)
        return path_products_avx512;
    if (instruction_set() == InstructionSet::avx2)
        return path_products_avx2;
#endif
    return path_products_baseline;
}

} // namespace isokern
