// Interventional Shapley values: one walk of a tree for each pair of a row and a background row.
//
// In: trees with leaf values, rows, background rows. Out: Shapley values.
//
// A hybrid of row x and background row z reaches a leaf if each column on the path satisfies its splits in x or in z,
// whichever the hybrid takes it from. Let a columns satisfy them in x only, and b in z only. Then (Lundberg et al.,
// 2020) the leaf's value w adds
//
//  w (a - 1)! b! / (a + b)! to each of the a columns,   -w a! (b - 1)! / (a + b)! to each of the b columns.
//
// The walk branches only at splits that part x from z, and only at the first such split of a column, which decides from
// where hybrids below it take the column. It carries W(a, b) = a! b! / (a + b + 1)! along, and hands the sums over
// leaves of both terms up to the branches. So its cost is the number of nodes that hybrids reach.
#include "inspection/shapley.hpp"

#include "common/threads.hpp"

namespace isokern {
namespace {

// Explains rows one by one; owns the scratch buffers of one thread.
template <class Rows> class Explainer {
  public:
    Explainer(const ExplainedTrees &trees, const Rows &rows, const TileValues &background, double *shapley)
        : trees_(trees), rows_(rows), background_(background), shapley_(shapley), tile_(trees.n_features()),
          from_(static_cast<std::size_t>(trees.n_features()), Source::both),
          values_(static_cast<std::size_t>(trees.n_features() * trees.forest.n_outputs)) {}

    void operator()(std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
            tile_.take(rows_, r, r + 1, trees_.ranks);
            std::fill(values_.begin(), values_.end(), 0.0);
            for (std::int64_t tree = 0; tree < trees_.n_trees(); ++tree)
                for (std::int64_t z = 0; z < background_.n_rows(); ++z)
                    walk(tree, z);
            for (std::size_t k = 0; k < values_.size(); ++k)
                shapley_[static_cast<std::size_t>(r) * values_.size() + k] +=
                    values_[k] / static_cast<double>(background_.n_rows());
        }
    }

  private:
    enum class Source : std::uint8_t { both, row, background }; // where hybrids take a column from

    // W(a, b) of a place in the tree.
    struct Weight {
        double a = 0.0, b = 0.0, w = 1.0;

        Weight from_row() const { return {a + 1.0, b, w * (a + 1.0) / (a + b + 2.0)}; }
        Weight from_background() const { return {a, b + 1.0, w * (b + 1.0) / (a + b + 2.0)}; }
        double positive() const { return a > 0.0 ? w * (a + b + 1.0) / a : 0.0; } // W(a - 1, b)
        double negative() const { return b > 0.0 ? w * (a + b + 1.0) / b : 0.0; } // W(a, b - 1)
    };

    // A split that parts the two rows; the row's side is walked first.
    struct Branch {
        std::int32_t feature;
        std::int64_t background_child;
        Weight weight;
    };

    void walk(std::int64_t tree, std::int64_t z) {
        std::int64_t node = trees_.forest.starts[tree];
        Weight weight;
        results_.clear();
        while (true) {
            descend(node, weight, z);
            add_leaf(trees_.leaf(trees_.forest.left[node]), weight);
            while (!branches_.empty() && from_[branches_.back().feature] == Source::background)
                finish_branch();
            if (branches_.empty())
                return;
            const Branch &branch = branches_.back();
            from_[branch.feature] = Source::background;
            node = branch.background_child;
            weight = branch.weight.from_background();
        }
    }

    // Goes down to a leaf; on the row's side of the branches that it opens.
    void descend(std::int64_t &node, Weight &weight, std::int64_t z) {
        while (trees_.forest.left[node] >= 0) {
            const std::int32_t feature = trees_.feature[node];
            const std::int64_t left = trees_.forest.left[node];
            const Source from = from_[feature];
            const bool of_row = from != Source::background && trees_.goes_right(node, tile_.of(feature)[0]);
            const bool of_background = from != Source::row && trees_.goes_right(node, background_.of(feature)[z]);
            if (from == Source::both && of_row != of_background) {
                branches_.push_back({feature, left + of_background, weight});
                from_[feature] = Source::row;
                weight = weight.from_row();
            }
            node = left + (from == Source::background ? of_background : of_row);
        }
    }

    // A leaf is the smallest finished subtree.
    void add_leaf(const double *leaf, const Weight &weight) {
        const double positive = weight.positive(), negative = weight.negative();
        for (std::int64_t c = 0; c < trees_.forest.n_outputs; ++c) {
            results_.push_back(positive * leaf[c]);
            results_.push_back(negative * leaf[c]);
        }
    }

    //  value of its column += positive sum of the row's side - negative sum of the background's
    void finish_branch() {
        const std::int32_t feature = branches_.back().feature;
        const auto width = static_cast<std::size_t>(2 * trees_.forest.n_outputs);
        double *of_background = results_.data() + results_.size() - width, *of_row = of_background - width;
        double *value = values_.data() + feature * trees_.forest.n_outputs;
        for (std::size_t k = 0; k < width; k += 2) {
            value[k / 2] += of_row[k] - of_background[k + 1];
            of_row[k] += of_background[k];
            of_row[k + 1] += of_background[k + 1];
        }
        results_.resize(results_.size() - width);
        from_[feature] = Source::both;
        branches_.pop_back();
    }

    const ExplainedTrees &trees_;
    const Rows &rows_;
    const TileValues &background_;
    double *shapley_;
    TileValues tile_;
    std::vector<Source> from_; // by feature
    std::vector<Branch> branches_;
    std::vector<double> values_;  // [feature][output]
    std::vector<double> results_; // sums of finished subtrees: [subtree][output][positive, negative]
};

} // namespace

template <class Rows>
void add_interventional(const ExplainedTrees &trees, const Rows &rows, const TileValues &background, double *shapley,
                        int threads) {
    parallel_tiles(rows.n_rows, 1, threads, [&] { return Explainer<Rows>(trees, rows, background, shapley); });
}

template <class Rows> void sum_leaves(const ExplainedTrees &trees, const Rows &rows, double *scores, int threads) {
    parallel_tiles(rows.n_rows, 1, threads, [&] {
        return [&, tile = TileValues(trees.n_features())](std::int64_t r, std::int64_t) mutable {
            const LeafForest &forest = trees.forest;
            double *own = scores + r * forest.n_outputs;
            std::fill_n(own, forest.n_outputs, 0.0);
            tile.take(rows, r, r + 1, trees.ranks);
            for (std::int64_t tree = 0; tree < trees.n_trees(); ++tree) {
                std::int64_t node = forest.starts[tree];
                while (forest.left[node] >= 0)
                    node = forest.left[node] + trees.goes_right(node, tile.of(trees.feature[node])[0]);
                for (std::int64_t c = 0; c < forest.n_outputs; ++c)
                    own[c] += trees.leaf(forest.left[node])[c];
            }
        };
    });
}

#define ISOKERN_INSTANTIATE(Rows)                                                                                      \
    template void sum_leaves(const ExplainedTrees &, const Rows &, double *, int);                                     \
    template void add_interventional(const ExplainedTrees &, const Rows &, const TileValues &, double *, int);
ISOKERN_INSTANTIATE(DenseRows<float>)
ISOKERN_INSTANTIATE(DenseRows<double>)
ISOKERN_INSTANTIATE(CsrRows<float>)
ISOKERN_INSTANTIATE(CsrRows<double>)

} // namespace isokern
