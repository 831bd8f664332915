// Random samples of rows, one for each partitioning.
#pragma once

#include <cstdint>

namespace isokern {

// samples[i, 0 .. sample_size) are distinct row numbers below n_rows, uniform, independent of the other partitionings.
// For one seed, a smaller sample is the beginning of a larger one.
//   in: n_rows >= sample_size, seed      out: samples, n_partitionings x sample_size
void draw_samples(std::int64_t n_rows, std::int64_t n_partitionings, std::int64_t sample_size, std::uint64_t seed,
                  std::int64_t *samples);

} // namespace isokern
