// Chooses the implementation of products.hpp at run time. In: the CPU's instruction set. Out: a table of functions.
//
// Each implementation is products_kernel.cpp, compiled with the flags of one instruction set.
#include "simd/products.hpp"

#include "simd/cpu.hpp"

namespace isokern {

extern const Products products_baseline;
#if defined(__x86_64__)
extern const Products products_avx2;
extern const Products products_avx512;
#endif

const Products &best_products() {
#if defined(__x86_64__)
    if (instruction_set() >= InstructionSet::avx512)
        return products_avx512;
    if (instruction_set() == InstructionSet::avx2)
        return products_avx2;
#endif
    return products_baseline;
}

} // namespace isokern
