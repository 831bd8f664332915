// Path-dependent Shapley values by quadrature: linear in the number of nodes, and stable at any depth.
//
// In: trees with leaf values, rows. Out: Shapley values.
//
// For one row, a leaf of value w has two numbers for each column j on its path: o_j = 1 if the row satisfies all splits
// of j there, else 0; p_j, the product of the shares of points of these splits. The game is multilinear,
//
//  v(S) = sum over leaves of w prod_{j in S} o_j prod_{j not in S} p_j,
//
// and the Shapley value is the integral of its derivative along the diagonal of the multilinear extension (Owen, 1972):
//
//  value_i = int_0^1 sum over leaves of w (o_i - p_i) prod_{j != i} ((1 - t) p_j + t o_j) dt
//
// The integrand is a polynomial in t of a degree below the number of columns on a path, so Gauss-Legendre quadrature is
// exact. All factors are positive: nothing cancels, unlike in algorithms that interpolate polynomials. At a fixed t,
// let
//
//  G(leaf) = prod_j ((1 - t) p_j + t o_j),   H(node) = sum over its leaves of w G,   c_i = (o_i - p_i) / ((1 - t) p_i +
//  t o_i)
//
// p_i and o_i of a leaf are those after the last split of column i on its path. So each node with a split of i above it
// adds (c_i - c_i') H(node) to value_i, where c_i' is that of the split of i before it on the path, or 0: all nodes
// below that one had counted as c_i'. One pass down, for G, and up, for H, serves all columns: O(nodes x points) for a
// row (path_products_kernel.cpp). Eight rows go together, one in each SIMD lane, because all rows visit all nodes.
#include "inspection/shapley.hpp"

#include <cmath>
#include <map>
#include <memory>
#include <numbers>

#include "common/threads.hpp"
#include "inspection/path_products.hpp"

namespace isokern {
namespace {

constexpr std::int64_t kTile = 64;              // rows for which a tree is prepared once
constexpr std::int64_t kTileBytes = 16 << 20;   // of the values of a tile; fewer rows if it takes more
constexpr std::int64_t kBufferBytes = 32 << 20; // of sums along a path; fewer outputs at a time if they take more

// Points and weights of Gauss-Legendre quadrature on [0, 1]: roots of Legendre's polynomial by Newton's method.
class GaussLegendre {
  public:
    explicit GaussLegendre(std::int64_t n) : n_(n) {
        for (auto *list : {&at_, &rest_, &inverse_rest_, &weight_})
            list->resize(static_cast<std::size_t>(n));
        for (std::int64_t i = 0; i < n; ++i) {
            double x = std::cos(std::numbers::pi * (static_cast<double>(i) + 0.75) / (static_cast<double>(n) + 0.5));
            double slope = 0.0;
            for (int step = 0; step < kSteps; ++step)
                x -= value(x, slope) / slope;
            value(x, slope);
            at_[i] = 0.5 * (1.0 + x);
            rest_[i] = 0.5 * (1.0 - x);
            inverse_rest_[i] = 1.0 / rest_[i];
            weight_[i] = 1.0 / ((1.0 - x * x) * slope * slope);
        }
    }

    Quadrature view() const { return {n_, at_.data(), rest_.data(), inverse_rest_.data(), weight_.data()}; }

  private:
    static constexpr int kSteps = 8; // Newton's method has converged after about four

    // P_n(x) and its derivative, by Bonnet's recursion.
    double value(double x, double &slope) const {
        double before = 1.0, now = x;
        for (std::int64_t k = 2; k <= n_; ++k) {
            const auto m = static_cast<double>(k);
            const double next = ((2.0 * m - 1.0) * x * now - (m - 1.0) * before) / m;
            before = now;
            now = next;
        }
        slope = static_cast<double>(n_) * (before - x * now) / (1.0 - x * x);
        return now;
    }

    std::int64_t n_;
    std::vector<double> at_, rest_, inverse_rest_, weight_;
};

// The number of quadrature points for at most n columns on a path. (n + 1) / 2 points are exact. Fewer suffice for many
// columns: each factor is a + b x with |a| + |b| <= 1 on [-1, 1], so the integrand is a mean of monomials up to degree
// n, and Chebyshev polynomials of degree d approximate these to 2 exp(-d^2 / 2n) (Newman and Rivlin, 1976). The degree
// here makes that less than 1e-21.
std::int64_t n_quadrature_points(std::int64_t n) {
    constexpr double kDigits = 50.0; // exp(-50) = 2e-22
    const auto degree = static_cast<std::int64_t>(std::ceil(std::sqrt(2.0 * kDigits * static_cast<double>(n))));
    return std::max<std::int64_t>(1, (std::min(n - 1, degree) + 2) / 2);
}

// A tree in depth-first order.
struct Paths {
    std::vector<PathNode> nodes; // without the root
    std::int32_t depth = 0;
    std::int64_t n_columns = 0; // on the path that has most
};

// Lists the nodes of one tree after another; owns the scratch buffers.
class PathFinder {
  public:
    explicit PathFinder(const ExplainedTrees &trees)
        : trees_(trees), last_level_(static_cast<std::size_t>(trees.n_features())) {}

    void find(std::int64_t tree, Paths &paths) {
        const std::int64_t root = trees_.forest.starts[tree];
        paths.nodes.clear();
        paths.depth = 0;
        paths.n_columns = 0;
        path_.assign(1, {1.0, -1, 0, 0, 0, 0});
        n_columns_.assign(1, 0);
        push(root, 0);
        while (!waiting_.empty()) {
            const Edge edge = waiting_.back();
            waiting_.pop_back();
            while (std::ssize(path_) > edge.level)
                forget_last();
            const std::int32_t feature = trees_.feature[edge.parent], ancestor = last_level_[feature];
            const std::int32_t *n_points = trees_.forest.n_points;
            const double share = path_[ancestor].share * n_points[edge.node] / n_points[edge.parent];
            const std::int64_t left = trees_.forest.left[edge.node];
            path_.push_back({share, left < 0 ? ~left : -1, static_cast<std::int32_t>(edge.node - root), edge.level,
                             ancestor, feature});
            n_columns_.push_back(n_columns_.back() + (ancestor == 0));
            last_level_[feature] = edge.level;
            paths.nodes.push_back(path_.back());
            paths.depth = std::max(paths.depth, edge.level);
            paths.n_columns = std::max(paths.n_columns, n_columns_.back());
            push(edge.node, edge.level);
        }
        while (path_.size() > 1)
            forget_last();
    }

  private:
    struct Edge {
        std::int64_t parent, node;
        std::int32_t level;
    };

    void push(std::int64_t node, std::int32_t level) {
        const std::int64_t left = trees_.forest.left[node];
        if (left >= 0)
            for (const std::int64_t child : {left + 1, left})
                waiting_.push_back({node, child, level + 1});
    }

    void forget_last() {
        last_level_[path_.back().feature] = path_.back().ancestor;
        path_.pop_back();
        n_columns_.pop_back();
    }

    const ExplainedTrees &trees_;
    std::vector<std::int32_t> last_level_; // by feature: the level of its last node on the path, or 0
    std::vector<PathNode> path_;
    std::vector<std::int64_t> n_columns_; // on the path, by level
    std::vector<Edge> waiting_;
};

// The buffers of PathBuffers, grown as needed.
class Buffers {
  public:
    PathBuffers view(std::int64_t depth, std::int64_t n_points, std::int64_t n_outputs) {
        const auto levels = static_cast<std::size_t>(depth + 1), n = static_cast<std::size_t>(n_points);
        const auto lanes = static_cast<std::size_t>(kRowLanes);
        const std::size_t sums = levels * n * lanes * static_cast<std::size_t>(n_outputs);
        grow(doubles_, levels * n + levels * n * lanes + sums + levels);
        grow(is_open_, levels);
        grow(place_, levels);
        double *inverse = doubles_.data(), *product = inverse + levels * n, *sum = product + levels * n * lanes;
        return {inverse, product, sum, sum + sums, is_open_.data(), place_.data()};
    }

  private:
    template <class List> static void grow(List &list, std::size_t size) { list.resize(std::max(list.size(), size)); }

    std::vector<double> doubles_;
    std::vector<std::uint8_t> is_open_;
    std::vector<std::int64_t> place_;
};

// Explains tiles of rows; owns the scratch buffers of one thread.
template <class Rows> class Explainer {
  public:
    Explainer(const ExplainedTrees &trees, const Rows &rows, double *shapley)
        : trees_(trees), rows_(rows), shapley_(shapley), finder_(trees), tile_(trees.n_features()) {}

    void operator()(std::int64_t begin, std::int64_t end) {
        tile_.take(rows_, begin, end, trees_.ranks);
        const std::int64_t n_groups = (end - begin + kRowLanes - 1) / kRowLanes;
        values_.assign(static_cast<std::size_t>(n_groups * group_size()), 0.0);
        for (std::int64_t tree = 0; tree < trees_.n_trees(); ++tree) {
            finder_.find(tree, paths_);
            if (!paths_.nodes.empty())
                for (std::int64_t group = 0; group < n_groups; ++group)
                    explain(tree, group, end - begin);
        }
        write_out(begin, end);
    }

  private:
    std::int64_t group_size() const { return trees_.n_features() * trees_.forest.n_outputs * kRowLanes; }

    void explain(std::int64_t tree, std::int64_t group, std::int64_t n_rows) {
        find_sides(tree, group * kRowLanes, std::min(kRowLanes, n_rows - group * kRowLanes));
        const Quadrature quadrature = points(n_quadrature_points(paths_.n_columns));
        const std::int64_t per_output = (paths_.depth + 1) * quadrature.n * kRowLanes * std::int64_t{sizeof(double)};
        const std::int64_t n_together = std::clamp<std::int64_t>(kBufferBytes / per_output, 1, trees_.forest.n_outputs);
        for (std::int64_t first = 0; first < trees_.forest.n_outputs; first += n_together) {
            const std::int64_t n_outputs = std::min(n_together, trees_.forest.n_outputs - first);
            best_path_products().add_tree(paths_.nodes.data(), std::ssize(paths_.nodes), satisfied_.data(),
                                          trees_.forest.values + first, n_outputs, trees_.forest.n_outputs, quadrature,
                                          buffers_.view(paths_.depth, quadrature.n, n_outputs),
                                          values_.data() + group * group_size() + first * kRowLanes);
        }
    }

    //  satisfied[node] = a bit for each of the rows that its parent sends to it
    void find_sides(std::int64_t tree, std::int64_t first_row, std::int64_t n_rows) {
        const std::int64_t first = trees_.forest.starts[tree], n_nodes = trees_.forest.starts[tree + 1] - first;
        satisfied_.resize(static_cast<std::size_t>(n_nodes));
        for (std::int64_t k = 0; k < n_nodes; ++k) {
            const std::int64_t left = trees_.forest.left[first + k] - first;
            if (trees_.forest.left[first + k] < 0)
                continue;
            const double *row_values = tile_.of(trees_.feature[first + k]) + first_row;
            unsigned right = 0;
            for (std::int64_t r = 0; r < n_rows; ++r)
                right |= static_cast<unsigned>(trees_.goes_right(first + k, row_values[r])) << r;
            satisfied_[left] = static_cast<std::uint8_t>(~right);
            satisfied_[left + 1] = static_cast<std::uint8_t>(right);
        }
    }

    Quadrature points(std::int64_t n) {
        auto &found = quadratures_[n];
        if (!found)
            found = std::make_unique<GaussLegendre>(n);
        return found->view();
    }

    void write_out(std::int64_t begin, std::int64_t end) const {
        const std::int64_t width = trees_.n_features() * trees_.forest.n_outputs;
        for (std::int64_t r = begin; r < end; ++r) {
            const double *from = values_.data() + (r - begin) / kRowLanes * group_size() + (r - begin) % kRowLanes;
            for (std::int64_t k = 0; k < width; ++k)
                shapley_[r * width + k] += from[k * kRowLanes];
        }
    }

    const ExplainedTrees &trees_;
    const Rows &rows_;
    double *shapley_;
    PathFinder finder_;
    Paths paths_;
    TileValues tile_;
    Buffers buffers_;
    std::vector<std::uint8_t> satisfied_;                                // by node
    std::vector<double> values_;                                         // [group of rows][feature][output][lane]
    std::map<std::int64_t, std::unique_ptr<GaussLegendre>> quadratures_; // by the number of points
};

// Rows of a tile: as many as a tree is worth preparing for, but few enough for all threads and for memory.
std::int64_t tile_size(const ExplainedTrees &trees, std::int64_t n_rows, int threads) {
    const std::int64_t row_bytes = std::max<std::int64_t>(1, trees.n_features() * trees.forest.n_outputs) * 8;
    const std::int64_t most = std::min({kTile, n_rows / usable_threads(threads), kTileBytes / row_bytes});
    return std::max(most / kRowLanes, std::int64_t{1}) * kRowLanes;
}

} // namespace

template <class Rows>
void add_path_dependent(const ExplainedTrees &trees, const Rows &rows, double *shapley, int threads) {
    parallel_tiles(rows.n_rows, tile_size(trees, rows.n_rows, threads), threads,
                   [&] { return Explainer<Rows>(trees, rows, shapley); });
}

#define ISOKERN_INSTANTIATE(Rows) template void add_path_dependent(const ExplainedTrees &, const Rows &, double *, int);
ISOKERN_INSTANTIATE(DenseRows<float>)
ISOKERN_INSTANTIATE(DenseRows<double>)
ISOKERN_INSTANTIATE(CsrRows<float>)
ISOKERN_INSTANTIATE(CsrRows<double>)

} // namespace isokern
