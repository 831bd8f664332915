#include "products.hpp"

namespace isokern {

extern const Products products_baseline;
#if defined(__x86_64__)
extern const Products products_avx2;
extern const Products products_avx512;
#endif

const Products &best_products() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq"))
        return products_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return products_avx2;
#endif
    return products_baseline;
}

} // namespace isokern
