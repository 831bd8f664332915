// Kernel online gradient descent in blocks. In: rows, targets. Out: support vectors and coefficients; scores.
//
// The sums over support vectors dominate the cost. For a block of rows they are computed in parallel, over blocks of
// support vectors that stay in the cache, before the block is learned in order. Support vectors that the block itself
// adds are then added to the sums of its later rows one by one. Each partial sum adds its points in the order in which
// they came, so the result does not depend on blocks or threads.
#include "rivals/kernel_machine.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "common/threads.hpp"

namespace isokern {
namespace {

constexpr std::int64_t kBlockRows = 256, kBlockPoints = 256;
static_assert(kBlockRows <= kBlockPoints); // the points that a block of rows adds are added up at once

// The index of the first point of a point's panel.
constexpr std::int64_t panel_of(std::int64_t point) { return point / kLane * kLane; }

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
    if (points_.size() % kLane == 0)
        for (auto &column : alpha_)
            column.resize(static_cast<std::size_t>(points_.size() + kLane), 0.0);
    births_.push_back(birth);
    try {
        points_.add(row);
    } catch (...) { // out of memory: there must be as many births as points
        births_.pop_back();
        throw;
    }
}

//  values[p - start] = K(x_p, row) for the points p in first .. last - 1, where start is the beginning of first's panel
void KernelMachine::evaluate(const KernelRow &row, std::int64_t first, std::int64_t last, double *values) const {
    points_.evaluate(row, panel_of(first), last - panel_of(first), values);
}

// Calls use(r, values, first, last) with the kernel values of all rows and the points before `last`, in blocks of
// points that stay in the cache.
template <class Use>
void KernelMachine::evaluate_all(std::span<const KernelRow> rows, std::int64_t last, const Use &use) const {
    const std::int64_t block = points_.block_size();
    std::vector<double> values(static_cast<std::size_t>(block));
    for (std::int64_t from = 0; from < last; from += block)
        for (std::size_t r = 0; r < rows.size(); ++r) {
            const std::int64_t to = std::min(from + block, last);
            evaluate(rows[r], from, to, values.data());
            use(r, values.data(), from, to);
        }
}

//  sums[k, l] += sum over points p in first .. last - 1 with p % kLane = l of coefficient(k, p) values[p - start]
// start is the beginning of first's panel, whose points before first have been added already.
template <class Coefficient>
void KernelMachine::add_up_with(const Coefficient &coefficient, const double *values, std::int64_t first,
                                std::int64_t last, Sums &sums) const {
    const std::int64_t start = panel_of(first);
    for (std::size_t k = 0; k < alpha_.size(); ++k) {
        double *lanes = sums.data() + k * kLane;
        const double *alpha = alpha_[k].data() + start;
        std::int64_t p = first - start;
        for (; p % kLane != 0 && p < last - start; ++p)
            lanes[p % kLane] += coefficient(alpha, p) * values[p];
        for (; p + kLane <= last - start; p += kLane)
            for (std::int64_t l = 0; l < kLane; ++l)
                lanes[l] += coefficient(alpha, p + l) * values[p + l];
        for (; p < last - start; ++p)
            lanes[p % kLane] += coefficient(alpha, p) * values[p];
    }
}

// Adds the points first .. last - 1, at most kBlockPoints, with the coefficients alpha, if averaged_rounds is 0; else
// with their mean over that many rounds, alpha_p (rounds - birth_p) / rounds.
void KernelMachine::add_up(const double *values, std::int64_t first, std::int64_t last, std::int64_t averaged_rounds,
                           Sums &sums) const {
    if (averaged_rounds == 0)
        return add_up_with([](const double *alpha, std::int64_t p) { return alpha[p]; }, values, first, last, sums);
    std::array<double, kBlockPoints + kLane> shares;
    const std::int64_t start = panel_of(first);
    for (std::int64_t p = first; p < last; ++p)
        shares[p - start] = static_cast<double>(averaged_rounds - births_[p]) / static_cast<double>(averaged_rounds);
    add_up_with([&](const double *alpha, std::int64_t p) { return alpha[p] * shares[p]; }, values, first, last, sums);
}

// The sums of the partial sums of each score, always in the same order.
void KernelMachine::totals(const Sums &sums, double *scores) const {
    for (std::int64_t k = 0; k < n_scores(); ++k) {
        const double *lanes = sums.data() + k * kLane;
        scores[k] = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
    }
}

// The Model of learn_rows (online_loop.hpp).
template <class Rows> class KernelMachine::Learner {
  public:
    Learner(KernelMachine &machine, const Rows &rows, const Clock &clock, int threads, bool averages)
        : machine_(machine), rows_(rows), clock_(clock), threads_(threads), averages_(averages), block_(kBlockRows),
          sums_(kBlockRows), means_(averages ? kBlockRows : 0), values_(kBlockRows + 2 * kLane) {}

    void read(std::int64_t r) {
        if (r % kBlockRows == 0)
            begin_block(r);
        at_ = r % kBlockRows;
        is_added_ = false;
    }

    void last(double *scores) {
        if (n_new() > 0) {
            machine_.evaluate(block_[at_], n_known_, machine_.points_.size(), values_.data());
            machine_.add_up(values_.data(), n_known_, machine_.points_.size(), 0, sums_[at_]);
        }
        machine_.totals(sums_[at_], scores);
    }

    bool averages() const { return averages_; }

    // After last(), which has left the kernel values of the block's own points.
    void predict(double *scores) {
        if (n_new() > 0)
            machine_.add_up(values_.data(), n_known_, machine_.points_.size(), clock_.rounds, means_[at_]);
        machine_.totals(means_[at_], scores);
    }

    void step(std::int64_t k, double g, double rate, double) {
        if (!is_added_)
            machine_.add_row(block_[at_], clock_.rounds);
        is_added_ = true;
        machine_.alpha_[k][machine_.points_.size() - 1] = -rate * g;
    }

    double move(std::int64_t, double g, double rate) const { return rate * std::abs(g) * block_[at_].norm; }
    void end_row() {}

  private:
    std::int64_t n_new() const { return machine_.points_.size() - n_known_; }

    // Sums over the support vectors known before the block, for all of its rows.
    void begin_block(std::int64_t begin) {
        n_known_ = machine_.points_.size();
        const std::int64_t n = std::min(kBlockRows, rows_.n_rows - begin);
        for (std::int64_t k = 0; k < n; ++k) {
            machine_.points_.load(rows_, begin + k, block_[k]);
            sums_[k].assign(static_cast<std::size_t>(machine_.n_scores() * kLane), 0.0);
            if (averages_)
                means_[k] = sums_[k];
        }
        // Little work would be finished before another thread has started.
        const int threads = n_known_ * n < 20'000 ? 1 : threads_;
        parallel_tiles(n, 32, threads, [&] {
            return [&](std::int64_t from, std::int64_t to) {
                const auto size = static_cast<std::size_t>(to - from);
                machine_.evaluate_all({block_.data() + from, size}, n_known_,
                                      [&](std::size_t r, const double *values, std::int64_t first, std::int64_t last) {
                                          const std::int64_t row = from + static_cast<std::int64_t>(r);
                                          machine_.add_up(values, first, last, 0, sums_[row]);
                                          if (averages_)
                                              machine_.add_up(values, first, last, clock_.rounds + row, means_[row]);
                                      });
            };
        });
    }

    KernelMachine &machine_;
    const Rows &rows_;
    const Clock &clock_;
    int threads_;
    bool averages_;
    std::vector<KernelRow> block_;
    std::vector<Sums> sums_, means_; // with the last coefficients, and with their means
    std::vector<double> values_;
    std::int64_t n_known_ = 0, at_ = 0; // number of support vectors before the block; the current row within it
    bool is_added_ = false;
};

template <class Rows>
void KernelMachine::learn(const Rows &rows, const AnyTarget &targets, const double *row_weights, const AnyLoss &loss,
                          const Step &step, Clock &clock, int threads, bool averages, double *scores) {
    Learner<Rows> model(*this, rows, clock, threads, averages && scores);
    std::visit(
        [&](const auto &target, const auto &any_loss) {
            learn_rows(model, rows.n_rows, n_scores(), target, row_weights, any_loss, step, clock, scores);
        },
        targets, loss);
}

template <class Rows>
void KernelMachine::score(const Rows &rows, std::int64_t n_points, std::int64_t averaged_rounds, double *scores,
                          int threads) const {
    parallel_tiles(rows.n_rows, 32, threads, [&] {
        return [&, block = std::vector<KernelRow>(32), sums = std::vector<Sums>(32)](std::int64_t begin,
                                                                                     std::int64_t end) mutable {
            const auto n = static_cast<std::size_t>(end - begin);
            for (std::size_t k = 0; k < n; ++k) {
                points_.load(rows, begin + static_cast<std::int64_t>(k), block[k]);
                sums[k].assign(static_cast<std::size_t>(n_scores() * kLane), 0.0);
            }
            evaluate_all({block.data(), n}, n_points,
                         [&](std::size_t r, const double *values, std::int64_t first, std::int64_t last) {
                             add_up(values, first, last, averaged_rounds, sums[r]);
                         });
            for (std::size_t r = 0; r < n; ++r)
                totals(sums[r], scores + (begin + static_cast<std::int64_t>(r)) * n_scores());
        };
    });
}

#define ISOKERN_INSTANTIATE(Rows)                                                                                      \
    template void KernelMachine::add(const Rows &, std::int64_t, const double *, std::int64_t);                        \
    template void KernelMachine::learn(const Rows &, const AnyTarget &, const double *, const AnyLoss &, const Step &, \
                                       Clock &, int, bool, double *);                                                  \
    template void KernelMachine::score(const Rows &, std::int64_t, std::int64_t, double *, int) const;
ISOKERN_INSTANTIATE(DenseRows<float>)
ISOKERN_INSTANTIATE(DenseRows<double>)
ISOKERN_INSTANTIATE(CsrRows<float>)
ISOKERN_INSTANTIATE(CsrRows<double>)

} // namespace isokern
