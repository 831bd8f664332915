// Runs a loop over tiles of rows in OpenMP threads, each with its own scratch buffers.
//
// In: a range, a tile size, a number of threads and a function that makes one worker per thread. Out: one call of a
// worker per tile. Tiles are handed out dynamically from an atomic counter. Results must not depend on which thread
// takes which tile: every worker writes only the outputs of its own tile.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>

namespace isokern {

// The number of threads to use when `requested` are asked for (0 or less: OpenMP's default). It is 1 in a process that
// was forked after OpenMP had started threads: the threads do not survive the fork, and GNU's runtime would wait for
// them forever.
int usable_threads(int requested);

// Records that OpenMP has started threads, so that usable_threads knows in a forked child.
void note_threads_started();

// Cuts 0 .. n into tiles and calls worker(begin, end) for each, in any order. make_worker is called once per thread;
// the worker that it returns owns that thread's scratch buffers. An exception stops the loop and is rethrown in the
// calling thread.
template <class MakeWorker>
void parallel_tiles(std::int64_t n, std::int64_t tile, int threads, MakeWorker make_worker) {
    const std::int64_t n_tiles = (n + tile - 1) / tile;
    threads = static_cast<int>(std::min<std::int64_t>(usable_threads(threads), n_tiles));
    if (threads <= 1) {
        if (n_tiles == 0)
            return;
        auto worker = make_worker();
        for (std::int64_t begin = 0; begin < n; begin += tile)
            worker(begin, std::min(begin + tile, n));
        return;
    }
    note_threads_started();
    std::exception_ptr failure;
    std::atomic<std::int64_t> next{0};
#pragma omp parallel num_threads(threads)
    {
        try {
            auto worker = make_worker();
            for (std::int64_t k = next++; k < n_tiles; k = next++)
                worker(k * tile, std::min((k + 1) * tile, n));
        } catch (...) {
            next = n_tiles;
#pragma omp critical(isokern_failure)
            failure = std::current_exception();
        }
    }
    if (failure)
        std::rethrow_exception(failure);
}

// The `threads` argument of parallel_tiles for a loop that reads about n_values values in all: one thread for little
// work, which would be done before other threads have started, else OpenMP's default.
constexpr int threads_for(std::int64_t n_values) { return n_values < 1 << 17 ? 1 : 0; }

// Calls visit(i) for 0 <= i < n, in any order, with threads_for(n_values).
template <class Visit> void parallel_each(std::int64_t n, std::int64_t n_values, Visit visit) {
    parallel_tiles(n, 1, threads_for(n_values), [&] { return [&](std::int64_t i, std::int64_t) { visit(i); }; });
}

} // namespace isokern
