// Lets many threads score a model while one learns it: a reader-writer lock that prefers writers and survives fork().
//
// In: threads that want to read or to change a model. Out: a reader sees the model before or after a change. Waiting
// writers go before new readers, so that a stream of readers cannot starve them. A fork waits for the writers of all
// models, so the child has whole models; the readers of the parent do not exist in the child, and are not waited for.
#pragma once

#include <cstdint>

namespace isokern {

// Satisfies SharedLockable: use it with std::shared_lock and std::unique_lock. Never wait for it while holding the GIL.
class ModelLock {
  public:
    ModelLock() = default;
    ModelLock(const ModelLock &) {} // a copy of a model has a lock of its own
    ModelLock &operator=(const ModelLock &) { return *this; }

    void lock_shared();
    void unlock_shared();
    void lock();
    void unlock();

  private:
    void forget_parent();

    int n_readers_ = 0, n_waiting_ = 0; // threads that read, and that wait to write
    bool is_writing_ = false;
    std::int64_t n_forks_ = 0; // of this process's ancestors, when the numbers were valid
};

// Call these in the thread that forks: before, and after in the parent and in the child.
void before_fork();
void after_fork_in_parent();
void after_fork_in_child();

} // namespace isokern
