// The stored rows that are most similar to a row under the Isolation Kernel: exact k-nearest-neighbour search.
//
// In: the cells of stored rows in panels, the cells of rows, a weight for each scale. Out: for each row the k stored
// rows with the largest weighted share of equal cells, the most similar first, the earlier first of equally similar
// ones. Brute force: a panel of 64 stored rows is compared with a tile of rows while it is in the cache.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace isokern {

// The cells of one scale.
struct ScalePanels {
    int log2_bytes;     // of a cell: 0, 1 or 2
    const void *panels; // n_panels x t x kPanelRows
    const void *rows;   // n_rows x t
};

//  similarities[r, :] = the k largest of sum_l weights[l] #{i : equal cells at scale l} / sum_l weights[l] t
//   in: scales; n_stored rows in the panels, at least k; t partitionings
//   out: indices, similarities: n_rows x k
void find_similar(const std::vector<ScalePanels> &scales, std::span<const double> weights, std::int64_t t,
                  std::int64_t n_stored, std::int64_t n_rows, std::int64_t k, std::int64_t *indices,
                  double *similarities, int threads);

} // namespace isokern
