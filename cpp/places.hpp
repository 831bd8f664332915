// Where a row's cells stand in a table with an entry for each cell, and what is done to those entries.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "online.hpp"

namespace isokern {

// Where a row's cells stand among all cells: row[i] = starts[i] + phi_i(x).
template <class Cell> struct Places {
    const Cell *cells;
    const std::int64_t *starts;
    std::int64_t t;

    explicit Places(const CellRows<Cell> &rows) : cells(rows.cells), starts(rows.starts), t(rows.t) {}
    std::int64_t place(std::int64_t i, std::int64_t cell) const { return starts[i] + cell; }
    std::int64_t operator[](std::int64_t i) const { return place(i, cells[i]); }
};

// The same if all partitionings have equally many cells, without looking the starts up.
template <class Cell> struct UniformPlaces {
    const Cell *cells;
    std::int64_t n_cells;
    std::int64_t t;

    explicit UniformPlaces(const CellRows<Cell> &rows) : cells(rows.cells), n_cells(rows.starts[1]), t(rows.t) {}
    std::int64_t place(std::int64_t i, std::int64_t cell) const { return i * n_cells + cell; }
    std::int64_t operator[](std::int64_t i) const { return place(i, cells[i]); }
};

template <class Cell> bool is_uniform(const CellRows<Cell> &rows) {
    for (std::int64_t i = 0; i <= rows.t; ++i)
        if (rows.starts[i] != i * rows.starts[1])
            return false;
    return true;
}

// Calls use(row) with the places of the first row.
template <class Cell, class Use> void with_places(const CellRows<Cell> &rows, Use use) {
    if (is_uniform(rows))
        use(UniformPlaces(rows));
    else
        use(Places(rows));
}

constexpr std::int64_t kParts = 4;

// The sum of what a row's cells have in a table of n_cells. Four sums run side by side, so that additions need not wait
// for each other. Cell numbers are read a word at a time: with the table itself, they would keep the load units busy.
template <class Row> double sum_over_cells(Row row, const double *table) {
    using Cell = std::remove_cvref_t<decltype(*row.cells)>;
    constexpr std::int64_t kWord = sizeof(std::uint64_t) / sizeof(Cell);
    double part[kParts] = {};
    std::int64_t i = 0;
    if constexpr (kWord % kParts == 0 && std::endian::native == std::endian::little)
        for (; i + kWord <= row.t; i += kWord) {
            std::uint64_t word;
            std::memcpy(&word, row.cells + i, sizeof word);
            for (std::int64_t l = 0; l < kWord; ++l, word >>= 8 * sizeof(Cell))
                part[l % kParts] += table[row.place(i + l, static_cast<Cell>(word))];
        }
    for (; i < row.t; ++i)
        part[i % kParts] += table[row[i]];
    return (part[0] + part[1]) + (part[2] + part[3]);
}

// Adds to what a row's cells have in a table of n_cells.
template <class Row> void add_to_cells(Row row, double delta, double *table) {
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < row.t; ++i)
        table[row[i]] += delta;
}

} // namespace isokern
