#include "online.hpp"

#include <stdexcept>
#include <string>

namespace isokern {

AnyLoss loss_by_name(std::string_view name, double epsilon) {
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
    throw std::invalid_argument("unknown loss " + std::string(name));
}

Schedule schedule_by_name(std::string_view name) {
    if (name == "constant")
        return Schedule::constant;
    if (name == "decaying")
        return Schedule::decaying;
    if (name == "adagrad")
        return Schedule::adagrad;
    throw std::invalid_argument("unknown schedule " + std::string(name));
}

} // namespace isokern
