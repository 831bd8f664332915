"""Make isokern's classifier and its peers, and run each in a process of its own that is killed after a time limit."""

from __future__ import annotations

import warnings
from multiprocessing import get_context
from typing import Any, NamedTuple

import datasets
import pandas as pd
from real_tables import MOST_LEVELS, boosting, lightgbm, text_columns, with_categories
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC

from isokern import IKSVC, IKOGDClassifier, IsolationKernel
from isokern.evaluation import holdout

MOST_COLUMNS, MOST_SVC_ROWS, N_COMPONENTS = 100_000, 20_000, 1000
DEFAULT, BEFORE = "isokern, default", "isokern, before"
AT_100 = "isokern, default at t = 100"  # as many partitionings as before
LINEAR, BOOSTERS = "LinearSVC", ("LightGBM", "LightGBM, 500 × 255", "HistGradientBoosting")
ON_MAP = "LinearSVC on the map"
METRICS = ("log_loss", "calibration_error")
RULES = f"""\
Numbers are standardised and categories one-hot for LinearSVC, SVC and Nystroem; sparse rows stay as they are, for
Nystroem with unit length. Boosters get pandas categories (not timed), forests ordinal codes. Boosters and forests are
left out on more than {MOST_COLUMNS:,} columns (news20, url), HistGradientBoosting also on other sparse rows (rcv1). SVC
with the RBF kernel runs on dense tables of at most {MOST_SVC_ROWS:,} rows; on all others, Nystroem with
{N_COMPONENTS:,} components of the RBF kernel and linear SGD."""


# -- learners


def default(X, seed, **options):
    return IKOGDClassifier(random_state=seed, **options)


def before(X, seed, **options):
    """Return the former default: a given schedule ends the race."""
    return IKOGDClassifier(**{"n_partitionings": 100, "schedule": "adagrad", "random_state": seed} | options)


def linear(X, seed):
    return scaled(X, LinearSVC(random_state=seed))


def large_lightgbm(X, seed):
    return lightgbm(seed).set_params(n_estimators=500, num_leaves=255)


def machine(X, seed):
    return IKSVC(random_state=seed)


def machine_on_map(X, seed):
    return make_pipeline(IsolationKernel(random_state=seed), LinearSVC(random_state=seed))


def forest(X, seed):
    return coded(X, RandomForestClassifier(n_jobs=-1, random_state=seed))


def extra_trees(X, seed):
    return coded(X, ExtraTreesClassifier(n_jobs=-1, random_state=seed))


def svc(X, seed):
    return scaled(X, SVC())


def nystroem(X, seed):
    # Squared distances are about 2 d between standardised rows and at most 2 between rows of unit length.
    gamma = 1.0 if sparse.issparse(X) else None
    features = Nystroem(gamma=gamma, n_components=min(N_COMPONENTS, X.shape[0]), random_state=seed)
    learner = make_pipeline(features, SGDClassifier(random_state=seed))
    return make_pipeline(Normalizer(), learner) if sparse.issparse(X) else scaled(X, learner)


def scaled(X, learner):
    """Return the learner behind standardised numbers and one-hot categories; sparse rows stay as they are."""
    if sparse.issparse(X):
        return learner
    if not isinstance(X, pd.DataFrame):
        return make_pipeline(StandardScaler(), learner)
    numbers, words = make_pipeline(SimpleImputer(), StandardScaler()), OneHotEncoder(handle_unknown="ignore")
    return make_pipeline(make_column_transformer((words, text_columns(X)), remainder=numbers), learner)


def coded(X, learner):
    """Return the learner behind ordinal codes of categories."""
    if not isinstance(X, pd.DataFrame):
        return learner
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return make_pipeline(make_column_transformer((codes, text_columns(X)), remainder="passthrough"), learner)


# -- what is feasible


def anything(X):
    return True


def few_columns(X):
    return X.shape[1] <= MOST_COLUMNS


def is_dense(X):
    return not sparse.issparse(X)


def suits_svc(X):
    return is_dense(X) and X.shape[0] <= MOST_SVC_ROWS


class Contender(NamedTuple):
    """How to make a learner for given rows, which rows it takes, and the most levels of a category; None: any text."""

    make: Any
    takes: Any = anything
    most_levels: float | None = None


CONTENDERS = {
    DEFAULT: Contender(default),
    BEFORE: Contender(before),
    LINEAR: Contender(linear),
    "LightGBM": Contender(lambda X, seed: lightgbm(seed), few_columns, float("inf")),
    "LightGBM, 500 × 255": Contender(large_lightgbm, few_columns, float("inf")),
    "HistGradientBoosting": Contender(lambda X, seed: boosting(seed), is_dense, MOST_LEVELS),
    "RandomForest": Contender(forest, few_columns),
    "ExtraTrees": Contender(extra_trees, few_columns),
    "SVC": Contender(svc, suits_svc),
    "Nystroem + SGD": Contender(nystroem, lambda X: not suits_svc(X)),
}
# Support vector machines, for svc.py.
MACHINES = {
    "IKSVC": Contender(machine),
    ON_MAP: Contender(machine_on_map),
    "SVC": CONTENDERS["SVC"],
    "LightGBM": CONTENDERS["LightGBM"],
    "IKOGDClassifier": CONTENDERS[DEFAULT],
}


# -- running


def measure(name, data, seed):
    """Return accuracy, seconds of fit and predict and, of learners with probabilities, their metrics."""
    X, y, X_test, y_test = data
    contender = (CONTENDERS | MACHINES)[name]
    if contender.most_levels is not None and isinstance(X, pd.DataFrame):
        X, X_test = with_categories(X, X_test, contender.most_levels)
    learner = contender.make(X, seed)
    metrics = METRICS if hasattr(learner, "predict_proba") else ()
    with warnings.catch_warnings(action="ignore"):  # those of peers, such as that LinearSVC has not converged
        record = holdout(learner, (X, y), (X_test, y_test), metrics=metrics)
    return {"accuracy": record.accuracy, "fit": record.fit_seconds, "predict": record.predict_seconds, **record.metrics}


def runs(name, data_name, n_rows, limit, n_seeds):
    """Yield what ``measure`` returns for each seed in a new process; {"failed": reason} ends it."""
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sender, name, data_name, n_rows, n_seeds))
    process.start()
    sender.close()  # so that the end of the process is seen
    try:
        receiver.recv()  # loaded
        for _ in range(n_seeds):
            if not receiver.poll(limit):
                yield {"failed": f"over {limit} s"}
                return
            yield receiver.recv()
    except EOFError:
        yield {"failed": "failed"}  # the process has printed why, unless it was killed for lack of memory
    finally:
        process.kill()
        process.join()


def _work(sender, name, data_name, n_rows, n_seeds):
    data = datasets.some_rows(datasets.load(data_name), n_rows, n_rows)
    sender.send("loaded")
    for seed in range(n_seeds):
        sender.send(measure(name, data, seed))
