"""Show in notebooks what an estimator has learned, below scikit-learn's diagram of its parameters."""

from __future__ import annotations

from html import escape
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr

_MOST_CLASSES, _LONGEST_NAME = 10, 40  # classes that are listed, and characters of each
_UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
# Colours of text and background are those of the notebook, which may be light or dark.
_SECTION = """<details open style="font-family: monospace; margin: 0.3em 0.5em">
<summary style="cursor: pointer; padding: 0.3em">Learned</summary>
<table style="border-collapse: collapse; color: inherit; background: none"><tbody>
{rows}
</tbody></table></details>"""
_CELL = "text-align: left; padding: 0.2em 0.8em; border: 1px solid rgba(128, 128, 128, 0.4); color: inherit"
_ROW = f'<tr style="background: none"><th scope="row" style="{_CELL}">{{}}</th><td style="{_CELL}">{{}}</td></tr>'


def repr_html(estimator: Any) -> str:
    """Return scikit-learn's diagram and, for a fitted estimator, a table of what it has learned."""
    rows = [_ROW.format(escape(name), escape(value)) for name, value in learned_facts(estimator).items()]
    section = _SECTION.format(rows="\n".join(rows)) if rows else ""
    return str(estimator_html_repr(estimator)) + section


def repr_mimebundle(estimator: Any, **kwargs: Any) -> dict[str, str]:
    """Return what Jupyter shows: the table, too, unless scikit-learn is configured to show text alone."""
    bundle: dict[str, str] = BaseEstimator._repr_mimebundle_(estimator, **kwargs)
    return bundle | ({"text/html": repr_html(estimator)} if "text/html" in bundle else {})


def learned_facts(estimator: Any) -> dict[str, str]:
    """Return what an estimator has learned, by name and in words; nothing before it has seen rows."""
    if not hasattr(estimator, "n_features_in_"):
        return {}
    facts: dict[str, str] = {}
    if hasattr(estimator, "n_rows_seen_"):
        facts["rows seen"] = f"{estimator.n_rows_seen_:,}"
    facts["columns"] = f"{estimator.n_features_in_:,}"
    if hasattr(estimator, "classes_"):
        facts["classes"] = _listed(estimator.classes_)
    if hasattr(estimator, "best_params_"):
        facts["chosen by cross-validation"] = ", ".join(f"{n} = {value}" for n, value in estimator.best_params_.items())
    return facts | _map_facts(estimator) | _model_facts(getattr(estimator, "best_estimator_", estimator))


def _listed(labels: Any) -> str:
    names = [_shortened(str(label)) for label in labels[:_MOST_CLASSES].tolist()]
    return f"{len(labels):,}: {', '.join(names)}{', ...' if len(labels) > _MOST_CLASSES else ''}"


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."


def _map_facts(estimator: Any) -> dict[str, str]:
    fitted = getattr(getattr(estimator, "kernel_", estimator), "map_", None)
    return {} if fitted is None else {"map": fitted.summary}


def _model_facts(estimator: Any) -> dict[str, str]:
    """Return who won and how large the model is."""
    facts, selection = {}, getattr(estimator, "selection_", None)
    if selection is not None and "leader" in selection:
        n_running = len(selection["running"])
        title = "winner of the race" if n_running == 1 else f"leader of {n_running} candidates"
        facts[title] = selection["leader"]
    elif selection is not None:
        facts["chosen by held-out rows"] = selection["chosen"]
    if (size := _model_size(estimator)) is not None:
        facts["weights"] = in_units(size)
    return facts


def _model_size(estimator: Any) -> int | None:
    """Return the size of the weights of all models in bytes; None if there are none."""
    learned = getattr(estimator, "learned_", None)
    models = getattr(learned, "models", [getattr(learned, "model", getattr(estimator, "model_", None))])
    tables = [getattr(model, name) for model in models if model is not None for name in model.in_place]
    return sum(table.nbytes for table in tables if table is not None) if tables else None


def in_units(n_bytes: int) -> str:
    """Return a size in the largest unit of which there is at least one."""
    unit, name = next((pair for pair in _UNITS if n_bytes >= pair[0]), (1, "bytes"))
    return f"{n_bytes / unit:,.1f} {name}" if unit > 1 else f"{n_bytes} {name}"
