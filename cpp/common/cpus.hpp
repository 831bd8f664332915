// Asks the operating system how many CPUs there are. The core's only system call outside of the C++ standard library.
#pragma once

namespace isokern {

// The number of CPUs that this process may use, at least 1.
int available_cpus();

} // namespace isokern
