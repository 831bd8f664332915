// Draws the random samples of rows from which partitionings are built.
//
// In: the number of rows, the number of samples and their size, a seed. Out: the row numbers of each sample. The method
// is a partial Fisher-Yates shuffle fed by a counter-based random number generator (random.hpp), so samples depend on
// the seed alone, not on the CPU or the number of threads.
#pragma once

#include <cstdint>

namespace isokern {

// samples[i, 0 .. sample_size) are distinct row numbers below n_rows, drawn uniformly without replacement and
// independently for each partitioning. For one seed, a smaller sample is a prefix of a larger one.
//   in: n_rows >= sample_size, seed      out: samples, n_partitionings x sample_size
void draw_samples(std::int64_t n_rows, std::int64_t n_partitionings, std::int64_t sample_size, std::uint64_t seed,
                  std::int64_t *samples);

} // namespace isokern
