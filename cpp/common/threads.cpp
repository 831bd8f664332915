// Limits the number of threads, and makes OpenMP safe after fork().
//
// In: the requested number of threads. Out: a number that can be started. GNU's OpenMP keeps a pool of threads, which a
// forked child does not inherit although the pool's state says that they exist. A pthread_atfork handler marks such a
// child, which then runs all loops in one thread.
#include "common/threads.hpp"

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
    // OpenMP terminates the process if the system refuses to start a thread, so absurd requests are capped.
    const int most = std::max(omp_get_num_procs(), 256);
    return requested > 0 ? std::min(requested, most) : omp_get_max_threads();
}

void note_threads_started() {
    static std::once_flag once;
    std::call_once(once, [] { pthread_atfork(nullptr, nullptr, after_fork_in_child); });
    threads_started = true;
}

} // namespace isokern
