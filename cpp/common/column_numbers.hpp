// Numbers the columns that occur, in order of first appearance, out of possibly millions of columns.
//
// In: column numbers. Out: consecutive numbers 0, 1, .... The structure is a hash table with linear probing and
// Fibonacci hashing, at most half full. Unlike ColumnRanks it can grow while it is used.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace isokern {

class ColumnNumbers {
  public:
    ColumnNumbers() : columns_(16, -1), numbers_(16) {}

    std::int32_t size() const { return size_; }

    // The column's number; a new column gets the next one.
    std::int32_t number(std::int32_t column) {
        if (2 * (static_cast<std::size_t>(size_) + 1) > columns_.size())
            grow();
        const std::size_t slot = slot_of(column);
        if (columns_[slot] < 0) {
            columns_[slot] = column;
            numbers_[slot] = size_++;
        }
        return numbers_[slot];
    }

    // The column's number, or -1 if it has none.
    std::int32_t find(std::int32_t column) const {
        const std::size_t slot = slot_of(column);
        return columns_[slot] < 0 ? -1 : numbers_[slot];
    }

  private:
    // Where the column is in the table, or the free slot where it belongs. The factor is kStep of random.hpp.
    std::size_t slot_of(std::int32_t column) const {
        const std::size_t mask = columns_.size() - 1;
        std::size_t slot = (static_cast<std::uint64_t>(column) * 0x9E3779B97F4A7C15u >> 32) & mask;
        while (columns_[slot] >= 0 && columns_[slot] != column)
            slot = (slot + 1) & mask;
        return slot;
    }

    void grow() {
        std::vector<std::int32_t> columns(2 * columns_.size(), -1), numbers(2 * columns_.size());
        columns.swap(columns_);
        numbers.swap(numbers_);
        for (std::size_t k = 0; k < columns.size(); ++k)
            if (columns[k] >= 0) {
                const std::size_t slot = slot_of(columns[k]);
                columns_[slot] = columns[k];
                numbers_[slot] = numbers[k];
            }
    }

    std::vector<std::int32_t> columns_, numbers_;
    std::int32_t size_ = 0;
};

} // namespace isokern
