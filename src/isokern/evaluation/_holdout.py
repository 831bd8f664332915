"""Evaluate a learner on held-out rows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from isokern.evaluation.labels import as_pair, checked_block
from isokern.evaluation.learner import Block, as_learner, learns_numbers, mapped, n_support_of, outputs, timed
from isokern.evaluation.metrics import EXACT, Metrics
from isokern.evaluation.records import HoldoutRecord


def holdout(
    learner: Any, train: tuple[Any, Any], test: tuple[Any, Any], *, metrics: str | Iterable[str] = ()
) -> HoldoutRecord:
    """Fit a learner to training rows and measure it on test rows.

    Parameters
    ----------
    learner : estimator
        A learner with ``fit`` or, failing that, ``partial_fit`` or ``learn_one``, see :func:`prequential`. It is
        changed in place.
    train, test : pairs (X, y)
        Rows and labels, as in :func:`prequential`. Rows without a label are neither learned nor measured.
    metrics : str or iterable of str, default=()
        Metrics besides accuracy, as in :func:`prequential`, but all of them exact.

    Returns
    -------
    record : HoldoutRecord

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from isokern import IKSVC
    >>> from isokern.evaluation import holdout
    >>> X, y = load_digits(return_X_y=True)
    >>> record = holdout(IKSVC(random_state=0), (X[:1200], y[:1200]), (X[1200:], y[1200:]), metrics=["f1", "kappa"])
    >>> record.accuracy > 0.9, record.metrics["f1"] > 0.9, record.metrics["kappa"] > 0.9
    (True, True, True)
    """
    learner = as_learner(learner)
    if not (hasattr(learner, "fit") or hasattr(learner, "partial_fit")):
        raise ValueError(f"learner must have fit, partial_fit or learn_one; got {type(learner).__name__}.")
    measured = Metrics(learner, metrics, classification=EXACT)
    train_rows, train_labels, is_learned = checked_block(*as_pair(train, "train"))
    test_rows, labels, has_label = checked_block(*as_pair(test, "test"))
    learned = train_rows if is_learned.all() else Block(train_rows).take(is_learned).rows
    learn = learner.fit if hasattr(learner, "fit") else learner.partial_fit
    _, fit_seconds = timed(learn, learned, train_labels)
    block, map_seconds = timed(mapped, learner, test_rows)
    predictions, predict_seconds = timed(block.call, learner, "predict")
    accuracy = math.nan
    if len(labels):
        measured.add(labels, outputs(learner, block.take(has_label), predictions[has_label], measured.needs))
        accuracy = float(np.mean(predictions[has_label] == labels))
    return HoldoutRecord(
        n_train=len(train_labels),
        n_test=len(has_label),
        accuracy=None if learns_numbers(learner) else accuracy,
        fit_seconds=fit_seconds,
        predict_seconds=map_seconds + predict_seconds,
        n_support=n_support_of(learner),
        metrics=measured.values(),
        predictions=predictions,
    )
