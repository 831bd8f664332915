// Starts threads for one loop, and chooses their number.
//
// In: the requested number of threads, the work of each. Out: the work, done. Threads end with the loop: starting one
// takes some tens of microseconds, little beside the loops that use them, and there is no pool that a forked child
// would miss. OpenMP has such a pool, and ends the process if the system refuses to start a thread.
#include "common/threads.hpp"

#include <cstdlib>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "common/cpus.hpp"

namespace isokern {
namespace {

constexpr int kMost = 256; // threads of one loop, unless there are more CPUs

int default_threads() {
    const char *wanted = std::getenv("OMP_NUM_THREADS");
    const int n = wanted ? std::atoi(wanted) : 0; // of a list, for nested loops, the first number
    return n > 0 ? n : available_cpus();
}

// Threads that are joined at the end of a block, as by std::jthread, which not every standard library has.
struct Joined : std::vector<std::thread> {
    ~Joined() {
        for (std::thread &one : *this)
            one.join();
    }
};

} // namespace

int usable_threads(int requested) {
    static const int by_default = default_threads(), most = std::max(available_cpus(), kMost);
    return std::min(requested > 0 ? requested : by_default, most);
}

void run_in_threads(int threads, const std::function<void()> &work) {
    std::exception_ptr failure;
    std::mutex failing;
    const auto guarded = [&] {
        try {
            work();
        } catch (...) {
            const std::lock_guard lock(failing);
            if (!failure)
                failure = std::current_exception();
        }
    };
    {
        Joined others;
        try {
            while (static_cast<int>(others.size()) + 1 < threads)
                others.emplace_back(guarded);
        } catch (const std::system_error &) {
            // The system starts no more threads: those that there are do the work.
        }
        guarded();
    }
    if (failure)
        std::rethrow_exception(failure);
}

} // namespace isokern
