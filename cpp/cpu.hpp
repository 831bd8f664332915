// What the CPU can do.
#pragma once

namespace isokern {

// In ascending order; those of x86-64 other than the baseline are compiled for it only.
enum class InstructionSet { baseline, avx2, avx512, avx512vnni };

// The widest that this CPU runs, or the narrower one that the environment variable ISOKERN_ISA names.
InstructionSet instruction_set();

// Its name: "baseline", "avx2", "avx512" or "avx512vnni".
const char *name_of(InstructionSet set);

} // namespace isokern
