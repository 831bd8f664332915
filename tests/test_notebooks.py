"""Check what notebooks show of an estimator: scikit-learn's diagram, then what was learned."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone

from isokern import IKSVC, AdaptiveIKClassifier, IKOGDClassifier, IKOGDClassifierCV, IKOGDRegressor, IsolationKernel
from isokern.notebooks import in_units
from learning import every, make_rows

X, Y = make_rows(300)
SMALL = {"n_partitionings": 5, "random_state": 0}
SHOWN = {
    "classifier": IKOGDClassifier(**SMALL),
    "without a race": IKOGDClassifier(schedule="constant", n_cells=8, **SMALL),
    "dual": IKOGDClassifier(schedule="constant", n_cells=8, evaluation="dual", **SMALL),
    "regressor": IKOGDRegressor(**SMALL),
    "svm": IKSVC(**SMALL),
    "search": IKOGDClassifierCV(n_cells=(2, 8), cv=2, **SMALL),
    "adaptive": AdaptiveIKClassifier(**SMALL),
    "kernel": IsolationKernel(**SMALL),
}


def shown(model):
    """Return the rows of the table of what was learned, by their names."""
    _, _, section = model._repr_mimebundle_()["text/html"].partition("Learned</summary>")
    return {
        unescape(name): unescape(value)
        for name, value in re.findall(r"<th[^>]*>(.*?)</th><td[^>]*>(.*?)</td>", section)
    }


class Tags(HTMLParser):
    """Parser that checks that the tags of a text match."""

    def __init__(self):
        super().__init__()
        self.open, self.names = [], []

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        if tag not in ("input", "br", "img", "path", "meta", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@every("model", SHOWN)
def test_a_fitted_estimator_shows_what_it_has_learned(model):
    facts = shown(clone(model).fit(X, Y))
    assert facts["columns"] == "3"
    assert re.fullmatch(r"5 trees of up to \d+ cells(, \d scales)?", facts["map"])


@every("model", SHOWN)
def test_an_unfitted_estimator_shows_scikit_learns_diagram_alone(model):
    html = model._repr_mimebundle_()["text/html"]
    assert type(model).__name__ in html
    assert "Learned</summary>" not in html


def test_a_classifier_shows_rows_classes_winner_and_size():
    model = clone(SHOWN["classifier"]).fit(X, Y)
    facts = shown(model)
    assert list(facts) == ["rows seen", "columns", "classes", "map", "winner of the race", "weights"]
    assert (facts["rows seen"], facts["classes"]) == ("300", "2: 0, 1")
    assert facts["winner of the race"] == model.selection_["leader"]
    (winner,) = model.learned_.models
    assert facts["weights"] == in_units(winner.n_bytes)


def test_a_stream_shows_who_leads():
    model = clone(SHOWN["adaptive"]).partial_fit(X, Y)
    assert shown(model)["leader of 4 candidates"] == model.selection_["leader"]


def test_a_machine_and_a_search_show_what_they_have_chosen():
    machine, search = (clone(SHOWN[name]).fit(X, Y) for name in ("svm", "search"))
    assert shown(machine)["chosen by held-out rows"] == machine.selection_["chosen"]
    assert shown(search)["chosen by cross-validation"] == f"n_cells = {search.best_params_['n_cells']}"
    assert shown(search)["rows seen"] == "300"


def test_a_warm_up_shows_its_rows():
    facts = shown(IKOGDClassifier(n_initial=500, **SMALL).partial_fit(X, Y))
    assert facts == {"rows seen": "300", "columns": "3", "classes": "2: 0, 1"}


def test_many_classes_are_cut_short():
    labels = np.arange(300) % 12
    assert shown(clone(SHOWN["classifier"]).fit(X, labels))["classes"] == "12: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ..."


def test_long_labels_are_cut_short():
    labels = np.where(Y > 0, "a" * 500, "b")
    assert len(shown(clone(SHOWN["classifier"]).fit(X, labels))["classes"]) < 100


def test_labels_cannot_bring_markup():
    labels = np.where(Y > 0, "<script>alert(1)</script>", '"&</td>')
    model = clone(SHOWN["classifier"]).fit(X, labels)
    section = model._repr_html_().partition("Learned</summary>")[2]
    parser = Tags()
    parser.feed(f"<details>{section}")
    assert parser.open == []
    assert set(parser.names) == {"details", "table", "tbody", "tr", "th", "td"}
    assert shown(model)["classes"] == '2: "&</td>, <script>alert(1)</script>'


@every("model", SHOWN)
def test_both_ways_to_show_an_estimator_agree(model):
    model = clone(model).fit(X, Y)
    sections = [
        html.partition("Learned</summary>")[2] for html in (model._repr_html_(), model._repr_mimebundle_()["text/html"])
    ]
    assert sections[0] == sections[1]


def test_text_is_shown_alone_if_scikit_learn_is_told_so():
    model = clone(SHOWN["classifier"]).fit(X, Y)
    with config_context(display="text"):
        assert set(model._repr_mimebundle_()) == {"text/plain"}
        assert not hasattr(model, "_repr_html_")


@every("model", SHOWN)
def test_no_estimator_links_to_documentation_that_does_not_exist(model):
    assert "href=" not in clone(model).fit(X, Y)._repr_html_()


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (3 * 2**30, "3.0 GiB")]
)
def test_sizes_are_shown_in_units(size, text):
    assert in_units(size) == text
