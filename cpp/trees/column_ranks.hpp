// Numbers the columns that occur in splits, in ascending order, out of possibly millions of columns.
//
// In: column numbers, by add. Out: find gives a column's number 0, 1, ..., or -1. The structure is a bit vector with
// rank support (succinct data structures): one bit per column and, for each 32-bit word, the number of columns before
// it, so that a lookup is a page, a word and a popcount. All pages without a column share one empty page.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace isokern {

class ColumnRanks {
  public:
    explicit ColumnRanks(std::int64_t n_columns = 0)
        : pages_(static_cast<std::size_t>(std::min(n_columns, kMostColumns) / kPageColumns + 1)), words_(kPageWords) {}

    void add(std::int32_t column) {
        std::int32_t &page = pages_[column / kPageColumns];
        if (page == 0) {
            page = static_cast<std::int32_t>(words_.size() / kPageWords);
            words_.resize(words_.size() + kPageWords);
        }
        std::uint32_t &bits = words_[place(column)].bits;
        if (!(bits & bit(column))) // a store would delay the next load of the word
            bits |= bit(column);
    }

    // Numbers the columns. Call it once, after the last column has been added.
    //  n_before[w] = the number of bits set in all words before w
    void number() {
        size_ = 0;
        for (const std::int32_t page : pages_)
            for (std::int64_t k = 0; page != 0 && k < kPageWords; ++k) {
                Word &word = words_[page * kPageWords + k];
                word.n_before = size_;
                size_ += count(word.bits);
            }
    }

    std::int32_t size() const { return size_; }

    // All columns that have been added, ascending.
    std::vector<std::int32_t> columns() const {
        std::vector<std::int32_t> all;
        all.reserve(static_cast<std::size_t>(size_));
        for (std::size_t p = 0; p < pages_.size(); ++p)
            for (std::int64_t k = 0; pages_[p] != 0 && k < kPageWords; ++k)
                for (std::uint32_t bits = words_[pages_[p] * kPageWords + k].bits; bits != 0; bits &= bits - 1)
                    all.push_back(static_cast<std::int32_t>(static_cast<std::int64_t>(p) * kPageColumns + 32 * k) +
                                  std::countr_zero(bits));
        return all;
    }

    // The column's number, or -1 if it has none.
    std::int32_t find(std::int32_t column) const {
        const Word &word = words_[place(column)];
        return word.bits & bit(column) ? word.n_before + count(word.bits & (bit(column) - 1)) : -1;
    }

  private:
    static constexpr std::int64_t kPageWords = 32, kPageColumns = 32 * kPageWords;
    static constexpr std::int64_t kMostColumns = std::numeric_limits<std::int32_t>::max();

    struct Word {
        std::uint32_t bits = 0;
        std::int32_t n_before = 0;
    };

    static std::uint32_t bit(std::int32_t column) { return std::uint32_t{1} << column % 32; }

    // The number of bits set, by sums of neighbouring fields. std::popcount calls a function where it may not count on
    // the instruction, as in this file.
    static std::int32_t count(std::uint32_t bits) {
        bits -= bits >> 1 & 0x55555555u;
        bits = (bits & 0x33333333u) + (bits >> 2 & 0x33333333u);
        return static_cast<std::int32_t>(((bits + (bits >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24);
    }

    std::int64_t place(std::int32_t column) const {
        const auto c = static_cast<std::uint32_t>(column);
        return pages_[c / kPageColumns] * kPageWords + c / 32 % kPageWords;
    }

    std::vector<std::int32_t> pages_; // column / kPageColumns -> page; page 0 is the shared empty one
    std::vector<Word> words_;
    std::int32_t size_ = 0;
};

} // namespace isokern
