// Loops over tiles of rows in OpenMP threads, each thread with scratch space of its own.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>

namespace isokern {

// How many threads to use when `requested` are asked for (0 or less: what OpenMP allows). In a process that was forked
// after OpenMP had started threads it is 1: they did not survive the fork, and GNU's runtime would wait for them
// forever.
int usable_threads(int requested);

// Remembers that OpenMP has threads running, so that usable_threads can tell in a forked child.
void note_threads_started();

// Cuts 0 .. n into tiles and calls worker(begin, end) for each, in any order. make_worker is called once per thread and
// holds that thread's scratch space. The first exception ends the loop and is thrown on.
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

// What to ask parallel_tiles for when about so many values are to be looked at in all: one thread, or what OpenMP
// allows where that is worth the threads' start.
constexpr int threads_for(std::int64_t n_values) { return n_values < 1 << 17 ? 1 : 0; }

// Calls visit(i) for 0 <= i < n, in any order and in threads_for(n_values).
template <class Visit> void parallel_each(std::int64_t n, std::int64_t n_values, Visit visit) {
    parallel_tiles(n, 1, threads_for(n_values), [&] { return [&](std::int64_t i, std::int64_t) { visit(i); }; });
}

} // namespace isokern
