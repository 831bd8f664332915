// The reader-writer lock of models. In: lock operations. Out: who may go on.
//
// One mutex guards the numbers of all locks; it is held for nanoseconds. A forked child starts with a new mutex and
// forgets the readers and waiting writers of each lock, which exist only in the parent.
#include "online/model_lock.hpp"

#include <condition_variable>
#include <mutex>

namespace isokern {
namespace {

struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    int n_writing = 0, n_forking = 0;
    std::int64_t n_forks = 0; // of this process's ancestors
};

// Never freed, because threads may still wait when the process exits; a forked child has its own.
Shared *shared = new Shared;

using Held = std::unique_lock<std::mutex>;

} // namespace

void ModelLock::lock_shared() {
    Shared &all = *shared;
    Held held(all.mutex);
    forget_parent();
    all.changed.wait(held, [&] { return !is_writing_ && n_waiting_ == 0; });
    ++n_readers_;
}

void ModelLock::unlock_shared() {
    Shared &all = *shared;
    const Held held(all.mutex);
    if (--n_readers_ == 0 && n_waiting_ > 0)
        all.changed.notify_all();
}

void ModelLock::lock() {
    Shared &all = *shared;
    Held held(all.mutex);
    forget_parent();
    ++n_waiting_;
    all.changed.wait(held, [&] { return !is_writing_ && n_readers_ == 0 && all.n_forking == 0; });
    --n_waiting_;
    is_writing_ = true;
    ++all.n_writing;
}

void ModelLock::unlock() {
    Shared &all = *shared;
    const Held held(all.mutex);
    is_writing_ = false;
    --all.n_writing;
    all.changed.notify_all();
}

// The threads that read or waited when the process was forked exist only in the parent.
void ModelLock::forget_parent() {
    if (n_forks_ != shared->n_forks) {
        n_readers_ = n_waiting_ = 0;
        n_forks_ = shared->n_forks;
    }
}

void before_fork() {
    Shared &all = *shared;
    Held held(all.mutex);
    ++all.n_forking; // no writer begins from now on
    all.changed.wait(held, [&] { return all.n_writing == 0; });
}

void after_fork_in_parent() {
    Shared &all = *shared;
    const Held held(all.mutex);
    --all.n_forking;
    all.changed.notify_all();
}

void after_fork_in_child() {
    const std::int64_t n_forks = shared->n_forks + 1;
    shared = new Shared;
    shared->n_forks = n_forks;
}

} // namespace isokern
