// Provides a std::vector that leaves new elements uninitialised.
//
// resize() of a plain vector would zero large outputs in one thread before the worker threads overwrite them. Without
// that pass, memory pages are first touched, and so allocated, by the thread that fills them (first-touch policy).
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace isokern {

template <class T> struct RawAllocator : std::allocator<T> {
    template <class U> struct rebind {
        using other = RawAllocator<U>;
    };

    template <class U> void construct(U *) noexcept {} // leaves the element uninitialised
    template <class U, class... Values> void construct(U *at, Values &&...values) {
        std::construct_at(at, std::forward<Values>(values)...);
    }
};

template <class T> using RawVector = std::vector<T, RawAllocator<T>>;

} // namespace isokern
