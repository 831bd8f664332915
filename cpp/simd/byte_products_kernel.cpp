// The loops of byte_products.hpp, compiled once per instruction set (for_isa.hpp).
//
// In: rows and points as bytes. Out: squared distances. Three ways to multiply a group of rows with panels of points:
//  - AMX: tiles of 16 rows and 16 points.
//  - VNNI: one instruction adds four products to each sum in 32 bits; the sums of a group stay in registers.
//  - Otherwise: one instruction adds two products in 16 bits. Such sums are added up while they cannot overflow, then
//    widened to 32 bits.
#include "simd/byte_products.hpp"

#include <immintrin.h>

#include "simd/for_isa.hpp"

namespace isokern {
namespace {

#if defined(__AVX512F__)
using Bytes = __m512i;
#else
using Bytes = __m256i;
#endif
constexpr int kBytes = sizeof(Bytes), kLanes = kBytes / 4;
typedef std::int32_t Sums __attribute__((vector_size(kBytes), aligned(4), may_alias));
typedef std::int16_t ShortSums __attribute__((vector_size(kBytes), may_alias));
typedef std::uint16_t UnsignedShorts __attribute__((vector_size(kBytes), may_alias));
typedef float Floats __attribute__((vector_size(kBytes), aligned(4), may_alias));

inline Bytes load(const void *from) {
    Bytes bytes;
    __builtin_memcpy(&bytes, from, sizeof bytes);
    return bytes;
}

// Four bytes of a row, in all lanes.
inline Bytes quad_of(const std::int8_t *row, std::int64_t q) {
    std::int32_t quad;
    __builtin_memcpy(&quad, row + 4 * q, sizeof quad);
    return reinterpret_cast<Bytes>(Sums{} + quad);
}

//  found[p] = row_offset + offsets[p] - 2 sums[p]      for kLanes points
inline void write_distances(Sums sums, std::int32_t row_offset, const std::int32_t *offsets, float *found) {
    const Sums squares = *reinterpret_cast<const Sums *>(offsets) + row_offset - 2 * sums;
    *reinterpret_cast<Floats *>(found) = __builtin_convertvector(squares, Floats);
}

//  add_products: the sum of all lanes grows by sum_j points[j] values[j]      (unsigned times signed bytes)
#if defined(__AVX512VNNI__)
// Inline assembly, because GCC 12 adds needless register moves around the intrinsic.
inline void add_products(Sums &sums, Bytes points, Bytes values) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(points), "v"(values));
}
#else
constexpr std::int64_t kSteps = kFewSteps;

//  byte_pairs, pairs: found[l] = points[2 l] values[2 l] + points[2 l + 1] values[2 l + 1]      of bytes in 16 bits, of
//  16 bits in 32
#if defined(__AVX512F__)
constexpr std::int64_t kGroup = 8, kTogether = 2;

inline ShortSums byte_pairs(Bytes points, Bytes values) {
    return reinterpret_cast<ShortSums>(_mm512_maddubs_epi16(points, values));
}
inline Sums pairs(ShortSums points, ShortSums values) {
    return reinterpret_cast<Sums>(_mm512_madd_epi16(reinterpret_cast<Bytes>(points), reinterpret_cast<Bytes>(values)));
}
#else
constexpr std::int64_t kGroup = 4, kTogether = 1;

inline ShortSums byte_pairs(Bytes points, Bytes values) {
    return reinterpret_cast<ShortSums>(_mm256_maddubs_epi16(points, values));
}
inline Sums pairs(ShortSums points, ShortSums values) {
    return reinterpret_cast<Sums>(_mm256_madd_epi16(reinterpret_cast<Bytes>(points), reinterpret_cast<Bytes>(values)));
}
#endif

//  widened[l] = sums[2 l] + sums[2 l + 1]
inline Sums widened(ShortSums sums) { return pairs(sums, ShortSums{} + 1); }

// Even bytes, then odd ones, each widened to 16 bits in its place.
inline void add_products(Sums &sums, Bytes points, Bytes values) {
    const auto unsigned_points = reinterpret_cast<UnsignedShorts>(points);
    const auto even = reinterpret_cast<ShortSums>(unsigned_points & 255);
    const auto odd = reinterpret_cast<ShortSums>(unsigned_points >> 8);
    const auto signed_values = reinterpret_cast<ShortSums>(values);
    sums += pairs(even, signed_values << 8 >> 8) + pairs(odd, signed_values >> 8);
}
#endif

#if defined(__AMX_INT8__)
constexpr std::int64_t kSteps = kMostByteSteps;
constexpr std::int64_t kGroup = 16;           // rows of a tile
constexpr std::int64_t kTile = 1024;          // bytes of a tile of 64 columns of a group, or of a panel
constexpr std::int64_t kBlockBytes = 1 << 18; // of panels, which stay in the L2 cache for all groups

// The shapes of the eight tile registers: rows of 64 bytes, 16 of points and `group` of rows and sums. Their use ends
// with this object, so that the system need not save them any more.
class Tiles {
  public:
    explicit Tiles(std::uint8_t group) {
        const struct {
            std::uint8_t palette, start, reserved[14];
            std::uint16_t row_bytes[16];
            std::uint8_t rows[16];
        } shapes = {1, 0, {}, {64, 64, 64, 64, 64, 64, 64, 64}, {group, group, group, group, group, group, 16, 16}};
        static_assert(sizeof shapes == 64);
        _tile_loadconfig(&shapes);
    }
    Tiles(const Tiles &) = delete;
    ~Tiles() { _tile_release(); }
};

// distances for one or two groups and panels. Tiles 0 to 3 are sums: of the first group with both panels, then of
// the second; 4 and 5 are rows, 6 and 7 points.
template <bool two_groups, bool two_panels>
void multiply_bytes(const std::int8_t *rows, const std::int32_t *row_offsets, std::int64_t group, std::int64_t width,
                    const std::uint8_t *panels, const std::int32_t *offsets, float *found, std::int64_t stride) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (std::int64_t j = 0; j < width; j += kByteColumns) {
        const std::uint8_t *points = panels + j / kByteColumns * kTile;
        _tile_loadd(4, rows + j, width);
        _tile_loadd(6, points, kByteColumns);
        _tile_dpbsud(0, 4, 6);
        if constexpr (two_panels) {
            _tile_loadd(7, points + kPanel * width, kByteColumns);
            _tile_dpbsud(1, 4, 7);
        }
        if constexpr (two_groups) {
            _tile_loadd(5, rows + kGroup * width + j, width);
            _tile_dpbsud(2, 5, 6);
        }
        if constexpr (two_groups && two_panels)
            _tile_dpbsud(3, 5, 7);
    }
    alignas(64) std::int32_t sums[4][kGroup][kPanel];
    _tile_stored(0, sums[0], kByteColumns);
    _tile_stored(1, sums[1], kByteColumns);
    _tile_stored(2, sums[2], kByteColumns);
    _tile_stored(3, sums[3], kByteColumns);
    for (int r = 0; r < (two_groups ? 2 * kGroup : group); ++r)
        for (int v = 0; v < (two_panels ? 2 : 1); ++v)
            write_distances(*reinterpret_cast<const Sums *>(sums[r / kGroup * 2 + v][r % kGroup]), row_offsets[r],
                            offsets + v * kPanel, found + r * stride + v * kPanel);
}

// Two groups stay in the L1 cache while a block of panels streams by from the L2 cache. Fewer rows than a group, as of
// a single prediction, use smaller tiles, which take less time.
void distances(const std::int8_t *rows, const std::int32_t *row_offsets, std::int64_t n_rows, std::int64_t n_columns,
               std::int64_t, const std::uint8_t *panels, std::int64_t n_panels, const std::int32_t *offsets,
               float *found, std::int64_t stride) {
    const std::int64_t group = n_rows < kGroup ? n_rows : kGroup;
    const std::int64_t width = byte_width(n_columns), block = kBlockBytes / (2 * kPanel * width) * 2 + 2;
    const Tiles tiles(static_cast<std::uint8_t>(group));
    for (std::int64_t begin = 0; begin < n_panels; begin += block)
        for (std::int64_t r = 0; r < n_rows; r += 2 * kGroup)
            for (std::int64_t p = begin; p < n_panels && p < begin + block; p += 2) {
                const bool two_panels = p + 1 < n_panels, two_groups = r + kGroup < n_rows;
                auto *multiply = two_groups   ? two_panels ? &multiply_bytes<true, true> : &multiply_bytes<true, false>
                                 : two_panels ? &multiply_bytes<false, true>
                                              : &multiply_bytes<false, false>;
                multiply(rows + r * width, row_offsets + r, group, width, panels + p * width * kPanel,
                         offsets + p * kPanel, found + r * stride + p * kPanel, stride);
            }
}
#elif defined(__AVX512VNNI__)
constexpr std::int64_t kSteps = kMostByteSteps, kGroup = 8;

// distances for one group of rows and n panels, with all sums in registers. fetches_next prefetches the next n
// panels meanwhile.
template <int n, bool fetches_next>
void multiply_bytes(const std::int8_t *rows, const std::int32_t *row_offsets, std::int64_t n_columns,
                    const std::uint8_t *panels, const std::int32_t *offsets, float *found, std::int64_t stride) {
    const std::int64_t width = byte_width(n_columns), n_quads = (n_columns + 3) / 4;
    Sums sums[kGroup][n]; // all loops over them are unrolled, so that they stay in registers
#pragma GCC unroll 16
    for (int g = 0; g < kGroup; ++g)
#pragma GCC unroll 16
        for (int v = 0; v < n; ++v)
            sums[g][v] = Sums{};
    for (std::int64_t q = 0; q < n_quads; ++q) {
        Bytes points[n];
#pragma GCC unroll 16
        for (int v = 0; v < n; ++v)
            points[v] = load(panels + v * kPanel * width + q * 4 * kPanel);
        if constexpr (fetches_next)
            for (int v = 0; v < n; ++v)
                __builtin_prefetch(panels + (n + v) * kPanel * width + q * 4 * kPanel, 0, 2);
#pragma GCC unroll 16
        for (int g = 0; g < kGroup; ++g) {
            const Bytes value = quad_of(rows + g * width, q);
#pragma GCC unroll 16
            for (int v = 0; v < n; ++v)
                add_products(sums[g][v], points[v], value);
        }
    }
#pragma GCC unroll 16
    for (int g = 0; g < kGroup; ++g)
#pragma GCC unroll 16
        for (int v = 0; v < n; ++v)
            write_distances(sums[g][v], row_offsets[g], offsets + v * kPanel, found + g * stride + v * kPanel);
}

// Two panels at a time; the last one alone if their number is odd.
void distances(const std::int8_t *rows, const std::int32_t *row_offsets, std::int64_t n_rows, std::int64_t n_columns,
               std::int64_t, const std::uint8_t *panels, std::int64_t n_panels, const std::int32_t *offsets,
               float *found, std::int64_t stride) {
    const std::int64_t width = byte_width(n_columns);
    for (std::int64_t p = 0; p < n_panels; p += 2)
        for (std::int64_t r = 0; r < n_rows; r += kGroup) {
            auto *multiply = r == 0 ? &multiply_bytes<2, true> : &multiply_bytes<2, false>;
            if (p + 1 == n_panels)
                multiply = &multiply_bytes<1, false>;
            multiply(rows + r * width, row_offsets + r, n_columns, panels + p * width * kPanel, offsets + p * kPanel,
                     found + r * stride + p * kPanel, stride);
        }
}
#else
constexpr int kVectors = kPanel / kLanes; // of a panel's sums

// distances for one group of rows and n panels. The sums in 16 bits are in registers. fetches_next prefetches the next
// n panels meanwhile.
//   run: quads whose products can be added up in 16 bits
template <int n, bool fetches_next>
void multiply_bytes(const std::int8_t *rows, const std::int32_t *row_offsets, std::int64_t n_columns, std::int64_t run,
                    const std::uint8_t *panels, const std::int32_t *offsets, float *found, std::int64_t stride) {
    constexpr int kAll = n * kVectors;
    const std::int64_t width = byte_width(n_columns), n_quads = (n_columns + 3) / 4;
    Sums sums[kGroup][kAll];
    for (std::int64_t begin = 0; begin == 0 || begin < n_quads; begin += run) {
        const std::int64_t end = begin + run < n_quads ? begin + run : n_quads;
        ShortSums few[kGroup][kAll]; // all loops over them are unrolled, so that they stay in registers
#pragma GCC unroll 16
        for (int g = 0; g < kGroup; ++g)
#pragma GCC unroll 16
            for (int v = 0; v < kAll; ++v)
                few[g][v] = ShortSums{};
        for (std::int64_t q = begin; q < end; ++q) {
            Bytes points[kAll];
#pragma GCC unroll 16
            for (int v = 0; v < kAll; ++v)
                points[v] = load(panels + v / kVectors * kPanel * width + q * 4 * kPanel + v % kVectors * kBytes);
            if constexpr (fetches_next)
                for (int v = 0; v < n; ++v)
                    __builtin_prefetch(panels + (n + v) * kPanel * width + q * 4 * kPanel, 0, 2);
#pragma GCC unroll 16
            for (int g = 0; g < kGroup; ++g) {
                const Bytes value = quad_of(rows + g * width, q);
#pragma GCC unroll 16
                for (int v = 0; v < kAll; ++v)
                    few[g][v] += byte_pairs(points[v], value);
            }
        }
#pragma GCC unroll 16
        for (int g = 0; g < kGroup; ++g)
#pragma GCC unroll 16
            for (int v = 0; v < kAll; ++v)
                sums[g][v] = begin == 0 ? widened(few[g][v]) : sums[g][v] + widened(few[g][v]);
    }
    for (int g = 0; g < kGroup; ++g)
        for (int v = 0; v < kAll; ++v)
            write_distances(sums[g][v], row_offsets[g], offsets + v * kLanes, found + g * stride + v * kLanes);
}

void distances(const std::int8_t *rows, const std::int32_t *row_offsets, std::int64_t n_rows, std::int64_t n_columns,
               std::int64_t n_steps, const std::uint8_t *panels, std::int64_t n_panels, const std::int32_t *offsets,
               float *found, std::int64_t stride) {
    constexpr std::int64_t kMost = (1 << 15) - 1; // of a sum in 16 bits
    const std::int64_t width = byte_width(n_columns), run = kMost / (2 * n_steps * byte_centre(n_steps));
    for (std::int64_t p = 0; p < n_panels; p += kTogether)
        for (std::int64_t r = 0; r < n_rows; r += kGroup) {
            auto *multiply = r == 0 ? &multiply_bytes<kTogether, true> : &multiply_bytes<kTogether, false>;
            if (p + kTogether > n_panels)
                multiply = &multiply_bytes<1, false>;
            multiply(rows + r * width, row_offsets + r, n_columns, run, panels + p * width * kPanel,
                     offsets + p * kPanel, found + r * stride + p * kPanel, stride);
        }
}
#endif

//  found[k] = sum_j row[j] points[k][j] for k < n
template <int n>
void multiply_bytes_at(const std::int8_t *row, std::int64_t n_columns, const std::uint8_t *const *points,
                       std::int32_t *found) {
    Sums sums[n];
#pragma GCC unroll 4
    for (int k = 0; k < n; ++k)
        sums[k] = Sums{};
    for (std::int64_t j = 0; j < n_columns; j += kBytes) {
        const Bytes values = load(row + j);
#pragma GCC unroll 4
        for (int k = 0; k < n; ++k)
            add_products(sums[k], load(points[k] + j), values);
    }
#pragma GCC unroll 4
    for (int k = 0; k < n; ++k) {
        found[k] = 0;
        for (int l = 0; l < kLanes; ++l)
            found[k] += sums[k][l];
    }
}

// Four points at a time share the loads of the row.
void distances_at(const std::int8_t *row, std::int32_t row_offset, std::int64_t n_columns, const std::uint8_t *points,
                  const std::int32_t *offsets, const std::int32_t *indices, std::int64_t n, float *found) {
    constexpr int kAtOnce = 4;
    for (std::int64_t k = 0; k < n; k += kAtOnce) {
        const std::uint8_t *here[kAtOnce];
        std::int32_t sums[kAtOnce];
        const std::int64_t n_here = n - k < kAtOnce ? n - k : kAtOnce;
        for (int l = 0; l < kAtOnce; ++l)
            here[l] = points + indices[l < n_here ? k + l : k] * byte_width(n_columns);
        (n_here == 1 ? multiply_bytes_at<1> : multiply_bytes_at<kAtOnce>)(row, n_columns, here, sums);
        for (std::int64_t l = 0; l < n_here; ++l)
            found[k + l] = static_cast<float>(row_offset + offsets[indices[k + l]] - 2 * sums[l]);
    }
}

} // namespace

extern const ByteProducts ISOKERN_FOR_ISA(byte_products);
const ByteProducts ISOKERN_FOR_ISA(byte_products) = {kGroup, kSteps, distances, distances_at};

} // namespace isokern
