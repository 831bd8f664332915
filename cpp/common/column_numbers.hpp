// Numbers the columns that occur, in order of first appearance, out of possibly millions of columns.
//
// In: column numbers. Out: consecutive numbers 0, 1, .... Unlike ColumnRanks it can grow while it is used.
#pragma once

#include <cstdint>

#include "common/hash_table.hpp"

namespace isokern {

class ColumnNumbers {
  public:
    std::int32_t size() const { return static_cast<std::int32_t>(numbers_.size()); }

    // The column's number; a new column gets the next one.
    std::int32_t number(std::int32_t column) { return numbers_.get_or_insert(column, size()); }

    // The column's number, or -1 if it has none.
    std::int32_t find(std::int32_t column) const { return numbers_.find(column); }

  private:
    HashTable<std::int32_t, std::int32_t> numbers_;
};

} // namespace isokern
