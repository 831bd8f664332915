#include "sampling.hpp"

#include <unordered_map>

#include "random.hpp"

namespace isokern {

// Fisher and Yates' shuffle of 0 .. n_rows - 1, of which only the places that were touched are kept.
static void draw_sample(std::int64_t n_rows, std::int64_t sample_size, Draws draws, std::int64_t *sample) {
    std::unordered_map<std::int64_t, std::int64_t> moved;
    moved.reserve(2 * static_cast<std::size_t>(sample_size));
    const auto at = [&](std::int64_t place) {
        const auto found = moved.find(place);
        return found == moved.end() ? place : found->second;
    };
    for (std::int64_t k = 0; k < sample_size; ++k) {
        const auto other = k + static_cast<std::int64_t>(draws.below(static_cast<std::uint64_t>(n_rows - k)));
        sample[k] = at(other);
        moved[other] = at(k);
    }
}

void draw_samples(std::int64_t n_rows, std::int64_t n_partitionings, std::int64_t sample_size, std::uint64_t seed,
                  std::int64_t *samples) {
    for (std::int64_t i = 0; i < n_partitionings; ++i)
        draw_sample(n_rows, sample_size, Draws(stream_key(seed, Purpose::sample, static_cast<std::uint64_t>(i))),
                    samples + i * sample_size);
}

} // namespace isokern
