// Kernel online gradient descent in blocks. In: rows, targets. Out: support vectors and coefficients; scores.
//
// The sums over support vectors dominate the cost. For a block of rows they are computed in parallel, over blocks of
// support vectors that stay in the cache, before the block is learned in order. Support vectors that the block itself
// adds are then added to the sums of its later rows one by one. Each partial sum adds its points in the order in which
// they came, so the result does not depend on blocks or threads.
#include "rivals/kernel_machine.hpp"

#include <algorithm>
#include <cmath>

#include "common/threads.hpp"

namespace isokern {
namespace {

constexpr std::int64_t kBlockRows = 256, kBlockPoints = 256;

} // namespace

template <class Rows>
void KernelMachine::add(const Rows &rows, std::int64_t r, const double *alpha, std::int64_t birth) {
    KernelRow row;
    points_.load(rows, r, row);
    add_row(row, birth);
    for (std::size_t k = 0; k < alpha_.size(); ++k)
        alpha_[k][points_.size() - 1] = alpha[k];
}

void KernelMachine::add_row(const KernelRow &row, std::int64_t birth) {
    births_.push_back(birth);
    if (points_.size() % kLane == 0)
        for (auto &column : alpha_)
            column.resize(static_cast<std::size_t>(points_.size() + kLane), 0.0);
    points_.add(row);
}

//  mean of alpha_j over the rounds: alpha_j (rounds - birth_j) / rounds
KernelMachine::Alpha KernelMachine::averaged(std::int64_t rounds) const {
    Alpha alpha = alpha_;
    for (auto &column : alpha)
        for (std::size_t j = 0; j < births_.size(); ++j)
            column[j] *= static_cast<double>(rounds - births_[j]) / static_cast<double>(rounds);
    return alpha;
}

//  sums[k, l] += sum over points p in first .. last - 1 with p % kLane = l of alpha[k, p] K(x_p, row)
// first may be within a panel, whose points before it have been added already. The panel is evaluated as a whole.
void KernelMachine::accumulate_row(const KernelRow &row, const Alpha &alphas, std::int64_t first, std::int64_t last,
                                   double *values, Sums &sums) const {
    const std::int64_t start = first / kLane * kLane;
    points_.evaluate(row, start, last - start, values);
    for (std::size_t k = 0; k < alphas.size(); ++k) {
        double *lanes = sums.data() + k * kLane;
        const double *alpha = alphas[k].data() + start;
        std::int64_t p = first - start;
        for (; p % kLane != 0 && p < last - start; ++p)
            lanes[p % kLane] += alpha[p] * values[p];
        for (; p + kLane <= last - start; p += kLane)
            for (std::int64_t l = 0; l < kLane; ++l)
                lanes[l] += alpha[p + l] * values[p + l];
        for (; p < last - start; ++p)
            lanes[p % kLane] += alpha[p] * values[p];
    }
}

// accumulate_row for several rows, in blocks of points that stay in the cache.
void KernelMachine::accumulate(std::span<const KernelRow> rows, const Alpha &alpha, std::int64_t first,
                               std::int64_t last, std::span<Sums> sums) const {
    std::vector<double> values(kBlockPoints + kLane);
    for (std::int64_t from = first; from < last; from += kBlockPoints)
        for (std::size_t r = 0; r < rows.size(); ++r)
            accumulate_row(rows[r], alpha, from, std::min(from + kBlockPoints, last), values.data(), sums[r]);
}

// The sum of the partial sums of score k, always in the same order.
double KernelMachine::total(const Sums &sums, std::int64_t k) const {
    const double *lanes = sums.data() + k * kLane;
    return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

// The Model of learn_rows (online_loop.hpp).
template <class Rows> class KernelMachine::Learner {
  public:
    Learner(KernelMachine &machine, const Rows &rows, const Clock &clock, int threads)
        : machine_(machine), rows_(rows), clock_(clock), threads_(threads), block_(kBlockRows), sums_(kBlockRows),
          values_(kBlockRows + 2 * kLane) {}

    void read(std::int64_t r) {
        if (r % kBlockRows == 0)
            begin_block(r);
        at_ = r % kBlockRows;
        is_added_ = false;
    }

    void last(double *scores) {
        if (machine_.points_.size() > n_known_)
            machine_.accumulate_row(block_[at_], machine_.alpha_, n_known_, machine_.points_.size(), values_.data(),
                                    sums_[at_]);
        for (std::int64_t k = 0; k < machine_.n_scores(); ++k)
            scores[k] = machine_.total(sums_[at_], k);
    }

    bool averages() const { return false; }
    void predict(double *scores) { last(scores); }

    void step(std::int64_t k, double g, double rate, double) {
        if (!is_added_)
            machine_.add_row(block_[at_], clock_.rounds);
        is_added_ = true;
        machine_.alpha_[k][machine_.points_.size() - 1] = -rate * g;
    }

    double move(std::int64_t, double g, double rate) const { return rate * std::abs(g) * block_[at_].norm; }
    void end_row() {}

  private:
    // Sums over the support vectors known before the block, for all of its rows.
    void begin_block(std::int64_t begin) {
        n_known_ = machine_.points_.size();
        const std::int64_t n = std::min(kBlockRows, rows_.n_rows - begin);
        for (std::int64_t k = 0; k < n; ++k) {
            machine_.points_.load(rows_, begin + k, block_[k]);
            sums_[k].assign(static_cast<std::size_t>(machine_.n_scores() * kLane), 0.0);
        }
        // Little work would be finished before another thread has started.
        const int threads = n_known_ * n < 20'000 ? 1 : threads_;
        parallel_tiles(n, 32, threads, [&] {
            return [&](std::int64_t from, std::int64_t to) {
                const auto size = static_cast<std::size_t>(to - from);
                machine_.accumulate({block_.data() + from, size}, machine_.alpha_, 0, n_known_,
                                    {sums_.data() + from, size});
            };
        });
    }

    KernelMachine &machine_;
    const Rows &rows_;
    const Clock &clock_;
    int threads_;
    std::vector<KernelRow> block_;
    std::vector<Sums> sums_;
    std::vector<double> values_;
    std::int64_t n_known_ = 0, at_ = 0; // number of support vectors before the block; the current row within it
    bool is_added_ = false;
};

template <class Rows>
void KernelMachine::learn(const Rows &rows, const AnyTarget &targets, const double *row_weights, const AnyLoss &loss,
                          const Step &step, Clock &clock, int threads) {
    Learner<Rows> model(*this, rows, clock, threads);
    std::visit(
        [&](const auto &target, const auto &any_loss) {
            learn_rows(model, rows.n_rows, n_scores(), target, row_weights, any_loss, step, clock, nullptr);
        },
        targets, loss);
}

template <class Rows>
void KernelMachine::score(const Rows &rows, std::int64_t n_points, std::int64_t averaged_rounds, double *scores,
                          int threads) const {
    const Alpha alpha = averaged_rounds > 0 ? averaged(averaged_rounds) : alpha_;
    parallel_tiles(rows.n_rows, 32, threads, [&] {
        return [&, block = std::vector<KernelRow>(32), sums = std::vector<Sums>(32)](std::int64_t begin,
                                                                                     std::int64_t end) mutable {
            const auto n = static_cast<std::size_t>(end - begin);
            for (std::size_t k = 0; k < n; ++k) {
                points_.load(rows, begin + static_cast<std::int64_t>(k), block[k]);
                sums[k].assign(static_cast<std::size_t>(n_scores() * kLane), 0.0);
            }
            accumulate({block.data(), n}, alpha, 0, n_points, {sums.data(), n});
            for (std::size_t r = 0; r < n; ++r)
                for (std::int64_t k = 0; k < n_scores(); ++k)
                    scores[(begin + static_cast<std::int64_t>(r)) * n_scores() + k] = total(sums[r], k);
        };
    });
}

#define ISOKERN_INSTANTIATE(Rows)                                                                                      \
    template void KernelMachine::add(const Rows &, std::int64_t, const double *, std::int64_t);                        \
    template void KernelMachine::learn(const Rows &, const AnyTarget &, const double *, const AnyLoss &, const Step &, \
                                       Clock &, int);                                                                  \
    template void KernelMachine::score(const Rows &, std::int64_t, std::int64_t, double *, int) const;
ISOKERN_INSTANTIATE(DenseRows<float>)
ISOKERN_INSTANTIATE(DenseRows<double>)
ISOKERN_INSTANTIATE(CsrRows<float>)
ISOKERN_INSTANTIATE(CsrRows<double>)

} // namespace isokern
