// Scores of many rows in threads, and tables of the finest cells. See scale_scores.hpp.
//
// In: cells, linear rows, weights. Out: scores, folded weights.
#include "online/scale_scores.hpp"

#include <algorithm>

#include "common/threads.hpp"
#include "online/scale_scorer.hpp"

namespace isokern {

template <class Value>
void score_scales(const std::optional<AnyCells> &cells, const std::optional<LinearRows> &linear, std::int64_t n_rows,
                  const ScaleView<Value> &weights, double *scores, int threads) {
    // Large tiles: a few thousand rows are scored before another thread has started.
    parallel_tiles(n_rows, 4096, threads, [&] {
        return [&, scorer = ScaleScorer(cells, linear, weights)](std::int64_t begin, std::int64_t end) mutable {
            for (std::int64_t r = begin; r < end; ++r) {
                scorer.read(r);
                scorer.score(scores + r * weights.n_columns);
            }
        };
    });
}

template <class Cell>
void fold_scales(const Cell *paths, std::int64_t t, std::int64_t n_finest, const std::int64_t *starts,
                 const ScaleView<float> &weights, double *folded, int threads) {
    const std::int64_t n_scales = weights.n_scales, n_columns = weights.n_columns;
    const auto fold = [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            const Cell *path = paths + i * n_finest * n_scales;
            double *sums = folded + i * n_finest * n_columns;
            for (std::int64_t c = 0; c < n_finest; ++c, sums += n_columns) {
                std::fill_n(sums, n_columns, 0.0);
                for (std::int64_t l = 0; l < n_scales; ++l, ++path) {
                    const float *cell = weights.values + (starts[i * n_scales + l] + *path) * weights.stride;
                    for (std::int64_t k = 0; k < n_columns; ++k)
                        sums[k] += static_cast<double>(cell[k]);
                }
            }
        }
    };
    parallel_tiles(t, 1, threads, [&] { return fold; });
}

#define ISOKERN_INSTANTIATE_SCORE(Value)                                                                               \
    template void score_scales(const std::optional<AnyCells> &, const std::optional<LinearRows> &, std::int64_t,       \
                               const ScaleView<Value> &, double *, int);
ISOKERN_INSTANTIATE_SCORE(float)
ISOKERN_INSTANTIATE_SCORE(double)

#define ISOKERN_INSTANTIATE_FOLD(Cell)                                                                                 \
    template void fold_scales(const Cell *, std::int64_t, std::int64_t, const std::int64_t *,                          \
                              const ScaleView<float> &, double *, int);
ISOKERN_INSTANTIATE_FOLD(std::uint8_t)
ISOKERN_INSTANTIATE_FOLD(std::uint16_t)
ISOKERN_INSTANTIATE_FOLD(std::uint32_t)

} // namespace isokern
