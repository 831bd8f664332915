"""Measure tables with words and holes: straight from a frame, beside encoders, imputers and boosters.

python benchmarks/real_tables.py                             all sections on standard output
python benchmarks/real_tables.py --quick                     few rows and one seed, to try it out
python benchmarks/real_tables.py --only missing              one section: words, missing or levels
python benchmarks/real_tables.py --save docs/results/tables  also save the page (.md), numbers (.json) and figure (.png)
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import current_process, get_context
from pathlib import Path

import datasets
import numpy as np
import pandas as pd
from flat_memory import megabytes
from measuring import Page, circumstances, elapsed, environment, table_head, table_line, warn_if_busy
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from isokern import IKOGDClassifier, plotting

# churn has few rows, so its means need more splits.
FULL = {
    "splits": {"adult": 3, "churn": 20, "kddcup99": 3},
    "rows": 50_000,
    "missing_rows": 60_000,
    "seeds": 3,
    "blocks": 200,
}
QUICK = {"splits": dict.fromkeys(FULL["splits"], 1), "rows": 4000, "missing_rows": 3000, "seeds": 1, "blocks": 4}
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
TABLES = {"adult": "tables/adult", "churn": "tables/churn", "kddcup99": "streams/kddcup99_10"}
BLOCK, N_LEVELS = 10_000, 1_000_000
MOST_LEVELS = 255  # that HistGradientBoosting takes in a categorical column
FEWEST_ROWS = 5  # of a class, so that each part of a split and HistGradientBoosting's own one have some of them
NATIVE = "isokern, native"

WORDS = """\
`IKOGDClassifier()` learns from the frame as `read_csv` returns it, against itself behind scikit-learn's encoders, and
boosters at their defaults. One-hot: mean and most frequent value for missing ones, then
`OneHotEncoder(handle_unknown="ignore")`. Ordinal: `OrdinalEncoder`, then means. The boosters are given text columns as
pandas categories, with the levels of the training rows; a column of more than {most} levels, which
HistGradientBoosting refuses, is given to it as codes; this is not timed. kddcup99 is a random sample of {rows:,} rows,
without classes of fewer than {fewest} rows. Splits are stratified, 80 % for training. Values are means over {splits}
splits, with the standard deviation; each learner has the same splits. AUC is the mean of the one-vs-rest AUC of each
class. Seconds are those of fit and predict; the last column divides them by those of the first line."""
MISSING = """\
A share of all values, drawn at random, is removed from training and test rows. Imputed: `SimpleImputer()`, which takes
the mean, then the same learner. covertype (two classes) has {rows:,} training and {tested:,} test rows, letter is split
80 : 20. Values are mean accuracies over {n} seeds."""
LEVELS = """\
Blocks of {block:,} rows with a column of words drawn from {levels:,} and four numbers, learned by
`IKOGDClassifier(random_state=0).partial_fit` in a process of its own. The class is the sign of the product of two
numbers. Accuracy is that on the last block before it is learned. Seconds are those of all `partial_fit` so far. Memory
is that of the whole process, the generator with its list of all words included."""


# -- learners


def ours(seed):
    return IKOGDClassifier(random_state=seed)


def one_hot(X, seed):
    words = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    encoder = make_column_transformer((words, text_columns(X)), remainder=SimpleImputer())
    return make_pipeline(encoder, ours(seed))


def ordinal(X, seed):
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    encoder = make_column_transformer((codes, text_columns(X)), remainder="passthrough")
    return make_pipeline(encoder, SimpleImputer(), ours(seed))


def lightgbm(seed):
    from lightgbm import LGBMClassifier

    return LGBMClassifier(random_state=seed, verbose=-1)


def boosting(seed):
    return HistGradientBoostingClassifier(random_state=seed)


def text_columns(frame):
    return [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]


def with_categories(train, test, most=np.inf):
    """Return both frames with text columns as categories of the training rows, or as codes if there are too many."""
    train, test = train.copy(), test.copy()
    for name in text_columns(train):
        levels = train[name].dropna().unique()
        for part in (train, test):
            codes = pd.Index(levels).get_indexer(part[name])  # -1 for others
            few = len(levels) <= most
            part[name] = pd.Categorical.from_codes(codes, levels) if few else np.where(codes < 0, np.nan, codes)
    return train, test


# -- measuring


def evaluate(learner, X, y, X_test, y_test):
    """Return accuracy, AUC and seconds of fit and predict."""
    started = time.perf_counter()
    predicted = learner.fit(X, y).predict(X_test)
    seconds = time.perf_counter() - started
    found = {"accuracy": float(np.mean(predicted == y_test)), "seconds": seconds}
    return found | {"auc": macro_auc(y_test, learner.predict_proba(X_test), learner.classes_)}


def macro_auc(y, probabilities, classes):
    """Return the mean one-vs-rest AUC of the classes that some but not all rows have; of two classes, the second's."""
    each = [
        roc_auc_score(y == label, column)
        for label, column in zip(classes, probabilities.T, strict=True)
        if 0 < np.sum(y == label) < len(y)
    ]
    return float(each[-1] if len(classes) == 2 else np.mean(each))


# -- words


def read_table(name, n_rows):
    """Return the feature columns as a frame and the labels of a table, a sample of n_rows if it has more."""
    frame = pd.read_csv(datasets.FOLDER.parent / f"{TABLES[name]}.csv.xz")
    frame = frame.sample(min(n_rows, len(frame)), random_state=0)
    label = frame.columns[-1]
    frame = frame[frame.groupby(label)[label].transform("size") >= FEWEST_ROWS]
    return frame.drop(columns=label), frame[label].to_numpy(dtype=str)


def word_learners(X, X_test, seed):
    """Yield the name of each learner, the learner, and the training and test rows as it takes them."""
    import polars as pl

    yield NATIVE, ours(seed), X, X_test
    yield "the same from polars", ours(seed), pl.from_pandas(X), pl.from_pandas(X_test)
    yield "isokern, one-hot", one_hot(X, seed), X, X_test
    yield "isokern, ordinal", ordinal(X, seed), X, X_test
    yield "LightGBM", lightgbm(seed), *with_categories(X, X_test)
    yield "HistGradientBoosting", boosting(seed), *with_categories(X, X_test, MOST_LEVELS)


def measure_words(plan, page):
    """Return a row for each table and learner."""
    splits = ", ".join(f"{number} ({name})" for name, number in plan["splits"].items())
    about = WORDS.format(rows=plan["rows"], splits=splits, most=MOST_LEVELS, fewest=FEWEST_ROWS)
    page.add(f"\n## Words\n\n{about}\n")
    page.add(table_head("table", "learner", "accuracy", "AUC", "seconds", "times native"))
    rows = []
    for name in TABLES:
        X, y = read_table(name, plan["rows"])
        runs = {}
        for seed in range(plan["splits"][name]):
            train, test, y_train, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=seed)
            for learner, model, X_train, X_test in word_learners(train, test, seed):
                runs.setdefault(learner, []).append(evaluate(model, X_train, y_train, X_test, y_test))
        for learner, found in runs.items():
            rows.append({"table": name, "learner": learner, "runs": found})
            page.add(word_line(rows[-1], runs[NATIVE]))
    return rows


def word_line(row, native):
    """Return a row as Markdown, with its seconds in multiples of those of the native runs."""
    accuracy, auc, seconds = (np.array([run[key] for run in row["runs"]]) for key in ("accuracy", "auc", "seconds"))
    times = seconds.sum() / sum(run["seconds"] for run in native)
    values = [f"{found.mean():.4f} ± {found.std():.4f}" for found in (accuracy, auc)]
    return table_line(row["table"], row["learner"], *values, f"{seconds.mean():.2f}", f"{times:.2f}")


# -- missing values


def numeric_table(name, plan, seed):
    """Return X_train, X_test, y_train, y_test of a table of numbers."""
    n = plan["missing_rows"]
    if name == "letter":
        table = pd.read_csv(datasets.FOLDER.parent / "tables/letter.csv.xz", index_col=0).to_numpy()[: n // 3]
        return train_test_split(table[:, :-1], table[:, -1].astype(int), test_size=0.2, random_state=seed)
    X, y, X_test, y_test = datasets.load("covertype")
    some = np.random.default_rng(seed).permutation(len(y))[:n]
    return X[some], X_test[: n // 3], y[some], y_test[: n // 3]


def remove_values(X, share, rng):
    """Return a copy of X in which a share of the values, drawn at random, is missing."""
    return np.where(rng.random(X.shape) < share, np.nan, X)


def missing_learners(seed):
    imputed = make_pipeline(SimpleImputer(), ours(seed))
    return {
        NATIVE: ours(seed),
        "isokern, imputed": imputed,
        "LightGBM": lightgbm(seed),
        "HistGradientBoosting": boosting(seed),
    }


def measure_missing(plan, page):
    """Return a row for each table and learner, with the mean accuracy at each share of missing values."""
    about = MISSING.format(rows=plan["missing_rows"], tested=plan["missing_rows"] // 3, n=plan["seeds"])
    page.add(f"\n## Missing values\n\n{about}\n")
    page.add(table_head("table", "learner", *(f"{share:.0%}" for share in SHARES)))
    rows = []
    for name in ("covertype", "letter"):
        found = {}
        for seed in range(plan["seeds"]):
            X, X_test, y, y_test = numeric_table(name, plan, seed)
            for share in SHARES:
                rng = np.random.default_rng(seed)
                train, test = remove_values(X, share, rng), remove_values(X_test, share, rng)
                for learner, model in missing_learners(seed).items():
                    accuracy = float(np.mean(model.fit(train, y).predict(test) == y_test))
                    found.setdefault(learner, {}).setdefault(share, []).append(accuracy)
        for learner, by_share in found.items():
            points = [(share, float(np.mean(values))) for share, values in by_share.items()]
            rows.append({"table": name, "learner": learner, "points": points})
            page.add(table_line(name, learner, *(f"{accuracy:.4f}" for _, accuracy in points)))
    return rows


def draw(rows, path):
    """Draw the accuracy against the share of missing values, a panel for each table."""
    tables = list(dict.fromkeys(row["table"] for row in rows))
    figure, panels = plotting.new_figure(len(tables))
    for panel, name in zip(panels, tables, strict=True):
        for row in rows:
            if row["table"] == name:
                panel.plot(*zip(*row["points"], strict=True), marker="o", label=row["learner"])
        panel.set(title=name, xlabel="share of values missing", ylabel="accuracy")
        plotting.plain(panel)
    plotting.shared_legend(figure, panels)
    figure.savefig(path, dpi=100)


# -- levels


def learn_levels(n_blocks):
    """Return what is measured along a stream: rows, words met, accuracy on a block before it is learned, memory."""
    rng, model, process = np.random.default_rng(0), ours(0), current_process()
    words = np.array([f"user-{number}" for number in range(N_LEVELS)], dtype=object)
    met, rows, seconds = np.zeros(N_LEVELS, dtype=bool), [], 0.0
    for k in range(1, n_blocks + 1):
        numbers, drawn = rng.normal(size=(BLOCK, 4)), rng.integers(N_LEVELS, size=BLOCK)
        X, y = pd.DataFrame(numbers).add_prefix("number").assign(word=words[drawn]), numbers[:, 0] * numbers[:, 1] > 0
        met[drawn] = True
        accuracy = float(np.mean(model.predict(X) == y)) if k > 1 else None
        seconds += elapsed(partial(model.partial_fit, X, y))
        if k == 2 or k % max(2, n_blocks // 10) == 0:
            row = {"rows": k * BLOCK, "met": int(met.sum()), "accuracy": accuracy, "seconds": seconds}
            rows.append(row | {"megabytes": megabytes(process, "VmRSS")})
    return rows


def measure_levels(plan, page):
    """Return the measurements along the stream; a new process has no freed memory to reuse."""
    page.add("\n## A category with a million levels\n\n" + LEVELS.format(block=BLOCK, levels=N_LEVELS) + "\n")
    page.add(table_head("rows", "words met", "accuracy on the block", "seconds", "resident MB"))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        rows = process.submit(learn_levels, plan["blocks"]).result()
    for row in rows:
        values = f"{row['rows']:,}", f"{row['met']:,}", f"{row['accuracy']:.4f}", f"{row['seconds']:.1f}"
        page.add(table_line(*values, round(row["megabytes"])))
    return rows


# -- main


SECTIONS = {"words": measure_words, "missing": measure_missing, "levels": measure_levels}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=SECTIONS)
    parser.add_argument("--save", metavar="STEM")
    options = parser.parse_args()
    plan, record, page = QUICK if options.quick else FULL, environment(), Page()
    warn_if_busy(record)

    page.add("# Tables with words and missing values\n\nisokern on raw tables, beside encoders, imputers and boosters:")
    page.add(f"`python benchmarks/real_tables.py{' --quick' if options.quick else ''}`. {circumstances(record)}")
    for name, measure in SECTIONS.items():
        if options.only in (None, name):
            record[name] = measure(plan, page)
    if options.save:
        if "missing" in record:
            draw(record["missing"], f"{options.save}.png")
            page.add(f"\n![Accuracy against missing values]({Path(options.save).name}.png)")
        page.save(options.save, record)


if __name__ == "__main__":
    main()
