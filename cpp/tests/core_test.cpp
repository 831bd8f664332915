// Compares the core's results with those of other platforms: the same seed must give the same bytes everywhere.
//
// In: the path of golden.txt, lines of a name and a hash. Out: the names whose hashes differ, and exit code 1 if there
// are any; without an argument, all lines. Samples, trees, cells, scores, distances and text are computed from tables
// that are made of integers, so that no library takes part in them. The tables make every path of the maps run: dense
// and sparse rows, many and few, small integers, ties, duplicates, missing values, categories and large offsets.
#include <algorithm>
#include <bit>
#include <concepts>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "common/random.hpp"
#include "common/sampling.hpp"
#include "online/primal.hpp"
#include "rivals/similarities.hpp"
#include "simd/cpu.hpp"
#include "text/libsvm.hpp"
#include "trees/tree_map.hpp"
#include "voronoi/voronoi_map.hpp"

namespace isokern {
namespace {

constexpr std::int64_t kRows = 1200, kPartitionings = 24, kCells = 128;
constexpr std::uint64_t kSeed = 7;
constexpr int kThreads = 3;

using Results = std::map<std::string, std::uint64_t>;

std::uint64_t bits_of(double value) { return std::bit_cast<std::uint64_t>(value); }
std::uint64_t bits_of(std::integral auto value) { return static_cast<std::uint64_t>(value); }

// Mixes the bits of one value after another into a hash.
std::uint64_t hash_of(const auto &values) {
    std::uint64_t hash = 0;
    for (const auto value : values)
        hash = mix((hash ^ bits_of(value)) + kStep);
    return hash;
}

// -- tables

// The k-th random integer of `bits` bits.
double integer(std::int64_t k, int bits) {
    return static_cast<double>(mix(static_cast<std::uint64_t>(k)) >> (64 - bits));
}

// kRows rows: fractions, the third column far from zero, the fourth with few values; every tenth row is that before it.
template <class Value> std::vector<Value> fractions(std::int64_t n_columns) {
    std::vector<Value> table;
    for (std::int64_t r = 0; r < kRows; ++r)
        for (std::int64_t j = 0; j < n_columns; ++j) {
            const std::int64_t k = (r % 10 == 9 ? r - 1 : r) * n_columns + j;
            table.push_back(
                static_cast<Value>(j == 3 ? integer(k, 2) : integer(k, 20) * 0x1p-20 + (j == 2 ? 0x1p20 : 0)));
        }
    return table;
}

// The same with missing values and, in columns 0 and 1, categories.
std::vector<double> mixed(std::int64_t n_columns) {
    std::vector<double> table = fractions<double>(n_columns);
    for (std::int64_t k = 0; k < std::ssize(table); ++k) {
        if (k % n_columns < 2)
            table[k] = 1 + integer(k, 5);
        if (k % 7 == 3)
            table[k] = std::numeric_limits<double>::quiet_NaN();
    }
    return table;
}

std::vector<double> pixels(std::int64_t n_columns) {
    std::vector<double> table;
    for (std::int64_t k = 0; k < kRows * n_columns; ++k)
        table.push_back(integer(k, 4));
    return table;
}

// Rows of up to twelve small integers in many columns, with empty rows.
struct Words {
    std::vector<double> values;
    std::vector<std::int32_t> columns;
    std::vector<std::int64_t> starts{0};

    explicit Words(std::int64_t n_columns) {
        for (std::int64_t r = 0; r < kRows; ++r) {
            std::vector<std::int32_t> row;
            for (std::int64_t k = 12 * r; k < 12 * r + r % 13; ++k) // squared, so that some columns are frequent
                row.push_back(static_cast<std::int32_t>(integer(k, 16) * integer(k, 16) * 0x1p-32 * n_columns));
            std::ranges::sort(row);
            row.erase(std::unique(row.begin(), row.end()), row.end());
            for (const std::int32_t column : row) {
                columns.push_back(column);
                values.push_back(1 + integer(column + r, 2));
            }
            starts.push_back(std::ssize(columns));
        }
    }
    CsrRows<double> rows(std::int64_t n_columns) const {
        return {values.data(), columns.data(), starts.data(), kRows, n_columns};
    }
};

// -- what is compared

std::vector<std::int64_t> samples() {
    std::vector<std::int64_t> found(kPartitionings * kCells);
    draw_samples(kRows, kPartitionings, kCells, kSeed, found.data());
    return found;
}

template <class Rows>
std::vector<std::uint16_t> tree_cells(Results &results, const std::string &name, const Rows &rows,
                                      const std::vector<std::int32_t> &categorical = {}) {
    const Forest forest = grow_trees(rows, samples().data(), kPartitionings, kCells, nullptr,
                                     {.seed = kSeed, .categorical = categorical, .threads = kThreads});
    results[name + "-splits"] = hash_of(forest.split);
    results[name + "-children"] = hash_of(forest.left);
    const TreeMap map(forest.split.data(), forest.column.data(), forest.left.data(), forest.missing_right.data(),
                      forest.n_points.data(), forest.starts, categorical, rows.n_columns, kCells);
    std::vector<std::uint16_t> cells(kRows * kPartitionings);
    map.apply(rows, cells.data(), kThreads);
    results[name + "-cells"] = hash_of(cells);
    // Fewer rows take other paths through the same trees.
    std::vector<std::uint16_t> few(cells.size());
    for (std::int64_t r = 0; r < kRows; r += 100) {
        Rows some = rows;
        some.n_rows = 100;
        if constexpr (requires { some.starts; })
            some.starts += r;
        else
            some.values += r * rows.n_columns;
        map.apply(some, few.data() + r * kPartitionings, 1);
    }
    results[name + "-cells-of-few-rows"] = hash_of(few);
    return cells;
}

void voronoi_cells(Results &results, const std::string &name, const AnyRows &rows) {
    const std::vector<std::int64_t> drawn = samples();
    const std::vector<std::int32_t> numbers(drawn.begin(), drawn.end());
    for (const std::vector<std::int64_t> &sizes : {std::vector{kCells}, std::vector<std::int64_t>{16, kCells}}) {
        const VoronoiMap map(rows, numbers, kPartitionings, sizes, [] { return std::vector<double>(); });
        std::vector<std::vector<std::uint16_t>> cells(sizes.size());
        std::vector<CellsOut> out;
        for (auto &of_size : cells) {
            of_size.resize(kRows * kPartitionings);
            out.emplace_back(of_size.data());
        }
        map.apply(rows, out, kThreads);
        for (std::size_t k = 0; k < sizes.size(); ++k)
            results[name + "-" + std::to_string(sizes[k]) + "-of-" + std::to_string(sizes.size())] = hash_of(cells[k]);
    }
}

// Scores before each step, of three classes that the first column tells.
void online_scores(Results &results, const std::vector<std::uint16_t> &cells, const std::vector<double> &table) {
    constexpr std::int64_t kClasses = 3;
    std::vector<std::int32_t> classes;
    for (std::int64_t r = 0; r < kRows; ++r)
        classes.push_back(static_cast<std::int32_t>(kClasses * table[r * std::ssize(table) / kRows]));
    std::vector<std::int64_t> starts;
    for (std::int64_t i = 0; i <= kPartitionings; ++i)
        starts.push_back(i * kCells);
    for (const Schedule schedule : {Schedule::constant, Schedule::decaying, Schedule::adagrad}) {
        std::vector<double> weights(kPartitionings * kCells * kClasses), sums(weights), squares(weights);
        std::vector<double> scores(kRows * kClasses);
        Clock clock;
        learn_primal(CellRows<std::uint16_t>{cells.data(), kRows, kPartitionings, starts.data()},
                     ClassTarget{classes.data()}, nullptr, Hinge{}, Step{schedule, 0.5, 1e-3, {0, 0, 0}}, false,
                     Weights{weights.data(), sums.data(), squares.data(), kClasses}, clock, scores.data());
        results["scores-" + std::to_string(static_cast<int>(schedule))] = hash_of(scores);
    }
}

void similarities(Results &results) {
    const std::vector<double> panel = fractions<double>(kLane);
    for (const Measure measure : {Measure::l1, Measure::squared_l2, Measure::chi_squared}) {
        std::vector<double> sums(kLane);
        best_similarities().dense_sums(measure, panel.data() + kLane * 100, 50, panel.data(), sums.data());
        best_similarities().decay(0x1p-24, sums.data(), kLane);
        results["similarities-" + std::to_string(static_cast<int>(measure))] = hash_of(sums);
    }
}

void text(Results &results, const Words &words) {
    std::vector<double> labels;
    for (std::int64_t r = 0; r < kRows; ++r)
        labels.push_back(integer(r, 53) * (r % 2 ? 1e-30 : -1e-8));
    const std::string written =
        write_libsvm(labels.data(), words.values.data(), words.columns.data(), words.starts.data(), kRows, 1);
    results["text"] = hash_of(written);
    results["text-read"] = hash_of(read_libsvm(written, {}, kThreads).labels);
}

Results compute() {
    Results results{{"samples", hash_of(samples())}};
    constexpr std::int64_t kFew = 8, kMany = 5000, kPixels = 64;
    const auto doubles = fractions<double>(kFew), with_gaps = mixed(kFew), grid = pixels(kPixels);
    const auto floats = fractions<float>(kFew);
    const Words words(kMany);
    const auto cells = tree_cells(results, "trees-double", DenseRows<double>{doubles.data(), kRows, kFew});
    tree_cells(results, "trees-float", DenseRows<float>{floats.data(), kRows, kFew});
    tree_cells(results, "trees-mixed", DenseRows<double>{with_gaps.data(), kRows, kFew}, {0, 1});
    tree_cells(results, "trees-words", words.rows(kMany));
    voronoi_cells(results, "voronoi-double", DenseRows<double>{doubles.data(), kRows, kFew});
    voronoi_cells(results, "voronoi-float", DenseRows<float>{floats.data(), kRows, kFew});
    voronoi_cells(results, "voronoi-pixels", DenseRows<double>{grid.data(), kRows, kPixels});
    voronoi_cells(results, "voronoi-words", words.rows(kMany));
    online_scores(results, cells, doubles);
    similarities(results);
    text(results, words);
    return results;
}

Results read(const char *path) {
    std::ifstream file(path);
    Results results;
    std::string name;
    for (std::uint64_t hash; file >> name >> std::hex >> hash;)
        results[name] = hash;
    return results;
}

// Prints what differs from the golden results, which must be as many; returns how many differ.
int n_differences(const Results &results, const Results &golden) {
    int n = results.size() != golden.size();
    for (const auto &[name, hash] : results)
        if (!golden.contains(name) || golden.at(name) != hash) {
            std::cout << name << " differs\n";
            ++n;
        }
    std::cout << name_of(instruction_set()) << ": " << results.size() << " results, " << n << " differ\n";
    return n;
}

} // namespace
} // namespace isokern

int main(int n_arguments, char **arguments) {
    const isokern::Results results = isokern::compute();
    if (n_arguments > 1)
        return isokern::n_differences(results, isokern::read(arguments[1])) > 0;
    for (const auto &[name, hash] : results)
        std::cout << name << " " << std::hex << hash << "\n";
}
