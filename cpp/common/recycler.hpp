// Keeps the memory of large arrays that are replaced again and again: new memory costs a page fault for each page.
//
// In: sizes. Out: blocks of memory, which come back when they are not needed any more. A size that is not there means
// that the arrays have become larger or smaller, so all blocks that are kept are freed. Safe for threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

namespace isokern {

class Recycler {
  public:
    struct Block {
        std::size_t size;
        std::unique_ptr<std::byte[]> memory;
    };

    // A block of this size, with any content.
    Block take(std::size_t size) {
        std::vector<Block> freed; // after the lock
        const std::lock_guard lock(mutex_);
        const auto found =
            std::find_if(kept_.begin(), kept_.end(), [&](const Block &block) { return block.size == size; });
        if (found == kept_.end()) {
            freed.swap(kept_);
            return {size, std::make_unique_for_overwrite<std::byte[]>(size)};
        }
        Block block = std::move(*found);
        kept_.erase(found);
        return block;
    }

    void give_back(Block block) {
        const std::lock_guard lock(mutex_);
        kept_.push_back(std::move(block));
    }

    // Bytes of the blocks that are kept.
    std::size_t n_bytes() const {
        const std::lock_guard lock(mutex_);
        return std::accumulate(kept_.begin(), kept_.end(), std::size_t{0},
                               [](std::size_t sum, const Block &block) { return sum + block.size; });
    }

  private:
    mutable std::mutex mutex_;
    std::vector<Block> kept_;
};

} // namespace isokern
