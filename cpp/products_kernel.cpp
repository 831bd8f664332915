// One source, compiled once for each vector unit (ISOKERN_ISA names it), so it must not include headers with inline
// functions: the linker would be free to choose a copy that older CPUs cannot run.
#include "products.hpp"

#define ISOKERN_JOIN_(a, b) a##b
#define ISOKERN_JOIN(a, b) ISOKERN_JOIN_(a, b)

namespace isokern {
namespace {

// A panel is kVectors vectors wide; kGroup rows x kVectors sums stay in registers.
#if defined(__AVX512F__)
constexpr int kLanes = 16, kGroup = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8, kGroup = 6;
#else
constexpr int kLanes = 4, kGroup = 3;
#endif
constexpr int kVectors = kPanel / kLanes;

typedef float Vector __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));

// Sums of one group of rows with one panel.
void multiply(const float *rows, std::int64_t n_columns, const float *panel, const float *offsets, float *bounds,
              std::int64_t stride) {
    Vector sums[kGroup][kVectors] = {};
    for (std::int64_t j = 0; j < n_columns; ++j) {
        Vector point[kVectors];
        for (int v = 0; v < kVectors; ++v)
            point[v] = *reinterpret_cast<const Vector *>(panel + j * kPanel + v * kLanes);
        for (int g = 0; g < kGroup; ++g)
            for (int v = 0; v < kVectors; ++v)
                sums[g][v] += rows[j * kGroup + g] * point[v];
    }
    for (int g = 0; g < kGroup; ++g)
        for (int v = 0; v < kVectors; ++v)
            *reinterpret_cast<Vector *>(bounds + g * stride + v * kLanes) =
                *reinterpret_cast<const Vector *>(offsets + v * kLanes) - 2.0f * sums[g][v];
}

void lower_bounds(const float *rows, std::int64_t n_groups, std::int64_t n_columns, const float *panels,
                  std::int64_t n_panels, const float *offsets, float *bounds, std::int64_t stride) {
    for (std::int64_t p = 0; p < n_panels; ++p)
        for (std::int64_t g = 0; g < n_groups; ++g)
            multiply(rows + g * n_columns * kGroup, n_columns, panels + p * n_columns * kPanel, offsets + p * kPanel,
                     bounds + g * kGroup * stride + p * kPanel, stride);
}

// The sum of a vector's lanes, by halves.
float sum_of(const Vector &vector) {
    float lanes[kLanes];
    *reinterpret_cast<Vector *>(lanes) = vector;
    for (int width = kLanes / 2; width > 0; width /= 2)
        for (int l = 0; l < width; ++l)
            lanes[l] += lanes[l + width];
    return lanes[0];
}

void lower_bounds_at(const float *row, std::int64_t n_columns, const float *points, const float *offsets,
                     const std::int32_t *places, std::int64_t n, float *bounds) {
    constexpr int kSums = 4; // vectors whose sums are added at the end
    for (std::int64_t k = 0; k < n; ++k) {
        const float *point = points + places[k] * n_columns;
        if (k + 2 < n) // the next but one is fetched meanwhile
            for (std::int64_t j = 0; j < n_columns; j += 16)
                __builtin_prefetch(points + places[k + 2] * n_columns + j);
        Vector sums[kSums] = {};
        std::int64_t j = 0;
        for (; j + kSums * kLanes <= n_columns; j += kSums * kLanes)
            for (int v = 0; v < kSums; ++v)
                sums[v] += *reinterpret_cast<const Vector *>(row + j + v * kLanes) *
                           *reinterpret_cast<const Vector *>(point + j + v * kLanes);
        for (; j + kLanes <= n_columns; j += kLanes)
            sums[0] += *reinterpret_cast<const Vector *>(row + j) * *reinterpret_cast<const Vector *>(point + j);
        float sum = sum_of((sums[0] + sums[1]) + (sums[2] + sums[3]));
        for (; j < n_columns; ++j)
            sum += row[j] * point[j];
        bounds[k] = offsets[places[k]] - 2.0f * sum;
    }
}

std::int64_t places_within(const float *bounds, std::int64_t n, float limit, std::int32_t *places) {
    std::int64_t found = 0, k = 0;
    for (; k + 32 <= n; k += 32) {
        int any = 0;
        for (int l = 0; l < 32; ++l)
            any |= bounds[k + l] <= limit;
        if (any)
            for (int l = 0; l < 32; ++l) {
                places[found] = static_cast<std::int32_t>(k + l);
                found += bounds[k + l] <= limit;
            }
    }
    for (; k < n; ++k) {
        places[found] = static_cast<std::int32_t>(k);
        found += bounds[k] <= limit;
    }
    return found;
}

} // namespace

extern const Products ISOKERN_JOIN(products_, ISOKERN_ISA);
const Products ISOKERN_JOIN(products_, ISOKERN_ISA) = {kGroup, lower_bounds, lower_bounds_at, places_within};

} // namespace isokern
