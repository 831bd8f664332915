// Searches the panels of similar.hpp. In: panels, rows. Out: the k best of each row.
//
// Work is cut into tiles of rows and, if these are fewer than the threads, into ranges of panels; the k best of each
// range are kept, then the best of those. Neither changes the result, because rows have a total order: by similarity,
// then by their number.
#include "inspection/similar.hpp"

#include <algorithm>

#include "common/threads.hpp"
#include "inspection/equal_counts.hpp"

namespace isokern {
namespace {

constexpr std::int64_t kTile = 16; // rows that are compared with a panel while it is in the cache

struct Found {
    double sum;
    std::int64_t row;

    bool operator<(const Found &other) const { // is better than
        return sum > other.sum || (sum == other.sum && row < other.row);
    }
};

// The k best so far: a heap with the worst of them on top.
class Best {
  public:
    Best(std::vector<Found> &found, std::int64_t k) : found_(found), k_(k) {}

    // Rows come in ascending order, so one that is not above the limit is worse than all that are kept.
    double limit() const { return std::ssize(found_) < k_ ? -1.0 : found_.front().sum; }

    void add(Found candidate) {
        if (std::ssize(found_) == k_) {
            std::pop_heap(found_.begin(), found_.end());
            found_.pop_back();
        }
        found_.push_back(candidate);
        std::push_heap(found_.begin(), found_.end());
    }

  private:
    std::vector<Found> &found_;
    std::int64_t k_;
};

} // namespace

void find_similar(const std::vector<ScalePanels> &scales, std::span<const double> weights, std::int64_t t,
                  std::int64_t n_stored, std::int64_t n_rows, std::int64_t k, std::int64_t *indices,
                  double *similarities, int threads) {
    const auto n_scales = std::ssize(scales);
    const std::int64_t n_panels = (n_stored + kPanelRows - 1) / kPanelRows, n_tiles = (n_rows + kTile - 1) / kTile;
    const std::int64_t n_wanted = n_tiles ? (usable_threads(threads) + n_tiles - 1) / n_tiles : 1;
    const std::int64_t n_ranges = std::clamp<std::int64_t>(n_wanted, 1, std::max<std::int64_t>(n_panels, 1));
    std::vector<std::vector<Found>> found(static_cast<std::size_t>(n_rows * n_ranges)); // [row][range]
    const EqualCounts &kernel = best_equal_counts();

    const auto compare = [&](std::int64_t r, std::int64_t range, std::int64_t panel, std::int32_t *counts) {
        for (std::int64_t l = 0; l < n_scales; ++l) {
            const std::int64_t bytes = std::int64_t{1} << scales[l].log2_bytes;
            kernel.count[scales[l].log2_bytes](
                static_cast<const char *>(scales[l].panels) + panel * t * kPanelRows * bytes,
                static_cast<const char *>(scales[l].rows) + r * t * bytes, t, counts + l * kPanelRows);
        }
        double sums[kPanelRows];
        Best best(found[r * n_ranges + range], k);
        if (!kernel.add_scales(counts, weights.data(), n_scales, best.limit(), sums))
            return;
        const std::int64_t first = panel * kPanelRows, n = std::min(kPanelRows, n_stored - first);
        for (std::int64_t j = 0; j < n; ++j)
            if (sums[j] > best.limit())
                best.add({sums[j], first + j});
    };
    parallel_tiles(n_tiles * n_ranges, 1, threads, [&] {
        std::vector<std::int32_t> counts(static_cast<std::size_t>(n_scales * kPanelRows));
        return [&, counts](std::int64_t work, std::int64_t) mutable {
            const std::int64_t tile = work / n_ranges, range = work % n_ranges;
            for (std::int64_t panel = range * n_panels / n_ranges; panel < (range + 1) * n_panels / n_ranges; ++panel)
                for (std::int64_t r = tile * kTile; r < std::min((tile + 1) * kTile, n_rows); ++r)
                    compare(r, range, panel, counts.data());
        };
    });

    double all = weights[0] * static_cast<double>(t);
    for (std::int64_t l = 1; l < n_scales; ++l)
        all += weights[l] * static_cast<double>(t);
    for (std::int64_t r = 0; r < n_rows; ++r) {
        std::vector<Found> &joined = found[r * n_ranges];
        for (std::int64_t range = 1; range < n_ranges; ++range)
            joined.insert(joined.end(), found[r * n_ranges + range].begin(), found[r * n_ranges + range].end());
        std::partial_sort(joined.begin(), joined.begin() + k, joined.end());
        for (std::int64_t j = 0; j < k; ++j) {
            indices[r * k + j] = joined[j].row;
            similarities[r * k + j] = joined[j].sum / all;
        }
    }
}

} // namespace isokern
