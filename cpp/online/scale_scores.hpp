// Scores by the cells of several scales of each partitioning, and by a linear term.
//
//  f_k(x) = (1/t) sum_i sum_l u[i, l, phi_il(x), k]  +  sum_j z_j v[j, k]
// In: cells phi_il(x) of rows, t partitionings with L scales each, coarse to fine; rows z of the linear term; weights u
// and v. Out: scores, or weights of the finest cells with those of the coarser ones added. Weights are floats, sums of
// them doubles.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "common/rows.hpp"
#include "online/online.hpp"

namespace isokern {

using AnyCells = std::variant<CellRows<std::uint8_t>, CellRows<std::uint16_t>, CellRows<std::uint32_t>>;

// Rows z of the linear term. The last weight, of row n_columns, is that of a column of constants.
struct LinearRows {
    std::variant<DenseRows<float>, CsrRows<float>> rows;
    float constant;

    std::int64_t n_columns() const {
        return std::visit([](const auto &any) { return any.n_columns; }, rows);
    }
};

// Weights for scoring: of floats, or of doubles where the scales have been folded into the finest one.
template <class Value> struct ScaleView {
    const Value *values; // null without cells
    std::int64_t stride, n_scales;
    const float *linear_values; // null without a linear term
    std::int64_t linear_stride, n_columns;
};

template <class Value>
void score_scales(const std::optional<AnyCells> &cells, const std::optional<LinearRows> &linear, std::int64_t n_rows,
                  const ScaleView<Value> &weights, double *scores, int threads);

//  folded[i, c, k] = sum_l values[i, l, paths[i, c, l], k]      for the finest cells c of partitioning i
// Scores of the folded table are the same bytes: both add the scales first, coarse to fine.
//   in: paths (t x n_finest x L), starts (t L + 1) of the cells of each partitioning and scale
template <class Cell>
void fold_scales(const Cell *paths, std::int64_t t, std::int64_t n_finest, const std::int64_t *starts,
                 const ScaleView<float> &weights, double *folded, int threads);

} // namespace isokern
