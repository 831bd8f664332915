// A vector whose new values are not set: threads write them, and the system then gives each thread its own pages.
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace isokern {

template <class T> struct RawAllocator : std::allocator<T> {
    template <class U> struct rebind {
        using other = RawAllocator<U>;
    };

    template <class U> void construct(U *) noexcept {} // nothing: left as it is
    template <class U, class... Values> void construct(U *at, Values &&...values) {
        std::construct_at(at, std::forward<Values>(values)...);
    }
};

template <class T> using RawVector = std::vector<T, RawAllocator<T>>;

} // namespace isokern
