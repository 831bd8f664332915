// The loops of products.hpp: GEMM micro-kernels with register blocking (compare BLIS), and int8 dot products.
//
// In: packed rows and points. Out: bounds. Compiled once per instruction set (for_isa.hpp). Portable code uses the
// compiler's vector extension, which also gives the NEON code of arm64; AVX-512, VNNI and AMX have intrinsics where the
// compiler does not find the instruction.
#include "simd/products.hpp"

#include "simd/for_isa.hpp"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace isokern {
namespace {

// A panel is kVectors vectors wide. The sums of kGroup rows and kPanels panels fit into the registers of each
// instruction set.
#if defined(__AVX512F__)
constexpr int kLanes = 16, kGroup = 8, kPanels = 2;
#elif defined(__AVX2__)
constexpr int kLanes = 8, kGroup = 6, kPanels = 1;
#elif defined(__aarch64__)
constexpr int kLanes = 4, kGroup = 6, kPanels = 1; // NEON has 32 registers, SSE2 has 16
#else
constexpr int kLanes = 4, kGroup = 3, kPanels = 1;
#endif
constexpr int kVectors = kPanel / kLanes;

typedef float Vector __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));

//  bounds[g, p] = offsets[p] - 2 sum_j rows[j, g] panels[j, p]      for a group of rows and the points of n panels
// Sums kSummed columns at a time and adds the results up, because long sums in float32 lose precision. fetches_next
// prefetches the next n panels meanwhile.
template <int n, bool fetches_next>
void multiply(const float *rows, std::int64_t n_columns, const float *panels, const float *offsets, float *bounds,
              std::int64_t stride) {
    constexpr int kAll = n * kVectors;
    for (std::int64_t begin = 0; begin == 0 || begin < n_columns; begin += kSummed) {
        const std::int64_t end = begin + kSummed < n_columns ? begin + kSummed : n_columns;
        Vector sums[kGroup][kAll] = {};
        for (std::int64_t j = begin; j < end; ++j) {
            Vector point[kAll];
            for (int v = 0; v < kAll; ++v)
                point[v] = *reinterpret_cast<const Vector *>(panels + (v / kVectors * n_columns + j) * kPanel +
                                                             v % kVectors * kLanes);
            if constexpr (fetches_next)
                for (int p = n; p < 2 * n; ++p)
                    __builtin_prefetch(panels + (p * n_columns + j) * kPanel, 0, 2);
            for (int g = 0; g < kGroup; ++g)
                for (int v = 0; v < kAll; ++v)
                    sums[g][v] += rows[j * kGroup + g] * point[v];
        }
        for (int g = 0; g < kGroup; ++g)
            for (int v = 0; v < kAll; ++v) {
                Vector &bound = *reinterpret_cast<Vector *>(bounds + g * stride + v * kLanes);
                const Vector sum = begin == 0 ? sums[g][v] : bound + sums[g][v];
                bound = end < n_columns ? sum : *reinterpret_cast<const Vector *>(offsets + v * kLanes) - 2.0f * sum;
            }
    }
}

// Panels in the outer loop: they stay in the cache for all groups. The first group prefetches the next panels.
void lower_bounds(const float *rows, std::int64_t n_groups, std::int64_t n_columns, const float *panels,
                  std::int64_t n_panels, const float *offsets, float *bounds, std::int64_t stride) {
    for (std::int64_t p = 0; p < n_panels; p += kPanels)
        for (std::int64_t g = 0; g < n_groups; ++g) {
            auto *product = g == 0 ? &multiply<kPanels, true> : &multiply<kPanels, false>;
            if (p + kPanels > n_panels)
                product = &multiply<1, false>;
            product(rows + g * n_columns * kGroup, n_columns, panels + p * n_columns * kPanel, offsets + p * kPanel,
                    bounds + g * kGroup * stride + p * kPanel, stride);
        }
}

// The sum of a vector's lanes, by pairwise summation.
float sum_of(const Vector &vector) {
    float lanes[kLanes];
    *reinterpret_cast<Vector *>(lanes) = vector;
    for (int width = kLanes / 2; width > 0; width /= 2)
        for (int l = 0; l < width; ++l)
            lanes[l] += lanes[l + width];
    return lanes[0];
}

//  found[k] = sum_j row[j] points[k][j] for k < n
// kSums vectors of partial sums per point hide the latency of the additions; they are added up at the end.
template <int n> void multiply_at(const float *row, std::int64_t n_columns, const float *const *points, float *found) {
    constexpr int kSums = kLanes < 8 ? 4 : 2;
    static_assert(kPadding % (kSums * kLanes) == 0);
    Vector sums[n][kSums] = {};
    for (std::int64_t j = 0; j < n_columns; j += kSums * kLanes)
        for (int v = 0; v < kSums; ++v) {
            const Vector value = *reinterpret_cast<const Vector *>(row + j + v * kLanes);
            for (int k = 0; k < n; ++k)
                sums[k][v] += value * *reinterpret_cast<const Vector *>(points[k] + j + v * kLanes);
        }
    for (int k = 0; k < n; ++k) {
        for (int v = 1; v < kSums; ++v)
            sums[k][0] += sums[k][v];
        found[k] = sum_of(sums[k][0]);
    }
}

// Four points at a time share the loads of the row, while the next four are prefetched.
void lower_bounds_at(const float *row, std::int64_t n_columns, const float *points, const float *offsets,
                     const std::int32_t *indices, std::int64_t n, float *bounds) {
    constexpr int kTogether = 4;
    const float *here[kTogether];
    std::int64_t k = 0;
    for (; k + kTogether <= n; k += kTogether) {
        for (int l = 0; l < kTogether; ++l)
            here[l] = points + indices[k + l] * n_columns;
        for (std::int64_t ahead = k + kTogether; ahead < n && ahead < k + 2 * kTogether; ++ahead)
            for (std::int64_t j = 0; j < n_columns; j += 16)
                __builtin_prefetch(points + indices[ahead] * n_columns + j);
        multiply_at<kTogether>(row, n_columns, here, bounds + k);
    }
    for (; k < n; ++k) {
        here[0] = points + indices[k] * n_columns;
        multiply_at<1>(row, n_columns, here, bounds + k);
    }
    for (k = 0; k < n; ++k)
        bounds[k] = offsets[indices[k]] - 2.0f * bounds[k];
}

#if defined(__AVX512VNNI__)
//  sums[l] += sum_{q < 4} points[4 l + q] values[4 l + q]      (unsigned times signed bytes)
// Inline assembly, because GCC 12 adds needless register moves around the intrinsic.
inline void add_products(__m512i &sums, const __m512i &points, const __m512i &values) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(points), "v"(values));
}

//  distances[p] = row_offset + offsets[p] - 2 sums[p]      for the points of a panel
inline void write_distances(__m512i sums, std::int32_t row_offset, const std::int32_t *offsets, float *distances) {
    const __m512i offset = _mm512_add_epi32(_mm512_loadu_si512(offsets), _mm512_set1_epi32(row_offset));
    _mm512_storeu_ps(distances, _mm512_cvtepi32_ps(_mm512_sub_epi32(offset, _mm512_slli_epi32(sums, 1))));
}

#if defined(__AMX_INT8__)
constexpr std::int64_t kByteGroup = 16;       // rows of a tile
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

// byte_distances for one or two groups and panels. Tiles 0 to 3 are sums: of the first group with both panels, then of
// the second; 4 and 5 are rows, 6 and 7 points.
template <bool two_groups, bool two_panels>
void multiply_bytes(const std::int8_t *rows, const std::int32_t *row_offsets, std::int64_t group, std::int64_t width,
                    const std::uint8_t *panels, const std::int32_t *offsets, float *distances, std::int64_t stride) {
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
            _tile_loadd(5, rows + kByteGroup * width + j, width);
            _tile_dpbsud(2, 5, 6);
        }
        if constexpr (two_groups && two_panels)
            _tile_dpbsud(3, 5, 7);
    }
    alignas(64) std::int32_t sums[4][kByteGroup][kPanel];
    _tile_stored(0, sums[0], kByteColumns);
    _tile_stored(1, sums[1], kByteColumns);
    _tile_stored(2, sums[2], kByteColumns);
    _tile_stored(3, sums[3], kByteColumns);
    for (int r = 0; r < (two_groups ? 2 * kByteGroup : group); ++r)
        for (int v = 0; v < (two_panels ? 2 : 1); ++v)
            write_distances(_mm512_load_si512(sums[r / kByteGroup * 2 + v][r % kByteGroup]), row_offsets[r],
                            offsets + v * kPanel, distances + r * stride + v * kPanel);
}

// Two groups stay in the L1 cache while a block of panels streams by from the L2 cache. Fewer rows than a group, as of
// a single prediction, use smaller tiles, which take less time.
void byte_distances(const std::int8_t *rows, const std::int32_t *row_offsets, std::int64_t n_rows,
                    std::int64_t n_columns, const std::uint8_t *panels, std::int64_t n_panels,
                    const std::int32_t *offsets, float *distances, std::int64_t stride) {
    const std::int64_t group = n_rows < kByteGroup ? n_rows : kByteGroup;
    const std::int64_t width = byte_width(n_columns), block = kBlockBytes / (2 * kPanel * width) * 2 + 2;
    const Tiles tiles(static_cast<std::uint8_t>(group));
    for (std::int64_t begin = 0; begin < n_panels; begin += block)
        for (std::int64_t r = 0; r < n_rows; r += 2 * kByteGroup)
            for (std::int64_t p = begin; p < n_panels && p < begin + block; p += 2) {
                const bool two_panels = p + 1 < n_panels, two_groups = r + kByteGroup < n_rows;
                auto *multiply = two_groups   ? two_panels ? &multiply_bytes<true, true> : &multiply_bytes<true, false>
                                 : two_panels ? &multiply_bytes<false, true>
                                              : &multiply_bytes<false, false>;
                multiply(rows + r * width, row_offsets + r, group, width, panels + p * width * kPanel,
                         offsets + p * kPanel, distances + r * stride + p * kPanel, stride);
            }
}
#else
constexpr std::int64_t kByteGroup = 8;

// byte_distances for one group of rows and n panels, with all sums in registers. fetches_next prefetches the next n
// panels meanwhile.
template <int n, bool fetches_next>
void multiply_bytes(const std::int8_t *rows, const std::int32_t *row_offsets, std::int64_t n_columns,
                    const std::uint8_t *panels, const std::int32_t *offsets, float *distances, std::int64_t stride) {
    const std::int64_t width = byte_width(n_columns), n_quads = (n_columns + 3) / 4;
    __m512i sums[kByteGroup][n]; // all loops over them are unrolled, so that they stay in registers
#pragma GCC unroll 16
    for (int g = 0; g < kByteGroup; ++g)
#pragma GCC unroll 16
        for (int v = 0; v < n; ++v)
            sums[g][v] = _mm512_setzero_si512();
    for (std::int64_t q = 0; q < n_quads; ++q) {
        __m512i points[n];
#pragma GCC unroll 16
        for (int v = 0; v < n; ++v)
            points[v] = _mm512_loadu_si512(panels + v * kPanel * width + q * 4 * kPanel);
        if constexpr (fetches_next)
            for (int v = 0; v < n; ++v)
                __builtin_prefetch(panels + (n + v) * kPanel * width + q * 4 * kPanel, 0, 2);
#pragma GCC unroll 16
        for (int g = 0; g < kByteGroup; ++g) {
            const auto *values = reinterpret_cast<const std::int32_t __attribute__((may_alias)) *>(rows + g * width);
            const __m512i value = _mm512_set1_epi32(values[q]);
#pragma GCC unroll 16
            for (int v = 0; v < n; ++v)
                add_products(sums[g][v], points[v], value);
        }
    }
#pragma GCC unroll 16
    for (int g = 0; g < kByteGroup; ++g)
#pragma GCC unroll 16
        for (int v = 0; v < n; ++v)
            write_distances(sums[g][v], row_offsets[g], offsets + v * kPanel, distances + g * stride + v * kPanel);
}

// Two panels at a time; the last one alone if their number is odd.
void byte_distances(const std::int8_t *rows, const std::int32_t *row_offsets, std::int64_t n_rows,
                    std::int64_t n_columns, const std::uint8_t *panels, std::int64_t n_panels,
                    const std::int32_t *offsets, float *distances, std::int64_t stride) {
    const std::int64_t width = byte_width(n_columns);
    for (std::int64_t p = 0; p < n_panels; p += 2)
        for (std::int64_t r = 0; r < n_rows; r += kByteGroup) {
            auto *multiply = r == 0 ? &multiply_bytes<2, true> : &multiply_bytes<2, false>;
            if (p + 1 == n_panels)
                multiply = &multiply_bytes<1, false>;
            multiply(rows + r * width, row_offsets + r, n_columns, panels + p * width * kPanel, offsets + p * kPanel,
                     distances + r * stride + p * kPanel, stride);
        }
}
#endif

//  found[k] = sum_j row[j] points[k][j] for k < n
template <int n>
void multiply_bytes_at(const std::int8_t *row, std::int64_t n_columns, const std::uint8_t *const *points,
                       std::int32_t *found) {
    __m512i sums[n];
#pragma GCC unroll 4
    for (int k = 0; k < n; ++k)
        sums[k] = _mm512_setzero_si512();
    for (std::int64_t j = 0; j < n_columns; j += kByteColumns) {
        const __m512i values = _mm512_loadu_si512(row + j);
#pragma GCC unroll 4
        for (int k = 0; k < n; ++k)
            add_products(sums[k], _mm512_loadu_si512(points[k] + j), values);
    }
#pragma GCC unroll 4
    for (int k = 0; k < n; ++k)
        found[k] = _mm512_reduce_add_epi32(sums[k]);
}

// Four points at a time share the loads of the row.
void byte_distances_at(const std::int8_t *row, std::int32_t row_offset, std::int64_t n_columns,
                       const std::uint8_t *points, const std::int32_t *offsets, const std::int32_t *indices,
                       std::int64_t n, float *distances) {
    constexpr int kTogether = 4;
    for (std::int64_t k = 0; k < n; k += kTogether) {
        const std::uint8_t *here[kTogether];
        std::int32_t found[kTogether];
        const std::int64_t n_here = n - k < kTogether ? n - k : kTogether;
        for (int l = 0; l < kTogether; ++l)
            here[l] = points + indices[l < n_here ? k + l : k] * byte_width(n_columns);
        (n_here == 1 ? multiply_bytes_at<1> : multiply_bytes_at<kTogether>)(row, n_columns, here, found);
        for (std::int64_t l = 0; l < n_here; ++l)
            distances[k + l] = static_cast<float>(row_offset + offsets[indices[k + l]] - 2 * found[l]);
    }
}
#else
constexpr std::int64_t kByteGroup = 1;
constexpr auto byte_distances = nullptr;
constexpr auto byte_distances_at = nullptr;
#endif

} // namespace

extern const Products ISOKERN_FOR_ISA(products);
const Products ISOKERN_FOR_ISA(products) = {kGroup,          kByteGroup,     lower_bounds,
                                            lower_bounds_at, byte_distances, byte_distances_at};

} // namespace isokern
