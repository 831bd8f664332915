// Counts CPUs: on Linux those in the process's affinity mask, which containers and job schedulers limit; elsewhere all.
// Tile registers: on Linux by arch_prctl; elsewhere not.
#include "common/cpus.hpp"

#include <algorithm>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace isokern {

int available_cpus() {
#if defined(__linux__)
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        return CPU_COUNT(&allowed);
#endif
    return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

bool may_use_tiles() {
#if defined(__linux__) && defined(__x86_64__)
    constexpr long kRequestPermission = 0x1023, kTileData = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
    return false;
#endif
}

} // namespace isokern
