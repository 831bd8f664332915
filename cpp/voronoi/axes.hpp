// Orthonormal directions, the first principal components of the points: distances along them are lower bounds.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace isokern {

// n directions, n_columns x n. The distance between projections onto them is at most the distance, and close to it if
// they explain most of the variance.
struct Axes {
    const double *values;
    std::int64_t n;
};

//  |axes' axes - I| < 1e-10 in every entry      in: axes, n_columns x n
// The bounds of ChunkSearch and ReducedSearch are only valid for orthonormal axes.
inline bool are_orthonormal(const std::vector<double> &axes, std::int64_t n_columns, std::int64_t n) {
    if (std::ssize(axes) != n_columns * n || n > n_columns)
        return false;
    std::vector<double> products(static_cast<std::size_t>(n * n), 0.0);
    for (std::int64_t j = 0; j < n_columns; ++j)
        for (std::int64_t a = 0; a < n; ++a)
            for (std::int64_t b = 0; b <= a; ++b)
                products[a * n + b] += axes[j * n + a] * axes[j * n + b];
    for (std::int64_t a = 0; a < n; ++a)
        for (std::int64_t b = 0; b <= a; ++b)
            if (!(std::abs(products[a * n + b] - (a == b)) < 1e-10))
                return false;
    return true;
}

} // namespace isokern
