#include "threads.hpp"

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
    return requested > 0 ? requested : omp_get_max_threads();
}

void note_threads_started() {
    static std::once_flag once;
    std::call_once(once, [] { pthread_atfork(nullptr, nullptr, after_fork_in_child); });
    threads_started = true;
}

} // namespace isokern
