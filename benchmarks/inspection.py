"""Measure explanations and the search for similar rows beside other libraries, in one run.

python benchmarks/inspection.py                                   all sizes on standard output
python benchmarks/inspection.py --quick                           small sizes, to try it out
python benchmarks/inspection.py --save docs/results/inspection    also write the page (.md) and the numbers (.json)
"""

from __future__ import annotations

import argparse
import importlib
import time

import datasets
import numpy as np
from measuring import Page, circumstances, environment, table_head, table_line, warn_if_busy
from sklearn.ensemble import RandomForestClassifier

from isokern import IKOGDClassifier, IsolationKernel
from isokern.inspection import SimilarRows, explain

DATA = "covertype, 100,000 rows"
FULL = {"n_trees": 10, "leaves": (256, 1024), "n_rows": 32, "n_background": 20, "n_stored": 50_000, "n_queries": 100}
QUICK = {"n_trees": 5, "leaves": (64,), "n_rows": 20, "n_background": 5, "n_stored": 2000, "n_queries": 20}
N_TRAINED = 5_000  # rows that forests learn
COMMAND = "OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/inspection.py"  # one thread for each
MOST_SECONDS = 5  # of a peer; its rows are halved until it should take less
N_NEIGHBOURS = 10
INTRODUCTION = """\
# Explanations and similar rows

SHAP values of forests of the same number of trees and, as far as they can be chosen, of leaves, for the two classes of
covertype (54 columns). All forests are trained on the same 5,000 rows. *Depth* is that of the deepest leaf. Times
are CPU times of one thread, so that other programs on the machine matter little. Values of different forests differ;
what is compared is the time for a row. Those that would take long explain fewer rows."""
SIMILAR = """\
The 10 nearest of stored rows by exact search: under the Isolation Kernel, on cells of 100 trees, and by Euclidean
distance on the raw columns (float32), by faiss. CPU times of one thread; isokern's include mapping the rows to cells.
Exact search in faiss is a matrix product, so the number of columns decides. The Isolation Kernel needs as many
comparisons as there are trees, whatever the columns are."""


def optional(name):
    """Return a package, or None if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def cpu_seconds(work, repeats):
    """Return the least CPU time of several runs."""
    times = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


# -- explanations


def depth(trees):
    """Return the depth of the deepest leaf of a forest."""
    depths = np.zeros(len(trees.left), dtype=np.int64)
    for node in np.flatnonzero(~trees.is_leaf):  # children come after their parent
        depths[trees.left[node] : trees.left[node] + 2] = depths[node] + 1
    return int(depths.max())


def seconds_per_row(work, X):
    """Return the seconds to explain a row, and the number of rows, few enough to take not too long."""
    probe = cpu_seconds(lambda: work(X[:2]), 1) / 2
    n = len(X)
    while n > 2 and n * probe > MOST_SECONDS:
        n //= 2
    return cpu_seconds(lambda: work(X[:n]), 2) / n, n


def isokern_cases(X, y, plan, n_leaves):
    """Yield the forests of isokern: name, leaves, depth and what explains rows."""
    options = {"n_cells": n_leaves, "schedule": "constant", "random_state": 0, "n_jobs": 1}
    model = IKOGDClassifier(n_partitionings=plan["n_trees"], **options).fit(X, y)
    trees = model.forest().leaves.trees
    shape = trees.n_leaves / trees.n_trees, depth(trees)
    yield "isokern, path-dependent", *shape, lambda rows: explain(model, rows)
    background = X[: plan["n_background"]]
    name = f"isokern, interventional, {len(background)} background rows"
    yield name, *shape, lambda rows: explain(model, rows, background=background)


def peer_cases(X, y, plan, n_leaves):
    """Yield the forests of other libraries, as far as they are installed."""
    forest = RandomForestClassifier(plan["n_trees"], max_leaf_nodes=n_leaves, random_state=0).fit(X, y)
    shape = np.mean([tree.get_n_leaves() for tree in forest]), max(tree.get_depth() for tree in forest)
    if shap := optional("shap"):
        explainer = shap.TreeExplainer(forest, feature_perturbation="tree_path_dependent")
        yield (
            "shap's TreeExplainer, path-dependent, scikit-learn's forest",
            *shape,
            lambda rows: explainer.shap_values(rows, check_additivity=False),
        )
        background = X[: plan["n_background"]]
        other = shap.TreeExplainer(forest, background, feature_perturbation="interventional")
        name = f"shap's TreeExplainer, interventional, {len(background)} background rows, scikit-learn's forest"
        yield name, *shape, lambda rows: other.shap_values(rows, check_additivity=False)
    if lightgbm := optional("lightgbm"):
        options = {"n_estimators": plan["n_trees"], "num_leaves": n_leaves, "min_child_samples": 1, "verbose": -1}
        booster = lightgbm.LGBMClassifier(**options, n_jobs=1).fit(X, y)
        frame = booster.booster_.trees_to_dataframe()
        leaves = frame["left_child"].isna().sum() / plan["n_trees"]
        yield (
            "LightGBM's pred_contrib, boosted trees",
            leaves,
            int(frame["node_depth"].max()) - 1,
            lambda rows: booster.predict(rows, pred_contrib=True, num_threads=1),
        )


def explained(X, y, plan):
    """Yield a record for each forest."""
    for n_leaves in plan["leaves"]:
        for cases in (isokern_cases, peer_cases):
            for name, leaves, deepest, work in cases(X[:N_TRAINED], y[:N_TRAINED], plan, n_leaves):
                seconds, n = seconds_per_row(work, X[-plan["n_rows"] :])
                yield {"what": name, "leaves": float(leaves), "depth": deepest, "rows": n, "seconds": seconds}


# -- similar rows


def searched(X, plan):
    """Yield a record for each index."""
    stored, wanted = X[: plan["n_stored"]], X[-plan["n_queries"] :]
    for n_cells, n_scales in ((256, 1), (4096, 1), (4096, "auto")):
        kernel = IsolationKernel(n_cells=min(n_cells, len(stored)), n_scales=n_scales, n_jobs=1, random_state=0)
        kernel.fit(stored)
        index = SimilarRows(kernel).add(stored)
        seconds = cpu_seconds(lambda index=index: index.query(wanted, N_NEIGHBOURS), 3)
        name = f"isokern, {kernel.n_cells_} cells, {kernel.n_scales_} scale{'s' * (kernel.n_scales_ > 1)}"
        yield {"what": name, "bytes": index.bytes_per_row, "seconds": seconds / len(wanted)}
    if faiss := optional("faiss"):
        faiss.omp_set_num_threads(1)
        flat = faiss.IndexFlatL2(X.shape[1])
        flat.add(np.ascontiguousarray(stored, dtype=np.float32))
        rows = np.ascontiguousarray(wanted, dtype=np.float32)
        seconds = cpu_seconds(lambda: flat.search(rows, N_NEIGHBOURS), 3)
        yield {"what": f"faiss, flat, {X.shape[1]} columns", "bytes": 4 * X.shape[1], "seconds": seconds / len(rows)}


# -- page


def explanation_line(row, ours):
    ratio = "" if row is ours else f"{row['seconds'] / ours['seconds']:.1f} ×"
    return table_line(
        row["what"], f"{row['leaves']:.0f}", row["depth"], row["rows"], f"{1000 * row['seconds']:.2f}", ratio
    )


def search_line(row, n_stored):
    return table_line(
        row["what"], row["bytes"], f"{1e3 * row['seconds']:.3f}", f"{n_stored / row['seconds'] / 1e6:,.0f}"
    )


def add_explanations(page, rows):
    page.add(table_head("", "leaves of a tree", "depth", "rows", "CPU milliseconds a row", "time over ours above"))
    ours = rows[0]
    for row in rows:
        ours = row if row["what"] == "isokern, path-dependent" else ours
        page.add(explanation_line(row, ours))


def missing():
    """Return a sentence that names the peers that are not installed."""
    names = [name for name in ("shap", "lightgbm", "faiss") if optional(name) is None]
    return f" Not installed, so not measured: {', '.join(names)}." if names else ""


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--save", metavar="STEM")
    options = parser.parse_args(arguments)
    plan, where, page = QUICK if options.quick else FULL, environment(), Page()
    warn_if_busy(where)
    X, y, *_ = datasets.load(DATA)
    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    page.add(INTRODUCTION)
    page.add(f"\n{circumstances(where)} {plan['n_trees']} trees. `{COMMAND}`{missing()}\n")
    record = {**where, "plan": plan, "explanations": list(explained(X, y, plan)), "searches": list(searched(X, plan))}
    add_explanations(page, record["explanations"])
    page.add(f"\n## Similar rows\n\n{SIMILAR}\n\n{plan['n_stored']:,} stored rows.\n")
    page.add(table_head("", "bytes a stored row", "CPU milliseconds a row", "million comparisons a second"))
    for row in record["searches"]:
        page.add(search_line(row, plan["n_stored"]))
    if options.save:
        page.save(options.save, record)


if __name__ == "__main__":
    main()
