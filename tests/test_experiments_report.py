"""Tables, pages and the report of experiments."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from isokern import experiments, plotting
from isokern.experiments import Plan, Result, Table, Verdict
from isokern.experiments.page import Grid, Link, Mark, Paragraph, html_page, markdown_page
from isokern.experiments.plan import make_plan
from isokern.experiments.report import write_report
from isokern.experiments.result import conclude, write
from isokern.experiments.tables import as_csv, as_texts
from tiny_datasets import write_tiny
from toy_experiment import cell, toy

TABLE = Table(
    ("data set", "measure", "OGD", "OGD, paper", "n"),
    [
        ("a9a", "accuracy", 0.84251, 0.8, 32561),
        ("a9a", "seconds", 12.3456, 65_319, None),
        ("url", "psi", 256.0, 4.5, "> 1"),
        ("url", "lambda", 123456.75, 1.3862943611, None),
    ],
)

# -- tables


def test_csv_has_numbers_as_they_are():
    lines = ['data set,measure,OGD,"OGD, paper",n', "a9a,accuracy,0.84251,0.8,32561", "a9a,seconds,12.3456,65319,"]
    assert as_csv(TABLE).splitlines() == [*lines, "url,psi,256.0,4.5,> 1", "url,lambda,123456.75,1.3862943611,"]


def test_readers_get_no_more_digits_than_they_need():
    assert as_texts(TABLE) == [
        ["a9a", "accuracy", ".843", ".80", "32,561"],
        ["a9a", "seconds", "12.3", "65,319", "-"],
        ["url", "psi", "256", "4.5", "> 1"],
        ["url", "lambda", "123,457", "1.386", "-"],
    ]


# -- pages


class Cells(HTMLParser):
    """The texts and classes of the cells of a page, and its tags that are open at the end."""

    def __init__(self, page):
        super().__init__()
        self.open, self.cells = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag not in {"meta", "img"}:
            self.open.append(tag)
        if tag in {"td", "th"}:
            self.cells.append([dict(attrs).get("class"), ""])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.cells[-1][1] += data


def test_html_is_well_formed_and_shows_text_as_it_is():
    grid = Grid(("a", "n"), [("x < y & z", "1"), (Link("to", "there"), Mark("no", False))], frozenset({1}))
    cells = Cells(html_page([Paragraph("<b>"), grid], "A & B"))
    assert cells.open == []
    assert cells.cells == [
        [None, "a"],
        ["number", "n"],
        [None, "x < y & z"],
        ["number", "1"],
        [None, "to"],
        ["bad", "no"],
    ]


def test_markdown_shows_text_as_it_is():
    grid = Grid(("a", "n"), [("IK_a | b", "1"), (Link("to", "there"), Mark("no", False))], frozenset({1}))
    assert markdown_page([grid]).splitlines() == [
        "| a | n |",
        "| --- | ---: |",
        r"| IK\_a \| b | 1 |",
        "| [to](#there) | **no** |",
    ]


# -- results


def drawn(records):
    figure, (panel,) = plotting.new_figure(1)
    panel.plot([record["square"] for record in records if "square" in record])
    return figure


PLAN = Plan()


def result_of(records, plan=PLAN, **changes):
    return conclude(replace(toy(), **changes), records, plan)


RECORDS = [{"n": 1, "square": 1}, {"n": 2, "stopped": "ValueError: it is odd"}]


def test_a_result_names_missing_data_sets_and_draws_what_was_measured(monkeypatch, tmp_path):
    plan = Plan(folder=write_tiny(monkeypatch, tmp_path, "a9a"))
    result = result_of(RECORDS, plan, datasets=("a9a", "url"), draw=drawn)
    assert result.missing == ("url",)
    assert result.figure.axes[0].lines[0].get_ydata().tolist() == [1]
    assert result_of(RECORDS[1:], plan, draw=drawn).figure is None


def test_tables_come_without_matplotlib_too(tmp_path):
    def needs_matplotlib(records):
        raise ImportError("figures need a package")

    result = result_of(RECORDS, draw=needs_matplotlib)
    write(result, tmp_path)
    assert result.figure is None
    assert {path.name for path in (tmp_path / "toy").iterdir()} == {"toy.csv", "toy.md"}


def test_a_result_is_written_as_table_text_and_pictures(tmp_path):
    write(result_of(RECORDS, draw=drawn), tmp_path)
    folder = tmp_path / "toy"
    assert (folder / "toy.csv").read_text() == "n,square\n1,1\n2,\n"
    assert (folder / "toy.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "toy.pdf").read_bytes().startswith(b"%PDF")
    text = (folder / "toy.md").read_text()
    for part in (
        "## A toy",
        "| **Not borne out** | It works. | All squares are there. | 2 records |",
        "| 1 | 1 |",
        "](toy.png)",
        "A note.",
        "2 (seed 0): ValueError",
    ):
        assert part in text


def test_a_picture_of_a_run_before_does_not_stay(tmp_path):
    write(result_of(RECORDS, draw=drawn), tmp_path)
    write(result_of(RECORDS[1:], draw=drawn), tmp_path)
    assert {path.suffix for path in (tmp_path / "toy").iterdir()} == {".csv", ".md"}


# -- the report


@pytest.fixture
def report(tmp_path, monkeypatch):
    """Return the texts of a report, HTML and Markdown."""
    plan = Plan(folder=write_tiny(monkeypatch, tmp_path, "a9a", "rcv1-subset"), n_seeds=3)
    results = [result_of(RECORDS, plan, draw=drawn), result_of([], plan, name="none"), result_of(RECORDS[:1], plan)]
    for result in results[:2]:
        write(result, tmp_path / "out")
    write_report(results, plan, tmp_path / "out")
    return [(tmp_path / "out" / f"report.{kind}").read_text() for kind in ("html", "md")]


def test_the_report_begins_with_what_is_borne_out(report):
    for text in report:
        assert "bear out: 1; that they do not: 1; without anything to judge by: 1." in text
        assert text.index("Borne out") < text.index("What it was measured on") < text.index("All squares are there.")
        for said in ("Not borne out", "Nothing to judge by", "2 records"):
            assert said in text


def test_the_report_tells_data_sets_scale_seeds_limit_command_and_machine(report):
    for text in report:
        for said in (
            "rcv1-subset stands in for it",
            "missing",
            "quick: at most 5,000",
            "120 s",
            "numpy",
            " cores; measured with 2",
        ):
            assert said in text
        assert "isokern reproduce all --scale quick --seeds 3 --time-limit 120" in text


def test_the_report_needs_no_other_file_and_names_no_folder(report, tmp_path):
    page, text = report
    assert re.findall(r'src="(?!data:image/png;base64,)', page) == []
    assert re.findall(r'href="(?!#)', page) == []
    assert "](toy/toy.png)" in text
    assert str(tmp_path) not in page + text


# -- what a user asks for


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"scale": "fast"}, 'scale must be "quick" or "full"; got "fast".'),
        ({"datasets": ["a9b"]}, 'got "a9b". Did you mean "a9a"?'),
        ({"datasets": ["rcv1-subset"]}, 'got "rcv1-subset". Did you mean "rcv1.binary"?'),
        ({"datasets": []}, "datasets must be None or have a name; got none."),
        ({"n_seeds": 0}, "n_seeds must be an integer of at least 1; got 0."),
        ({"time_limit": 0}, "time_limit must be None or a number of seconds above 0; got 0."),
        ({"data": "nowhere"}, "data must be a folder; got nowhere."),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_measured(wrong, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        experiments.feature_map_size(**wrong)


def test_data_sets_that_an_experiment_does_not_use_are_refused(monkeypatch):
    monkeypatch.setattr("isokern.experiments.find", lambda name: replace(toy(), datasets=("url", "mnist")))
    with pytest.raises(ValueError, match='datasets must have one of those of toy: "url" or "mnist"; got a9a'):
        experiments.online(datasets=["a9a"])


def test_the_time_limit_follows_the_scale_unless_it_is_given():
    def limit(scale, given):
        return make_plan(None, scale=scale, datasets=None, n_seeds=1, time_limit=given).time_limit

    assert [limit("quick", None), limit("full", None), limit("full", 7)] == [120, 3600, 7]


def test_names_may_be_one_text():
    plan = make_plan(None, scale="quick", datasets="a9a,url", n_seeds=1, time_limit=None)
    assert plan.datasets == ("a9a", "url")


@pytest.mark.parametrize("name", experiments.NAMES)
def test_every_experiment_has_a_function_that_says_what_it_does(name):
    function = getattr(experiments, name.replace("-", "_"))
    assert function.__name__ in experiments.__all__
    assert f"experiments.{function.__name__}(" in function.__doc__


def test_an_experiment_is_run_by_its_function(monkeypatch, tmp_path):
    monkeypatch.setattr("isokern.experiments.worker.Worker.measure", lambda self, function, *given: function(*given))
    monkeypatch.setattr("isokern.experiments.find", lambda name: toy(cell("square", 3)))
    result = experiments.batch(out=tmp_path)
    assert isinstance(result, Result)
    assert result.records == [cell("square", 3) | {"square": 9, "seconds": 0.25}]
    assert result.verdicts == [Verdict("It works.", "All squares are there.", True, "1 records")]
    assert (tmp_path / "toy" / "toy.csv").read_text() == "n,square\n3,9\n"
