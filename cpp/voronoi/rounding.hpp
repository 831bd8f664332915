// How far bounds on squared distances can be off: the rounding errors of float32 and float64 products.
//
// In: the number of columns (or of stored values) and of axes. Out: kappa, relative to |x|^2 + |z|^2, for row x and
// point z. A bound may rule a point out only if the gap to a better one exceeds these errors.
//
// Matrix products in float32. Let u = 2^-24, m = n_roundings of a dot product, x and z centred and scaled (frame.hpp).
// Rounding the inputs, products, sums and results changes a squared distance by at most
//   kappa (|x|^2 + |z|^2),   kappa = (m + 16) u.
// Along k < d axes each coordinate is off by at most (m + 2) u |x|, so x' by sqrt(k) (m + 2) u |x|, and
//   kappa' = kappa + 4 sqrt(k) (m + 2) u.
// The code multiplies these constants by 1.01 as a margin for terms in u^2.
//
// Inverted index, in float64. With u = 2^-53 and m stored values in row and point together, kappa = (3 m + 32) u; that
// includes the rounding errors of the exact distance itself.
#pragma once

#include <cmath>
#include <cstdint>

#include "simd/products.hpp"

namespace isokern {

// Beyond these magnitudes squares overflow or underflow in float64; bounds are then not used, only the distance itself.
constexpr double kTooLarge = 1e140, kTooSmall = 1e-140;
// Beyond this squared length, a bound might overflow in float32.
constexpr double kLargestSquare = 1e30;
// Covers what underflow takes from the terms of a bound.
constexpr float kUnderflow = 0x1p-100f;

// kappa of float32 products over all columns.
inline double product_error(std::int64_t n_columns) {
    return 1.01 * static_cast<double>(n_roundings(n_columns) + 16) * 0x1p-24;
}

// kappa' of float32 products along n_axes axes.
inline double projected_product_error(std::int64_t n_columns, std::int64_t n_axes) {
    return product_error(n_columns) +
           4.04 * std::sqrt(static_cast<double>(n_axes)) * static_cast<double>(n_roundings(n_columns) + 2) * 0x1p-24;
}

// kappa of float64 products of two rows with this many stored values together.
inline double index_error(std::int64_t n_stored) { return (3.0 * static_cast<double>(n_stored) + 32.0) * 0x1p-53; }

} // namespace isokern
