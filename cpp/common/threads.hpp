// Runs a loop over tiles of rows in threads, each with its own scratch buffers.
//
// In: a range, a tile size, a number of threads and a function that makes one worker per thread. Out: one call of a
// worker per tile. Tiles are handed out dynamically from an atomic counter. Results must not depend on which thread
// takes which tile: every worker writes only the outputs of its own tile.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>

namespace isokern {

// The number of threads to use when `requested` are asked for. 0 or less: $OMP_NUM_THREADS, as in other libraries, else
// one for each CPU that this process may use.
int usable_threads(int requested);

// Calls work() in `threads` threads, this one included, and waits for them; in fewer if the system refuses to start so
// many. The first exception is rethrown.
void run_in_threads(int threads, const std::function<void()> &work);

// Cuts 0 .. n into tiles and calls worker(begin, end) for each, in any order. make_worker is called once per thread;
// the worker that it returns owns that thread's scratch buffers. An exception ends the loop and is rethrown.
template <class MakeWorker>
void parallel_tiles(std::int64_t n, std::int64_t tile, int threads, MakeWorker make_worker) {
    const std::int64_t n_tiles = (n + tile - 1) / tile;
    std::atomic<std::int64_t> next{0};
    const auto work = [&] {
        std::int64_t k = next++;
        if (k >= n_tiles)
            return;
        try {
            auto worker = make_worker();
            for (; k < n_tiles; k = next++)
                worker(k * tile, std::min((k + 1) * tile, n));
        } catch (...) {
            next = n_tiles;
            throw;
        }
    };
    if (n_tiles <= 1 || threads == 1)
        return work();
    run_in_threads(static_cast<int>(std::min<std::int64_t>(usable_threads(threads), n_tiles)), work);
}

// The `threads` argument of parallel_tiles for a loop that reads about n_values values in all: one thread for little
// work, which would be done before other threads have started, else the default.
constexpr int threads_for(std::int64_t n_values) { return n_values < 1 << 17 ? 1 : 0; }

// Calls visit(i) for 0 <= i < n, in any order, with threads_for(n_values).
template <class Visit> void parallel_each(std::int64_t n, std::int64_t n_values, Visit visit) {
    parallel_tiles(n, 1, threads_for(n_values), [&] { return [&](std::int64_t i, std::int64_t) { visit(i); }; });
}

} // namespace isokern
