// Checks cells, and finds losses and schedules by name.
//
// In: tables of cells; names from Python. Out: whether all cells are in range; the loss or schedule.
#include "online/online.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace isokern {

//  cells[r, i] < starts[i + 1] - starts[i] for all r and i
// The inner loop has no branch, so that the compiler vectorises it.
template <class Cell> bool are_cells(const CellRows<Cell> &rows) {
    std::vector<Cell> largest;
    for (std::int64_t i = 0; i < rows.t; ++i) {
        const std::int64_t last = rows.starts[i + 1] - rows.starts[i] - 1;
        largest.push_back(static_cast<Cell>(std::min<std::int64_t>(last, std::numeric_limits<Cell>::max())));
    }
    for (std::int64_t r = 0; r < rows.n_rows; ++r) {
        Cell too_large = 0;
        for (std::int64_t i = 0; i < rows.t; ++i)
            too_large |= rows.row(r)[i] > largest[i];
        if (too_large)
            return false;
    }
    return true;
}

template bool are_cells(const CellRows<std::uint8_t> &);
template bool are_cells(const CellRows<std::uint16_t> &);
template bool are_cells(const CellRows<std::uint32_t> &);

AnyLoss loss_by_name(std::string_view name, double epsilon, const std::vector<double> &quantiles) {
    if (name == "hinge")
        return Hinge{};
    if (name == "squared_hinge")
        return SquaredHinge{};
    if (name == "logistic")
        return Logistic{};
    if (name == "squared")
        return Squared{};
    if (name == "huber")
        return Huber{epsilon};
    if (name == "epsilon_insensitive")
        return EpsilonInsensitive{epsilon};
    if (name == "quantile")
        return Quantiles{quantiles};
    throw std::invalid_argument(
        "loss must be hinge, squared_hinge, logistic, squared, huber, epsilon_insensitive or quantile; got " +
        std::string(name));
}

Schedule schedule_by_name(std::string_view name) {
    if (name == "constant")
        return Schedule::constant;
    if (name == "decaying")
        return Schedule::decaying;
    if (name == "adagrad")
        return Schedule::adagrad;
    throw std::invalid_argument("schedule must be constant, decaying or adagrad; got " + std::string(name));
}

} // namespace isokern
