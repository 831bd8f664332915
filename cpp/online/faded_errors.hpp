// Errors of models that race, in which those of rows long past count less.
//
// In: scores of rows before they were learned, targets. Out: the error after each row: old errors fade by a factor, the
// row's own is added.
#pragma once

#include <cstdint>
#include <vector>

#include "online/online_loop.hpp"

namespace isokern {

// From which row on each class has been seen; a class that has not is never predicted. Of two classes, both share one
// column, which speaks for the second if positive; the first is target -1. Of more, each has a column.
using SeenFrom = std::vector<std::int64_t>; // by class

// Errors of rows: in `before`, the faded error before each row; in `now`, the row's own error without its weight.
//  before[r] = error,  error <- fade error + weight [the class with the largest score is not the row's], for each row
double faded_error(double error, double fade, const double *scores, std::int64_t n_rows, std::int64_t n_columns,
                   const SeenFrom &seen_from, const std::int32_t *targets, const double *row_weights, double *before,
                   double *now);

//  before[r] = error,  error <- fade error + weight mean_k error of loss(f_k / unit_k, y_k / unit_k), for each row
double faded_error(double error, double fade, const double *scores, std::int64_t n_rows, std::int64_t n_columns,
                   const ValueTarget &targets, const double *row_weights, const AnyLoss &loss, double *before,
                   double *now);

//  total <- fade total + weight, for each row
double faded_total(double total, double fade, std::int64_t n_rows, const double *row_weights);

} // namespace isokern
