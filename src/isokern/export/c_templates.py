"""Hold the C functions of an exported model: ``@`` stands for the prefix of names, ``$name`` for a number or a part."""

HEAD = """\
$first $version: $kind of $n_columns columns.

   Compile as C99, for example with cc -std=c99 -O2 -ffp-contract=off, and with -lm if there are probabilities. Never
   use -ffast-math: it breaks missing values and the order of sums. The constant tables take $n_bytes bytes; nothing
   is allocated, and all functions may be called by many threads at once.

   A row is an array of $n_columns doubles; NAN is a missing value.$columns */
#include <math.h>
#include <stdint.h>

/* Declarations, for a header. */
${category_prototype}$prototypes

$categories"""

# See cpp/trees/splits.hpp.
CATEGORIES = """\
static uint64_t @_mix(uint64_t hash) {
    hash = (hash ^ (hash >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    hash = (hash ^ (hash >> 27)) * UINT64_C(0x94D049BB133111EB);
    return hash ^ (hash >> 31);
}

/* The number of a category, given by its name in UTF-8: digits for whole numbers, true and false for truth values. */
double @_category(const char *name) {
    const uint64_t step = UINT64_C(0x9E3779B97F4A7C15);
    uint64_t hash, size = 0, begin;
    uint32_t code;
    while (name[size])
        ++size;
    hash = size * step;
    for (begin = 0; begin < size; begin += 8) {
        uint64_t word = 0, k;
        for (k = size < begin + 8 ? size : begin + 8; k-- > begin;)
            word = word << 8 | (unsigned char)name[k];
        hash = @_mix(hash ^ word) + step;
    }
    code = (uint32_t)(@_mix(hash) >> 32);
    return code > 1 ? code : 1;
}

static uint32_t @_code(double value) {
    return value > 0 && value < 4294967296.0 ? (uint32_t)value : 0;
}

"""

NODE = """\
/* A row goes to node left, or to left + 1; a leaf has -1 - its number instead. column: twice the column, plus 1 if
   missing values go to left + 1. */
struct @_node {
    double threshold;
    int32_t left, column;
};

"""

GOES_RIGHT = """
static int32_t @_goes_right(const struct @_node *node, const double *row) {
    const double value = row[node->column >> 1];
    return value != value ? node->column & 1 : !(value < node->threshold);
}
"""

CATEGORY_GOES_RIGHT = """
static int32_t @_goes_right(const struct @_node *node, const double *row) {
    static const uint32_t factors[3] = {0x9E3779B1u, 0xB5D1E46Bu, 0xD6E8FEB9u};
    const double value = row[node->column >> 1];
    uint32_t hash;
    int k;
    if (!@_is_categorical[node->column >> 1])
        return value != value ? node->column & 1 : !(value < node->threshold);
    hash = @_code(value) ^ (uint32_t)node->threshold;
    for (k = 0; k < 3; ++k) {
        hash *= factors[k];
        hash ^= hash >> 15;
    }
    return hash & 1;
}
"""

LEAF = """
static int32_t @_leaf(const double *row, int32_t tree) {
    int32_t node = @_roots[tree];
    while (@_nodes[node].left >= 0)
        node = @_nodes[node].left + @_goes_right(&@_nodes[node], row);
    return -1 - @_nodes[node].left;
}

"""

APPLY = """
/* The cells of a row: tree by tree, and for each from the coarsest scale to the finest. */
void @_apply(const double *row, int32_t *cells) {
    int32_t tree, scale;
    for (tree = 0; tree < $n_trees; ++tree) {
        const int32_t leaf = @_leaf(row, tree);
        for (scale = 0; scale < $n_scales; ++scale)
            *cells++ = @_cells[leaf][scale];
    }
}
"""

# The order of sums is that of isokern.forest.
TREES = """\
    double parts[$n_parts][$n_scores] = {{0}};
    int32_t tree, k;
    for (tree = 0; tree < $n_trees; ++tree) {
        const double *values = @_values[@_leaf(row, tree)];
        for (k = 0; k < $n_scores; ++k)
            parts[tree % $n_parts][k] += values[k];
    }
    for (k = 0; k < $n_scores; ++k)
        scores[k] = ((parts[0][k] + parts[1][k]) + (parts[2][k] + parts[3][k])) * $multiplier / $divisor;
"""

NO_TREES = """\
    int32_t k;
    for (k = 0; k < $n_scores; ++k)
        scores[k] = 0;
"""

SCORES = """
void @_scores(const double *row, double *scores) {
$start$linear    for (k = 0; k < $n_scores; ++k)
        scores[k] += @_intercept[k];
}

"""

LINEAR = """
/* Adds the weight of one feature, which is number i of the row. */
static void @_add_feature(float feature, const float *weights, int32_t i, double parts[$n_parts][$n_scores]) {
    int32_t k;
    for (k = 0; k < $n_scores; ++k)
        parts[i % $n_parts][k] += (double)feature * (double)weights[k];
}

static float @_feature(double value, int32_t column) {
    double scaled = (value - @_offset[column]) * @_factor[column];
    scaled = scaled > $limit ? $limit : scaled < -$limit ? -$limit : scaled;
    return scaled == scaled ? (float)scaled : 0; /* missing values count as the mean */
}

static void @_add_linear(const double *row, double *scores) {
    double parts[$n_parts][$n_scores] = {{0}};
    int32_t k;
    for (k = 0; k < $n_columns; ++k)
        @_add_feature(@_feature(row[k], k), @_weights[k], k, parts);
$categories    @_add_feature($constant, @_weights[$last], $place, parts);
    for (k = 0; k < $n_scores; ++k)
        scores[k] += (parts[0][k] + parts[1][k]) + (parts[2][k] + parts[3][k]);
}

"""

LINEAR_CATEGORIES = """\
    for (k = 0; k < $n_categorical; ++k) {
        const double value = row[@_categorical[k]];
        const uint64_t hash = @_code(value) * UINT64_C(0x9E3779B97F4A7C15) >> 32;
        const float feature = value == value ? $constant : 0;
        const int32_t place = $n_columns + k * $n_buckets + (int32_t)(hash % $n_buckets);
        @_add_feature(feature, @_weights[place], $n_columns + k, parts);
    }
"""

PREDICT_TWO = """
int @_predict(const double *row) {
    double score;
    @_scores(row, &score);
    return score > 0;
}
"""

PREDICT_MORE = """
int @_predict(const double *row) {
    double scores[$n_scores];
    int k, best = 0;
    @_scores(row, scores);
    for (k = 1; k < $n_scores; ++k)
        if (scores[k] > scores[best])
            best = k;
    return best;
}
"""

LOGITS_TWO = """\
    @_scores(row, probabilities + 1);
    probabilities[0] = 0;
    probabilities[1] *= $factor;
"""

LOGITS_MORE = {
    "softmax": """\
    @_scores(row, probabilities);
    for (k = 0; k < $n_classes; ++k)
        probabilities[k] *= $factor;
""",
    "sigmoid": """\
    @_scores(row, probabilities);
    for (k = 0; k < $n_classes; ++k) /* the logarithm of the sigmoid */
        probabilities[k] = (probabilities[k] < 0 ? probabilities[k] : 0) - log1p(exp(-fabs(probabilities[k])));
""",
}

PROBABILITIES = """
void @_probabilities(const double *row, double *probabilities) {
    double largest, sum = 0;
    int k;
$logits    largest = probabilities[0];
    for (k = 1; k < $n_classes; ++k)
        largest = probabilities[k] > largest ? probabilities[k] : largest;
    for (k = 0; k < $n_classes; ++k)
        sum += probabilities[k] = exp(probabilities[k] - largest);
    for (k = 0; k < $n_classes; ++k)
        probabilities[k] /= sum;
}
"""

PREDICT_NUMBERS = """
void @_predict(const double *row, double *predictions) {
    @_scores(row, predictions);
}
"""

PREDICT_QUANTILES = """
/* Quantiles are sorted, so that they never cross. */
void @_predict(const double *row, double *predictions) {
    int k, i;
    @_scores(row, predictions);
    for (k = 1; k < $n_scores; ++k)
        for (i = k; i > 0 && predictions[i] < predictions[i - 1]; --i) {
            const double larger = predictions[i - 1];
            predictions[i - 1] = predictions[i];
            predictions[i] = larger;
        }
}
"""
