#include "threads.hpp"

#include <algorithm>
#include <mutex>
#include <omp.h>
#include <pthread.h>

namespace isokern {
namespace {

std::atomic<bool> threads_started{false};
std::atomic<bool> forked_since{false};

void after_fork_in_child() {
    if (threads_started)
        forked_since = true;
}

} // namespace

int usable_threads(int requested) {
    if (forked_since)
        return 1;
    // More than this may be more than the system gives, and OpenMP ends the process then.
    const int most = std::max(omp_get_num_procs(), 256);
    return requested > 0 ? std::min(requested, most) : omp_get_max_threads();
}

void note_threads_started() {
    static std::once_flag once;
    std::call_once(once, [] { pthread_atfork(nullptr, nullptr, after_fork_in_child); });
    threads_started = true;
}

} // namespace isokern
