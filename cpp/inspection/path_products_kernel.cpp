// The loop of path_products.hpp: one pass over a tree, depth first, for eight rows and all quadrature points.
//
// On the way down, G(t) of a node is that of its parent times the ratio of the changed factor; on the way up, H(t) of a
// node is the sum of those of its children. path_dependent.cpp derives both. Compiled once per instruction set
// (simd/for_isa.hpp), without fused multiply-add, so that all CPUs give the same numbers.
#include "inspection/path_products.hpp"

#include "simd/for_isa.hpp"

namespace isokern {
namespace {

typedef double Lanes __attribute__((vector_size(kRowLanes * sizeof(double)), aligned(8), may_alias));
typedef unsigned long long Mask __attribute__((vector_size(kRowLanes * sizeof(unsigned long long))));

// Adding and subtracting this rounds products below 2^-600 to 0: they add nothing to a value, and arithmetic on
// denormal numbers is slow. There are no comparisons of vectors here, which GCC makes one element at a time if they are
// wider than a register.
constexpr double kTiny = 0x1p-548;

Lanes load(const double *p) { return *reinterpret_cast<const Lanes *>(p); }
void store(double *p, Lanes v) { *reinterpret_cast<Lanes *>(p) = v; }
Mask mask_of(std::uint8_t rows) { return -(((Mask{} + rows) >> Mask{0, 1, 2, 3, 4, 5, 6, 7}) & 1); }
Lanes select(Mask mask, Lanes a, Lanes b) { return (Lanes)((mask & (Mask)a) | (~mask & (Mask)b)); }

class Pass {
  public:
    Pass(const PathNode *nodes, const double *values, std::int64_t n_outputs, std::int64_t stride,
         const Quadrature &quadrature, const PathBuffers &buffers, double *shapley)
        : nodes_(nodes), values_(values), n_outputs_(n_outputs), stride_(stride), q_(quadrature), b_(buffers),
          shapley_(shapley) {}

    void run(std::int64_t n_nodes, const std::uint8_t *satisfied) {
        begin();
        std::int32_t level = 0;
        for (std::int64_t k = 0; k < n_nodes; ++k) {
            for (; level >= nodes_[k].level; --level)
                leave(level);
            level = nodes_[k].level;
            enter(k, satisfied[nodes_[k].node]);
            if (nodes_[k].leaf >= 0)
                leave_leaf(level--);
        }
        for (; level > 0; --level)
            leave(level);
    }

  private:
    double *inverse(std::int32_t level) const { return b_.inverse + level * q_.n; }
    double *product(std::int32_t level) const { return b_.product + level * q_.n * kRowLanes; }
    double *sum(std::int32_t level) const { return b_.sum + level * n_outputs_ * q_.n * kRowLanes; }
    double *value_of(const PathNode &node) const { return shapley_ + node.feature * stride_ * kRowLanes; }

    // The root: no column has a factor yet, as if each had p = o = 1. Products begin with the quadrature's weights.
    void begin() const {
        b_.share[0] = 1.0;
        b_.is_open[0] = 0xFF;
        for (std::int64_t k = 0; k < q_.n; ++k) {
            inverse(0)[k] = 1.0;
            store(product(0) + k * kRowLanes, Lanes{} + q_.weight[k]);
        }
        clear(0);
    }

    void clear(std::int32_t level) const {
        for (std::int64_t k = 0; k < n_outputs_ * q_.n; ++k)
            store(sum(level) + k * kRowLanes, Lanes{});
    }

    //  G <- G ((1 - t) p + t o) / ((1 - t) p' + t o'),   p' and o' of the ancestor
    // Rows that already failed a split of the column stay at o = 0, where the ratio is p / p'.
    void enter(std::int64_t place, std::uint8_t satisfied) const {
        const PathNode &node = nodes_[place];
        const double p = node.share, ratio = p / b_.share[node.ancestor];
        const std::uint8_t was_open = b_.is_open[node.ancestor], is_open = was_open & satisfied;
        const Mask was = mask_of(was_open), is = mask_of(is_open);
        b_.share[node.level] = p;
        b_.is_open[node.level] = is_open;
        b_.place[node.level] = place;
        const double *before = inverse(node.ancestor), *above = product(node.level - 1);
        double *inverses = inverse(node.level), *products = product(node.level);
        for (std::int64_t k = 0; k < q_.n; ++k)
            inverses[k] = 1.0 / (q_.rest[k] * p + q_.at[k]);
        for (std::int64_t k = 0; k < q_.n; ++k) {
            const double failed = q_.rest[k] * p, passed = failed + q_.at[k];
            const Lanes factor =
                select(is, Lanes{} + passed * before[k], select(was, Lanes{} + failed * before[k], Lanes{} + ratio));
            store(products + k * kRowLanes, (load(above + k * kRowLanes) * factor + kTiny) - kTiny);
        }
        if (node.leaf < 0)
            clear(node.level);
    }

    // What H(t) of a node is multiplied with for the value of its column: c - c' with c = (o - p) / ((1 - t) p + t o).
    // For rows that failed an earlier split, c = c' = -1 / (1 - t).
    class Slope {
      public:
        Slope(const Pass &pass, std::int32_t level)
            : node_(pass.nodes_[pass.b_.place[level]]), before_(pass.inverse(node_.ancestor)),
              now_(pass.inverse(level)), inverse_rest_(pass.q_.inverse_rest), missed_(1.0 - node_.share),
              missed_before_(1.0 - pass.b_.share[node_.ancestor]), was_(mask_of(pass.b_.is_open[node_.ancestor])),
              is_(mask_of(pass.b_.is_open[level])), is_flat(pass.b_.is_open[node_.ancestor] == 0) {}

        Lanes at(std::int64_t k) const {
            const double c_before = missed_before_ * before_[k];
            return select(is_, Lanes{} + (missed_ * now_[k] - c_before),
                          select(was_, Lanes{} + (-inverse_rest_[k] - c_before), Lanes{}));
        }

      private:
        const PathNode &node_;
        const double *before_, *now_, *inverse_rest_;
        double missed_, missed_before_;
        Mask was_, is_;

      public:
        const bool is_flat; // whether it is 0 for all rows
    };

    // An inner node:  value of its column += sum_k slope_k H_k,   H of its parent += H
    void leave(std::int32_t level) const {
        if (level == 0)
            return;
        const Slope slope(*this, level);
        double *slopes = product(level); // G is not needed any more
        for (std::int64_t k = 0; k < q_.n; ++k)
            store(slopes + k * kRowLanes, slope.at(k));
        double *value = value_of(nodes_[b_.place[level]]);
        for (std::int64_t c = 0; c < n_outputs_; ++c) {
            const double *own = sum(level) + c * q_.n * kRowLanes;
            double *up = sum(level - 1) + c * q_.n * kRowLanes;
            Lanes total = {};
            for (std::int64_t k = 0; k < q_.n; ++k) {
                const Lanes h = load(own + k * kRowLanes);
                total += h * load(slopes + k * kRowLanes);
                store(up + k * kRowLanes, load(up + k * kRowLanes) + h);
            }
            store(value + c * kRowLanes, load(value + c * kRowLanes) + total);
        }
    }

    // A leaf with value w has H = w G, so one sum over the quadrature points serves all outputs.
    void leave_leaf(std::int32_t level) const {
        const PathNode &node = nodes_[b_.place[level]];
        const double *g = product(level), *leaf = values_ + node.leaf * stride_;
        const Slope slope(*this, level);
        if (!slope.is_flat) {
            Lanes total = {};
            for (std::int64_t k = 0; k < q_.n; ++k)
                total += load(g + k * kRowLanes) * slope.at(k);
            double *value = value_of(node);
            for (std::int64_t c = 0; c < n_outputs_; ++c)
                store(value + c * kRowLanes, load(value + c * kRowLanes) + leaf[c] * total);
        }
        for (std::int64_t c = 0; c < n_outputs_; ++c) {
            double *up = sum(level - 1) + c * q_.n * kRowLanes;
            for (std::int64_t k = 0; k < q_.n; ++k)
                store(up + k * kRowLanes, load(up + k * kRowLanes) + leaf[c] * load(g + k * kRowLanes));
        }
    }

    const PathNode *nodes_;
    const double *values_;
    std::int64_t n_outputs_, stride_;
    const Quadrature &q_;
    const PathBuffers &b_;
    double *shapley_;
};

void add_tree(const PathNode *nodes, std::int64_t n_nodes, const std::uint8_t *satisfied, const double *values,
              std::int64_t n_outputs, std::int64_t stride, const Quadrature &quadrature, const PathBuffers &buffers,
              double *shapley) {
    Pass(nodes, values, n_outputs, stride, quadrature, buffers, shapley).run(n_nodes, satisfied);
}

} // namespace

extern const PathProducts ISOKERN_FOR_ISA(path_products);
const PathProducts ISOKERN_FOR_ISA(path_products) = {add_tree};

} // namespace isokern
