// Learns on the cells of several scales and on a linear term. See scale_weights.hpp.
//
// In: cells, linear rows, weights, targets. Out: changed weights, scores, the clock. Where a tree is renewed between
// two rows, its new weights are learned first.
#include "online/scale_weights.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "online/scale_model.hpp"

namespace isokern {
namespace {

// A model whose trees are renewed between rows, by renew(renewal).
template <class Renew> class RenewingModel : public ScaleModel {
  public:
    RenewingModel(ScaleModel model, std::span<const Renewal> renewals, Renew renew)
        : ScaleModel(std::move(model)), renewals_(renewals), renew_(std::move(renew)) {}

    void end_row() {
        ScaleModel::end_row();
        for (++n_learned_; !renewals_.empty() && renewals_.front().row == n_learned_; renewals_ = renewals_.subspan(1))
            renew_(renewals_.front());
    }

  private:
    std::span<const Renewal> renewals_;
    Renew renew_;
    std::int64_t n_learned_ = 0;
};

// Sets the weights of a tree's cells to those of an untrained model.
void forget(const ScaleWeights &weights, std::int64_t begin, std::int64_t end, float square) {
    for (std::int64_t place = begin; place < end; ++place) {
        std::fill_n(weights.values + place * weights.stride, weights.n_columns, 0.0f);
        if (weights.squares)
            std::fill_n(weights.squares + place * weights.stride, weights.n_columns, square);
    }
}

} // namespace

void learn_scales(const std::optional<AnyCells> &cells, const std::optional<LinearRows> &linear, std::int64_t n_rows,
                  const AnyTarget &targets, const double *row_weights, const AnyLoss &loss, const Step &step,
                  const ScaleWeights &weights, std::int64_t begin, std::int64_t end, std::span<const Renewal> renewals,
                  const Clock &clock, double *scores) {
    const std::int64_t n_all = weights.n_columns, n = end - begin;
    const auto renew = [&](const Renewal &renewal) {
        const std::int64_t *starts = std::visit([](const auto &all) { return all.starts; }, *cells) + renewal.first;
        const auto past = std::visit(
            [&](auto rows) -> AnyCells {
                rows.starts = starts;
                return rows;
            },
            renewal.cells);
        const auto [n_past, t] = std::visit([](const auto &rows) { return std::pair(rows.n_rows, rows.t); }, past);
        ScaleWeights of_tree = weights;
        of_tree.linear_values = of_tree.linear_squares = nullptr;
        forget(of_tree.columns(begin, end), starts[0], starts[t], renewal.square);
        learn_scales(past, std::nullopt, n_past, renewal.targets, renewal.row_weights, loss, step, of_tree, begin, end,
                     {}, Clock(), nullptr);
    };
    RenewingModel model(ScaleModel(cells, linear, weights.columns(begin, end), step), renewals, renew);
    Step of_columns = step;
    of_columns.counted_from.assign(static_cast<std::size_t>(n), n_rows); // count_rows counts
    std::vector<double> own(static_cast<std::size_t>(scores ? n_rows * n : 0));
    Clock own_clock = clock;
    std::visit(
        [&](const auto &target, const auto &any) {
            learn_rows(model, n_rows, n, target.columns(begin), row_weights, losses_from(any, begin), of_columns,
                       own_clock, scores ? own.data() : nullptr);
        },
        targets, loss);
    for (std::int64_t r = 0; scores && r < n_rows; ++r)
        std::copy_n(own.data() + r * n, n, scores + r * n_all + begin);
}

void count_rows(const double *scores, std::int64_t n_rows, std::int64_t n_columns, const AnyTarget &targets,
                const double *row_weights, const AnyLoss &loss, const Step &step, Clock &clock) {
    const auto is_support = [&](std::int64_t r) {
        return std::visit(
            [&](const auto &target, const auto &any) {
                for (std::int64_t k = 0; k < n_columns; ++k) {
                    const double f = scores[r * n_columns + k] / target.unit(r, k);
                    if (r >= step.counted_from[k] && loss_of(any, k).derivative(f, target(r, k)) != 0.0)
                        return true;
                }
                return false;
            },
            targets, loss);
    };
    for (std::int64_t r = 0; r < n_rows; ++r)
        clock.n_support += !(row_weights && row_weights[r] == 0.0) && is_support(r);
    clock.rounds += n_rows;
    clock.scale_sum += static_cast<double>(n_rows);
    clock.n_rows += step.is_new ? n_rows : 0;
}

} // namespace isokern
