// Sums and updates the table entries of a row's cells: the inner loops of the one-hot feature map.
//
// In: a row's cell numbers phi_i(x), one per partitioning, and a table with one entry per cell of all partitionings.
// Out: the sum of the row's t entries, or the table with a number added to each of them. The place of a cell is its
// index in the table, start of the partitioning + cell number. A sparse dot product and update with one-hot rows.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "online/online.hpp"

namespace isokern {

// The places of a row's cells:  row[i] = starts[i] + phi_i(x)
template <class Cell> struct Places {
    const Cell *cells;
    const std::int64_t *starts;
    std::int64_t t;

    explicit Places(const CellRows<Cell> &rows) : cells(rows.cells), starts(rows.starts), t(rows.t) {}
    std::int64_t place(std::int64_t i, std::int64_t cell) const { return starts[i] + cell; }
    std::int64_t operator[](std::int64_t i) const { return place(i, cells[i]); }
};

// The same if all partitionings have equally many cells, without a lookup of starts:  row[i] = i n_cells + phi_i(x)
template <class Cell> struct UniformPlaces {
    const Cell *cells;
    std::int64_t n_cells;
    std::int64_t t;

    explicit UniformPlaces(const CellRows<Cell> &rows) : cells(rows.cells), n_cells(rows.starts[1]), t(rows.t) {}
    std::int64_t place(std::int64_t i, std::int64_t cell) const { return i * n_cells + cell; }
    std::int64_t operator[](std::int64_t i) const { return place(i, cells[i]); }
};

// Whether all partitionings have equally many cells.
template <class Cell> bool is_uniform(const CellRows<Cell> &rows) {
    for (std::int64_t i = 0; i <= rows.t; ++i)
        if (rows.starts[i] != i * rows.starts[1])
            return false;
    return true;
}

// Calls use(row) with the places of the first row, as UniformPlaces where possible.
template <class Cell, class Use> void with_places(const CellRows<Cell> &rows, Use use) {
    if (is_uniform(rows))
        use(UniformPlaces(rows));
    else
        use(Places(rows));
}

// Fetches the cache line of a weight that the next row needs. Into the second level: the first one can wait for few
// lines at a time, and a row has hundreds.
inline void fetch_to_l2(const void *weight) { __builtin_prefetch(weight, 0, 2); }

constexpr std::int64_t kParts = 4; // partial sums

//  sum_i table[row[i]]      in: row, table of n_cells
// Four partial sums, so that an addition need not wait for the one before it. Cell numbers are loaded eight bytes at a
// time, because the load units are the bottleneck.
template <class Row, class Value> double sum_over_cells(Row row, const Value *table) {
    using Cell = std::remove_cvref_t<decltype(*row.cells)>;
    constexpr std::int64_t kWord = sizeof(std::uint64_t) / sizeof(Cell);
    double part[kParts] = {};
    std::int64_t i = 0;
    if constexpr (kWord % kParts == 0 && std::endian::native == std::endian::little)
        for (; i + kWord <= row.t; i += kWord) {
            std::uint64_t word;
            std::memcpy(&word, row.cells + i, sizeof word);
            for (std::int64_t l = 0; l < kWord; ++l, word >>= 8 * sizeof(Cell))
                part[l % kParts] += static_cast<double>(table[row.place(i + l, static_cast<Cell>(word))]);
        }
    for (; i < row.t; ++i)
        part[i % kParts] += static_cast<double>(table[row[i]]);
    return (part[0] + part[1]) + (part[2] + part[3]);
}

//  table[row[i]] += delta for all i      in: row, delta      changed: table of n_cells
template <class Row, class Value> void add_to_cells(Row row, Value delta, Value *table) {
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < row.t; ++i)
        table[row[i]] += delta;
}

} // namespace isokern
