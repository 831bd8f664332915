// Asks the operating system about the CPUs. The core's only system calls outside of the C++ standard library.
#pragma once

namespace isokern {

// The number of CPUs that this process may use, at least 1.
int available_cpus();

// Asks for the use of AMX's tile registers, which Linux saves only for processes that ask; returns whether it is
// granted. To be called only if CPUID reports them.
bool may_use_tiles();

} // namespace isokern
