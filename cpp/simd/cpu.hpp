// Detects the SIMD instruction set of the CPU, for dispatch at run time.
//
// In: the CPU, and optionally the environment variable ISOKERN_ISA. Out: the instruction set to use. The files
// *_kernel.cpp are compiled once per instruction set; best_products, best_similarities and their like choose by it.
#pragma once

namespace isokern {

// In ascending order. All but the baseline exist on x86-64 only.
enum class InstructionSet { baseline, avx2, avx512, avx512vnni, amx };

// The widest set that this CPU supports, or a narrower one if the environment variable ISOKERN_ISA names it. Read once.
InstructionSet instruction_set();

// The set's name: "baseline", "avx2", "avx512", "avx512vnni" or "amx".
const char *name_of(InstructionSet set);

} // namespace isokern
