// A hash table from integer keys to non-negative integers: linear probing and Fibonacci hashing, at most half full.
//
// In: keys and their values. Out: the value of a key, or -1. Small and flat, so that a lookup is usually one cache
// line; std::unordered_map allocates a node per key.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/random.hpp"

namespace isokern {

template <class Key, class Value> class HashTable {
  public:
    explicit HashTable(std::size_t expected_size = 8)
        : slots_(std::bit_ceil(2 * std::max<std::size_t>(1, expected_size))) {}

    std::size_t size() const { return size_; }

    // The key's value; a new key gets `value`. The reference is valid until the next new key.
    Value &get_or_insert(Key key, Value value) {
        std::size_t at = slot_of(key);
        if (slots_[at].value < 0) {
            if (2 * (size_ + 1) > slots_.size()) {
                grow();
                at = slot_of(key);
            }
            slots_[at] = {key, value};
            ++size_;
        }
        return slots_[at].value;
    }

    // The key's value, or -1 if it has none.
    Value find(Key key) const { return slots_[slot_of(key)].value; }

    void clear() {
        std::fill(slots_.begin(), slots_.end(), Slot{});
        size_ = 0;
    }

  private:
    struct Slot {
        Key key = 0;
        Value value = -1; // -1: free
    };

    // Where the key is, or the free slot where it belongs. The highest bits of the product depend on all bits of the
    // key.
    std::size_t slot_of(Key key) const {
        const std::size_t mask = slots_.size() - 1;
        std::size_t at = static_cast<std::uint64_t>(key) * kStep >> (64 - std::countr_zero(slots_.size()));
        while (slots_[at].value >= 0 && slots_[at].key != key)
            at = (at + 1) & mask;
        return at;
    }

    void grow() {
        std::vector<Slot> before(2 * slots_.size());
        before.swap(slots_);
        for (const Slot &slot : before)
            if (slot.value >= 0)
                slots_[slot_of(slot.key)] = slot;
    }

    std::vector<Slot> slots_;
    std::size_t size_ = 0;
};

} // namespace isokern
