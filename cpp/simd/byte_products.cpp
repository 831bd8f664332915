// Chooses the implementation of byte_products.hpp at run time. In: the CPU's instruction set. Out: a table of
// functions.
//
// Each implementation is byte_products_kernel.cpp, compiled with the flags of one instruction set.
#include "simd/byte_products.hpp"

#include "simd/cpu.hpp"

namespace isokern {

#if defined(__x86_64__)
extern const ByteProducts byte_products_avx2;
extern const ByteProducts byte_products_avx512;
extern const ByteProducts byte_products_avx512vnni;
extern const ByteProducts byte_products_amx;
#endif

const ByteProducts *best_byte_products() {
#if defined(__x86_64__)
    switch (instruction_set()) {
    case InstructionSet::amx:
        return &byte_products_amx;
    case InstructionSet::avx512vnni:
        return &byte_products_avx512vnni;
    case InstructionSet::avx512:
        return &byte_products_avx512;
    case InstructionSet::avx2:
        return &byte_products_avx2;
    case InstructionSet::baseline:
        break;
    }
#endif
    return nullptr;
}

} // namespace isokern
