"""Test the tables, notes and verdicts of experiments, and the report on all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isokern import experiments, plotting
from isokern.experiments import Plan, Table, settings
from isokern.experiments.claims import Claim
from isokern.experiments.figures import summary
from isokern.experiments.methods import METHODS
from isokern.experiments.report import markdown_table, write, write_report
from isokern.experiments.runner import conclude
from isokern.experiments.shortfalls import shortfalls
from isokern.experiments.tables import as_texts
from tiny_datasets import lines, write_tiny
from toy_experiment import toy

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


def test_texts_are_rounded():
    assert as_texts(TABLE) == [
        ["a9a", "accuracy", ".843", ".80", "32,561"],
        ["a9a", "seconds", "12.3", "65,319", "-"],
        ["url", "psi", "256", "4.5", "> 1"],
        ["url", "lambda", "123,457", "1.386", "-"],
    ]


def test_markdown_aligns_numbers_right():
    assert markdown_table(("a", "n"), [("x", "1")], [False, True]) == "| a | n |\n| --- | ---: |\n| x | 1 |"


def record(method, dataset="a9a", **others):
    return {"dataset": dataset, "source": dataset, "seed": 0, "method": method} | others


def cells_of(*records, keys=("accuracy", "seconds")):
    """Return what the table of batch shows of NOGD on a9a."""
    shown = lines(experiments.find("batch").table(records, Plan()))
    return [
        next(row["NOGD"] for (name, what), row in shown.items() if what == key and name.startswith("a9a"))
        for key in keys
    ]


def test_several_seeds_show_mean_and_range():
    runs = [record("NOGD", accuracy=0.8, seconds=1.0), record("NOGD", accuracy=0.9, seconds=3.0)]
    assert cells_of(*runs) == [".850 (.800–.900)", "2.00 (1.00–3.00)"]


def test_several_seeds_show_the_median_of_what_was_chosen():
    runs = [record("NOGD", chosen=psi) for psi in (4, 1024, 256)]
    assert cells_of(*runs, keys=["psi (AdaRaker: lambda)"]) == ["256 (4–1,024)"]


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ({"stopped": "time limit of 60 s", "time_limit": 60.0}, ["-", "> 60 s"]),
        ({"stopped": "memory ran out"}, ["-", "-"]),
    ],
)
def test_a_run_without_measurements_shows_the_reason(reason, shown):
    assert cells_of(record("NOGD", **reason)) == shown


@pytest.mark.parametrize(
    ("name", "records", "note"),
    [
        (
            "batch",
            [record("AdaRaker", accuracy=0.838), record("NOGD", accuracy=0.842)],
            "AdaRaker: more accurate here than the published AdaRaker, on a9a (.838 vs .79).",
        ),
        (
            "svm",
            [record("SVM, lambda from data", name, accuracy=0.84) for name in ("news20.binary", "a9a")],
            "SVM, lambda from data: more accurate here than the published SVM, on news20.binary (.840 vs .50).",
        ),
        (
            "additive",
            [record("LIBSVM, chi2", name, accuracy=a) for name, a in (("mnist", 0.93), ("epsilon", 0.9))],
            "LIBSVM, chi2: more accurate here than the published LIBSVM, chi2, on mnist (.930 vs .92).",
        ),
        ("batch", [record("NOGD", "rcv1.binary", accuracy=0.9) | {"source": "rcv1-subset"}], None),  # a stand-in
    ],
)
def test_rivals_that_are_better_than_published_are_named(name, records, note):
    notes = experiments.find(name).table(records, Plan()).notes
    assert [text for text in notes if "more accurate" in text] == [note] * (note is not None)


@pytest.mark.parametrize(("n_learned", "n_notes"), [(20_000, 1), (32_561, 0)])
def test_a_note_says_if_libsvm_learns_from_a_sample(n_learned, n_notes):
    records = [record("LIBSVM, chi2", accuracy=0.8, n_learned=n_learned, n_train=32_561)]
    notes = experiments.find("additive").table(records, Plan()).notes
    assert len([note for note in notes if "sample of 20,000 rows" in note]) == n_notes


# -- verdicts


@pytest.mark.parametrize(
    ("outcomes", "holds", "found"),
    [
        (
            {"a9a": (True, "2 to 1"), "url": (False, "1 to 3")},
            False,
            "on 1 of 2 data sets: a9a (2 to 1); not on url (1 to 3)",
        ),
        (
            {"a9a": (True, "2 to 1")},
            True,
            "on 1 of 1 data sets: a9a (2 to 1); not judged because runs were stopped: url",
        ),
        ({}, None, "no measurements; not judged because runs were stopped: url"),
    ],
)
def test_a_claim_must_hold_on_every_data_set(outcomes, holds, found):
    records = [record("NOGD"), record("NOGD", "url", stopped="time limit of 1 s")]
    verdict = Claim("A beats B", "more points", lambda records: outcomes)(records)
    assert (verdict.claim, verdict.rule) == ("A beats B", "more points, on every data set")
    assert (verdict.holds, verdict.found) == (holds, found)


def test_the_report_gives_the_reason_beside_the_numbers(tmp_path):
    claim = Claim("A beats B", "more points", lambda records: {"a9a": (False, "1 to 3")}, why="B is new")
    result = result_of([record("NOGD")], claims=(claim,), table=lambda records, plan: TABLE)
    write(result, tmp_path)
    text = (tmp_path / "toy" / "toy.md").read_text()
    assert "| on 0 of 1 data sets; not on a9a (1 to 3). B is new |" in text


# -- results


def drawn(records):
    figure, (panel,) = plotting.new_figure(1)
    panel.plot([record["square"] for record in records if "square" in record])
    return figure


PLAN = Plan()
RECORDS = [{"n": 1, "square": 1}, {"n": 2, "stopped": "ValueError: it is odd"}]


def result_of(records, plan=PLAN, **changes):
    return conclude(replace(toy(), **changes), records, plan)


def test_a_result_names_missing_data_sets_and_draws_what_was_measured(monkeypatch, tmp_path):
    plan = Plan(folder=write_tiny(monkeypatch, tmp_path, "a9a"))
    result = result_of(RECORDS, plan, datasets=("a9a", "url"), draw=drawn)
    assert result.missing == ("url",)
    assert result.figure.axes[0].lines[0].get_ydata().tolist() == [1]


def test_without_matplotlib_there_are_tables_but_no_figure(tmp_path):
    def needs_matplotlib(records):
        raise ImportError("figures need a package")

    result = result_of(RECORDS, draw=needs_matplotlib)
    write(result, tmp_path)
    assert result.figure is None
    assert {path.name for path in (tmp_path / "toy").iterdir()} == {"toy.csv", "toy.md"}


def test_a_result_is_written_as_csv_markdown_and_png(tmp_path):
    write(result_of(RECORDS, draw=drawn), tmp_path)
    folder = tmp_path / "toy"
    assert (folder / "toy.csv").read_text() == "n,square\n1,1\n2,\n"
    assert (folder / "toy.png").read_bytes().startswith(b"\x89PNG")
    text = (folder / "toy.md").read_text()
    for part in (
        "## A toy",
        "| **Not confirmed** | It works. | All squares are there. | 2 records |",
        "| 1 | 1 |",
        "](toy.png)",
        "A note.",
        "2 (seed 0): ValueError",
    ):
        assert part in text


def test_the_figure_of_an_earlier_run_is_deleted(tmp_path):
    write(result_of(RECORDS, draw=drawn), tmp_path)
    write(result_of(RECORDS[1:], draw=drawn), tmp_path)
    assert {path.suffix for path in (tmp_path / "toy").iterdir()} == {".csv", ".md"}


# -- the report


@pytest.fixture
def report(tmp_path, monkeypatch):
    """Return the text of a report."""
    plan = Plan(folder=write_tiny(monkeypatch, tmp_path, "a9a", "rcv1-subset"), n_seeds=3)
    results = [
        result_of(RECORDS, plan, draw=drawn),
        result_of([], plan, name="none", title="IK_a | b"),
        result_of(RECORDS[:1], plan),
    ]
    write_report(results, plan, tmp_path)
    return (tmp_path / "report.md").read_text()


def test_the_report_begins_with_the_verdicts(report):
    assert "1 confirmed, 1 not confirmed, 1 not judged. A claim is confirmed if" in report
    assert report.index("Confirmed") < report.index("## Data and machine") < report.index("All squares are there.")
    assert "| [toy](#toy) |  | It works. | **Not confirmed** | 2 records |" in report
    assert "| [none](#none) |  | It works. | Not judged | 0 records |" in report


def test_the_report_describes_data_sets_scale_seeds_limit_command_and_machine(report):
    for text in (
        "rcv1-subset stands in",
        "| url | no |  |",
        "| a9a | yes |  |",
        "quick: at most 5,000",
        "120 s",
        "numpy",
        "in one thread",
    ):
        assert text in report
    assert "isokern reproduce all --scale quick --seeds 3 --time-limit 120" in report


def test_the_report_links_pictures_names_no_folder_and_escapes_markup(report, tmp_path):
    assert "](toy/toy.png)" in report
    assert str(tmp_path) not in report
    assert r"## IK\_a \| b" in report


# -- what the report says about batch

FULL = Plan(scale="full")


def ours(method, accuracy, dataset="covertype", **others):
    return record(method, dataset, accuracy=accuracy, seconds=1.0, n_train=464_810, n_test=116_202) | others


def causes_of(*records, name="batch", plan=FULL):
    """Return the causes of each shortfall."""
    return [one.causes for one in shortfalls(name, records, plan)[0]]


def test_accuracies_below_the_published_ones_are_listed_with_their_causes():
    records = [
        *(ours("IK_i-OGD", a, seed=k, chosen=4096, search="all rows") for k, a in enumerate((0.84, 0.852, 0.856))),
        ours("IK_a-OGD", 0.915, chosen=512),  # lower by exactly the tolerance
        ours("OGD", 0.5),  # a rival
    ]
    ((dataset, method, accuracy, published, causes),), n_compared = shortfalls("batch", records, FULL)
    assert (dataset, method, published, n_compared) == ("covertype", "IK_i-OGD", 0.86, 2)
    assert accuracy.value == pytest.approx(0.8493, abs=1e-4)
    assert accuracy.standard_error == pytest.approx(0.00105, abs=1e-5)  # of 116,202 rows
    assert causes == "1 of 3 seeds reach it; psi is the largest of the search, 4,096"


def test_other_files_and_fewer_rows_are_causes():
    other = ours("IK_a-OGD", 0.9, "rcv1.binary", source="rcv1-subset", chosen=32, search="all rows", seed=1)
    few = ours("IK_a-OGD", 0.9, n_train=5_000, chosen=256)
    assert causes_of(other, few, plan=Plan()) == [
        "another file, rcv1-subset; one seed",
        "learned 5,000 of 464,810 training rows; one seed; psi was chosen on a sample of the training rows",
    ]
    libsvm = ours("LIBSVM, IK_a", 0.8, psi=8, n_learned=20_000, search="all rows, C")
    assert causes_of(libsvm, name="additive") == ["LIBSVM learned 20,000 of 464,810 rows; one seed"]


@pytest.mark.parametrize(("n_test", "is_chance"), [(10_000, True), (100_000, False)])
def test_chance_is_a_cause_up_to_two_standard_errors_beyond_rounding(n_test, is_chance):
    seeds = [ours("IK_a-OGD", 0.911, n_test=n_test, chosen=8, search="all rows", seed=seed) for seed in range(3)]
    chance = "chance: beyond rounding, it is within 2 standard errors"
    assert causes_of(*seeds) == [chance if is_chance else "not known"]


def test_the_summary_shows_every_data_set_and_every_method_once_in_its_legend():
    figure = summary([ours(method, 0.9) for method in METHODS])
    assert [panel.get_title().split(" ")[0] for panel in figure.axes] == list(settings.DATASETS)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(METHODS)
    assert {panel.get_xscale() for panel in figure.axes} == {"log"}
    (covertype,) = (panel for panel in figure.axes if panel.get_title() == "covertype")
    points = [line.get_marker() for line in covertype.lines if len(line.get_xdata()) == 1]
    n_published = 5
    assert len(points) == len(METHODS) + n_published
    assert len(set(points)) == len(METHODS)
    assert len([line for line in covertype.lines if len(line.get_xdata()) == 2]) == n_published  # from theirs to ours


def test_the_report_shows_the_summary_shortfalls_and_processors_of_batch(tmp_path):
    batch = experiments.find("batch")
    result = conclude(batch, [ours("IK_i-OGD", 0.8, chosen=8)], FULL)
    result = replace(result, machines=(("covertype", "A fast CPU"),))
    write_report([result], FULL, tmp_path)
    report = (tmp_path / "report.md").read_text()
    assert (tmp_path / "summary.png").read_bytes().startswith(b"\x89PNG")
    assert "](summary.png)" in report
    assert "1 of 1 accuracies are lower than the published ones by more than 0.005;" in report
    assert (
        r"| [batch](#batch) | covertype | IK\_i-OGD | .800 ± .001 | .86 | one seed; psi was chosen on a sample"
        in report
    )
    assert "| A fast CPU: batch |" in report
    assert "| generated |" in report
    assert "| [batch](#batch) | Table 5 | " in report
    write_report([], FULL, tmp_path)
    assert not (tmp_path / "summary.png").exists()
