// The loops of products.hpp: GEMM micro-kernels with register blocking (compare BLIS).
//
// In: packed rows and points. Out: bounds. Compiled once per instruction set (for_isa.hpp). Portable code uses the
// compiler's vector extension, which also gives the NEON code of arm64.
#include "simd/products.hpp"

#include "simd/for_isa.hpp"

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

} // namespace

extern const Products ISOKERN_FOR_ISA(products);
const Products ISOKERN_FOR_ISA(products) = {kGroup, lower_bounds, lower_bounds_at};

} // namespace isokern
