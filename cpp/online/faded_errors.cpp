// Errors of models that race. See faded_errors.hpp.
//
// In: scores, targets, weights of rows. Out: faded errors.
#include "online/faded_errors.hpp"

#include <algorithm>
#include <variant>

#include "online/losses.hpp"

namespace isokern {

double faded_error(double error, double fade, const double *scores, std::int64_t n_rows, std::int64_t n_columns,
                   const SeenFrom &seen_from, const std::int32_t *targets, const double *row_weights, double *before,
                   double *now) {
    const auto n_classes = static_cast<std::int64_t>(seen_from.size());
    // A single class cannot be missed.
    const auto is_wrong = [&](std::int64_t r) {
        if (n_classes <= 2)
            return n_classes == 2 && r >= std::max(seen_from[0], seen_from[1]) &&
                   (scores[0] > 0.0) != (targets[r] == 0);
        std::int64_t best = targets[r];
        for (std::int64_t k = n_classes - 1; k >= 0; --k) // the first of equal scores wins
            if (r >= seen_from[k] && scores[k] >= scores[best])
                best = k;
        return best != targets[r];
    };
    for (std::int64_t r = 0; r < n_rows; ++r, scores += n_columns) {
        before[r] = error;
        now[r] = is_wrong(r) ? 1.0 : 0.0;
        error = fade * error + (row_weights ? row_weights[r] : 1.0) * now[r];
    }
    return error;
}

double faded_error(double error, double fade, const double *scores, std::int64_t n_rows, std::int64_t n_columns,
                   const ValueTarget &targets, const double *row_weights, const AnyLoss &loss, double *before,
                   double *now) {
    const auto error_of = [&](std::int64_t r, std::int64_t k) {
        return std::visit(
            [&](const auto &any) {
                if constexpr (requires { loss_of(any, k).error(0.0, 0.0); })
                    return loss_of(any, k).error(scores[r * n_columns + k] / targets.unit(r, k), targets(r, k));
                return 0.0; // a loss of classes
            },
            loss);
    };
    for (std::int64_t r = 0; r < n_rows; ++r) {
        before[r] = error;
        double sum = 0.0;
        for (std::int64_t k = 0; k < n_columns; ++k)
            sum += error_of(r, k);
        now[r] = sum / static_cast<double>(n_columns);
        error = fade * error + (row_weights ? row_weights[r] : 1.0) * sum / static_cast<double>(n_columns);
    }
    return error;
}

double faded_total(double total, double fade, std::int64_t n_rows, const double *row_weights) {
    for (std::int64_t r = 0; r < n_rows; ++r)
        total = fade * total + (row_weights ? row_weights[r] : 1.0);
    return total;
}

} // namespace isokern
