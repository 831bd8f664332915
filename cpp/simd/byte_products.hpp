// Squared distances between rows and points of whole numbers up to 255, from dot products of bytes.
//
// In: rows and points on a grid of levels 0 .. n_steps; rows are stored less byte_centre(n_steps), as signed bytes, and
// points as unsigned bytes, because the instructions multiply one by the other. Out: distances, exact in int32, then
// rounded to float32. The functions are compiled once per instruction set (byte_products_kernel.cpp) and chosen at run
// time: tiles of AMX, VNNI, or else sums of two products in 16 bits, which overflow above kFewSteps.
#pragma once

#include <cstdint>

#include "simd/products.hpp"

namespace isokern {

constexpr std::int64_t kByteColumns = 64;    // bytes of a row or point are padded with zeros to a multiple of this
constexpr std::int64_t kFewSteps = 127;      // of a grid whose levels have seven bits
constexpr std::int64_t kMostByteSteps = 255; // of a grid whose levels have eight bits

// What is taken from the levels of rows, so that their magnitudes are small and fit into signed bytes.
constexpr std::int64_t byte_centre(std::int64_t n_steps) { return (n_steps + 1) / 2; }

// The bytes of a row or point of n columns.
constexpr std::int64_t byte_width(std::int64_t n) { return (n + kByteColumns - 1) / kByteColumns * kByteColumns; }

struct ByteProducts {
    std::int64_t group;   // rows of a group for distances
    std::int64_t n_steps; // the most that `distances` takes

    //  found[r, p] = row_offsets[r] + offsets[p] - 2 sum_j rows[r, j] points[p, j]
    //  in: rows [n_rows][byte_width(n_columns)], not packed; panels [n_panels][quad][kPanel][4], quads of four columns
    //  of byte_width(n_columns); n_steps of the grid. There must be room for whole groups of rows, offsets and found.
    void (*distances)(const std::int8_t *rows, const std::int32_t *row_offsets, std::int64_t n_rows,
                      std::int64_t n_columns, std::int64_t n_steps, const std::uint8_t *panels, std::int64_t n_panels,
                      const std::int32_t *offsets, float *found, std::int64_t stride);

    //  found[k] = row_offset + offsets[p] - 2 sum_j row[j] points[p, j] for p = indices[k], k < n; as above
    //  in: row; points, not packed: [point][byte_width(n_columns)], of up to kMostByteSteps
    void (*distances_at)(const std::int8_t *row, std::int32_t row_offset, std::int64_t n_columns,
                         const std::uint8_t *points, const std::int32_t *offsets, const std::int32_t *indices,
                         std::int64_t n, float *found);
};

// The implementation for the widest instruction set that this CPU supports, or null if there is none.
const ByteProducts *best_byte_products();

} // namespace isokern
