// Partial Fisher-Yates shuffle in O(sample_size) time and memory per sample, whatever n_rows is.
//
// In: n_rows, sample_size, seed. Out: distinct row numbers per partitioning. The shuffle works on an array a, which is
// 0 .. n_rows - 1 at first, but step k touches only a[k] and one entry at or behind k. So the first sample_size entries
// are stored as an array; of the others, only those that a swap has touched, in a hash table.
#include "common/sampling.hpp"

#include <numeric>
#include <utility>
#include <vector>

#include "common/hash_table.hpp"
#include "common/random.hpp"
#include "common/threads.hpp"

namespace isokern {
namespace {

// The array a of the shuffle, stored sparsely; reused from one sample to the next.
class Shuffle {
  public:
    explicit Shuffle(std::int64_t sample_size)
        : front_(static_cast<std::size_t>(sample_size)), touched_(front_.size()) {}

    //  for k = 0, 1, ...:  j uniform in k .. n_rows - 1,  sample[k] = a[j],  a[j] = a[k]
    //  in: n_rows, draws      out: sample
    void draw(std::int64_t n_rows, Draws draws, std::int64_t *sample) {
        const auto sample_size = static_cast<std::int64_t>(front_.size());
        std::iota(front_.begin(), front_.end(), std::int64_t{0});
        touched_.clear();
        for (std::int64_t k = 0; k < sample_size; ++k) {
            const auto j = k + static_cast<std::int64_t>(draws.below(static_cast<std::uint64_t>(n_rows - k)));
            sample[k] = std::exchange(j < sample_size ? front_[j] : touched_.get_or_insert(j, j), front_[k]);
        }
    }

  private:
    std::vector<std::int64_t> front_;
    HashTable<std::int64_t, std::int64_t> touched_; // j -> a[j] for j >= sample_size; an entry not in it is j itself
};

} // namespace

void draw_samples(std::int64_t n_rows, std::int64_t n_partitionings, std::int64_t sample_size, std::uint64_t seed,
                  std::int64_t *samples) {
    parallel_tiles(n_partitionings, 1, threads_for(n_partitionings * sample_size), [&] {
        return [&, shuffle = Shuffle(sample_size)](std::int64_t i, std::int64_t) mutable {
            shuffle.draw(n_rows, Draws(stream_key(seed, Purpose::sample, static_cast<std::uint64_t>(i))),
                         samples + i * sample_size);
        };
    });
}

} // namespace isokern
