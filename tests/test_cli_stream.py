"""``isokern stream``: it equals ``prequential`` in Python, and needs constant memory."""

from __future__ import annotations

import csv
import io
import json
import re
import select

import numpy as np
import pytest
from rich.console import Console

import isokern
from command_line import (
    OUTPUTS,
    PATIENCE,
    fail,
    finish,
    make_table,
    read_records,
    run,
    start,
    succeed,
    without_times,
    write_csv,
    write_files,
)
from isokern.cli import _show
from isokern.cli._method import METHODS
from isokern.cli.stream import _note
from isokern.data import blocks, write_libsvm
from isokern.evaluation import Prequential, Record, prequential

WITHOUT_INITIAL = ("--block", 50, "--threads", 1)
RUN = ("--initial", 100, *WITHOUT_INITIAL)


@pytest.fixture
def folder(tmp_path):
    """Return a folder with small files."""
    write_files(tmp_path)
    return tmp_path


def assert_equals_python(folder, arguments, learner, X, y, *, rtol=0, **options):
    """Check that a run writes the records, predictions and model of ``Prequential``; return the names of columns."""
    initial = getattr(learner, "n_initial", None) or 0
    succeed(folder, "stream", *arguments, *(RUN if initial else WITHOUT_INITIAL), *OUTPUTS)
    twin = Prequential(learner, **options)
    records = [twin.learn(X[:initial], y[:initial])] if initial else []
    records += [twin.step(*block) for block in blocks(X[initial:], y[initial:], 50)]
    twin.finish()
    numbers = json.dumps([without_times(record.as_dict()) for record in records])
    assert read_records(folder / "records") == json.loads(numbers, parse_constant=lambda nan: None)
    predictions = [record.predictions for record in records if record.predictions is not None]
    assert np.array_equal(np.loadtxt(folder / "predictions"), np.concatenate(predictions))
    model = isokern.load(folder / "model")
    names = vars(model).pop("feature_names_in_", None)
    np.testing.assert_allclose(model.decision_function(X), learner.decision_function(X), rtol=rtol)
    return names


@pytest.mark.parametrize("protocol", ["rows", "blocks"])
@pytest.mark.parametrize("method", [method for method in METHODS if method not in {"ik-svm", "adaptive"}])
def test_every_online_learner_does_as_in_python(method, protocol, folder):
    learner = METHODS[method](n_initial=100, random_state=0)
    arguments = ("rows.txt", "--method", method, "--protocol", protocol)
    assert_equals_python(folder, arguments, learner, *make_table(), rtol=1e-9, protocol=protocol)


@pytest.mark.parametrize("options", [{}, {"protocol": "blocks"}, {"delay": 1}], ids=str)
@pytest.mark.parametrize("file", ["rows.txt", "rows.csv"])
def test_the_default_learner_does_as_in_python(file, options, folder):
    X, y = make_table()
    write_csv(folder / "rows.csv", X, y)
    arguments = (file, "--dense", "--label", "kind", *(f"--{name}={value}" for name, value in options.items()))
    assert_equals_python(folder, arguments, isokern.AdaptiveIKClassifier(random_state=0), X, y, rtol=1e-9, **options)


RENEWED = "adaptive (its map renews itself; --method ik-ogd for one that only grows)"
CHOSEN = {
    "": RENEWED,
    "--method adaptive": RENEWED,
    "--partitionings 5 --seed 1 --threads 1 --set linear=False": RENEWED,
    "--method ik-ogd": "ik-ogd (its map only grows)",
    "--method ik-ogd --cells 8": "ik-ogd (its map is fixed)",
    "--cells 8": "ik-ogd, because of --cells (its map is fixed)",
    "--cells cv --initial 100": "ik-ogd, because of --initial (its map is fixed)",
    "--partitioning voronoi": "ik-ogd, because of --partitioning (its map is fixed)",
    "--initial 100": "ik-ogd, because of --initial (its map is fixed)",
    "--scale maxabs": "ik-ogd, because of --scale (its map only grows)",
    "--device cpu": "ik-ogd, because of --device (its map only grows)",
    "--set growth=False": "ik-ogd, because of --set growth (its map is fixed)",
    "--method fogd": "fogd",
}


@pytest.mark.parametrize("options", CHOSEN)
def test_the_method_follows_from_the_options_and_is_said(options, folder):
    facts = succeed(folder, "stream", "rows.txt", *options.split(), "--out", "model").facts
    assert facts["method"] == CHOSEN[options]
    model, method = isokern.load(folder / "model"), facts["method"].split()[0].rstrip(",")
    assert type(model) is (isokern.IKOGDClassifierCV if "cv" in options else METHODS[method])


@pytest.mark.parametrize("options", [(), ("--kind", "regression")])
def test_numbers_are_learned_by_the_adaptive_regressor(options, folder):
    X, _ = make_table()
    write_libsvm(folder / "numbers.txt", X, X[:, 0])
    succeed(folder, "stream", "numbers.txt", *options, "--out", "model")
    assert type(isokern.load(folder / "model")) is isokern.AdaptiveIKRegressor


PROTOCOLS = {
    "rows": ((), "500"),
    "blocks": (("--protocol", "blocks"), "500"),
    "blocks, late labels": (("--delay", 1), "450"),
}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_records_and_facts_name_the_protocol(name, folder):
    (options, n_seen), protocol = PROTOCOLS[name], name.split(",")[0]
    outputs = ("--method", "fogd", "--metrics", "auc", "--records", "records")
    facts = succeed(folder, "stream", "rows.txt", *RUN, *outputs, *options).facts
    assert (facts["protocol"], facts["rows"], facts["n_seen"]) == (protocol, "600", n_seen)
    assert {record["protocol"] for record in read_records(folder / "records")} == {protocol}


def test_rows_are_scaled_to_the_range_of_the_initial_ones(folder):
    X, y = make_table()
    X = X * [1, 1000, 1, 1]
    write_csv(folder / "wide.csv", X, y)
    learner = isokern.IKOGDClassifier("voronoi", n_initial=100, scale="minmax", random_state=0)
    options = ("--label", "kind", "--partitioning", "voronoi", "--scale", "minmax")
    names = assert_equals_python(folder, ("wide.csv", *options), learner, X, y)
    assert names.tolist() == ["a", "b", "c", "d"]


@pytest.mark.parametrize("delay", [1, 3])
def test_labels_may_be_late(delay, folder):
    arguments = ("rows.txt", "--delay", delay, "--metrics", "kappa,auc")
    learner = isokern.IKOGDClassifier(n_initial=100, random_state=0)
    assert_equals_python(folder, arguments, learner, *make_table(), delay=delay, metrics=["kappa", "auc"])


@pytest.mark.parametrize("file", ["some.txt", "some.csv"])
def test_rows_without_a_label_are_predicted_but_not_learned(file, folder):
    X, y = make_table()
    is_missing = np.arange(600) % 4 == 3
    labels = np.where(is_missing, np.nan, y)
    write_libsvm(folder / "some.txt", X, labels)
    write_csv(folder / "some.csv", X, np.where(is_missing, None, y))
    learner = isokern.IKOGDClassifier(n_initial=100, random_state=0)
    assert_equals_python(folder, (file, "--dense", "--label", "kind"), learner, X, labels)
    assert len((folder / "predictions").read_text().splitlines()) == 500


def test_options_reach_the_learner(folder):
    options = ("--partitioning", "voronoi", "--cells", 8, "--partitionings", 5, "--seed", 4, "--set", "average=True")
    succeed(folder, "stream", "rows.txt", *RUN, *options, "--out", "model")
    learner = isokern.IKOGDClassifier("voronoi", 5, 8, average=True, n_initial=100, n_jobs=1, random_state=4)
    assert isokern.load(folder / "model").get_params() == learner.get_params()


@pytest.mark.parametrize("is_missing", [False, np.arange(600) % 4 == 3], ids=["all labels", "some labels"])
def test_the_initial_rows_may_choose_the_number_of_cells(is_missing, folder):
    X, y = make_table()
    labels = np.where(is_missing, np.nan, y)
    write_libsvm(folder / "rows.txt", X, labels)
    facts = succeed(folder, "stream", "rows.txt", *RUN, "--cells", "cv", "--partitionings", 10, "--out", "model").facts
    model = isokern.load(folder / "model")
    has_label = ~np.isnan(labels[:100])
    twin = isokern.IKOGDClassifierCV(n_partitionings=10, random_state=0).fit(X[:100][has_label], y[:100][has_label])
    assert model.best_params_ == twin.best_params_
    assert (facts["rows"], facts["n_seen"]) == ("600", "500")
    list(prequential(twin, blocks(X[100:], labels[100:], 50)))
    assert np.array_equal(model.decision_function(X), twin.decision_function(X))


@pytest.mark.parametrize(
    ("file", "given", "classes"),
    [("rows.txt", "-1,1,7", [-1, 1, 7]), ("rows.csv", "same,never,other", ["never", "other", "same"])],
)
def test_classes_may_be_given_in_advance(file, given, classes, folder):
    succeed(folder, "stream", file, "--label", "kind", *RUN, f"--classes={given}", "--out", "model")
    assert isokern.load(folder / "model").classes_.tolist() == classes


def test_a_stream_shorter_than_its_initial_rows_is_learned(folder):
    done = run(folder, "stream", "rows.txt", "--initial", "10000", "--out", "model")
    assert done.err.startswith("warning: rows.txt has only 600 rows, which were all learned, but not predicted. Choose")
    assert (done.facts["rows"], done.facts["n_seen"]) == ("600", "0")
    assert isokern.load(folder / "model").score(*make_table()) > 0.9


# -- outputs


def test_records_may_be_csv(folder):
    for name in ("records.json", "records.csv"):
        succeed(folder, "stream", "rows.txt", *RUN, "--records", name)
    lines = list(csv.DictReader((folder / "records.csv").read_text().splitlines()))
    numbers = read_records(folder / "records.json")
    assert [{name: line[name] for name in numbers[0]} for line in lines] == [
        {name: "" if value is None else str(value) for name, value in record.items()} for record in numbers
    ]
    assert lines[0]["accuracy"] == ""


@pytest.mark.parametrize("option", ["--records", "--predictions"])
def test_standard_output_has_nothing_but_records_or_predictions(option, folder):
    done = run(folder, "stream", "rows.txt", *RUN, option, "-")
    assert done.code == 0
    succeed(folder, "stream", "rows.txt", *RUN, option, "file")
    assert len(done.out.splitlines()) == len((folder / "file").read_text().splitlines())
    assert "accuracy: 0." in done.err


def test_the_facts_are_those_of_the_last_record(folder):
    facts = succeed(folder, "stream", "rows.txt", *RUN, "--records", "records", "--metrics", "f1").facts
    last = read_records(folder / "records")[-1]
    assert float(facts["accuracy"]) == pytest.approx(last["accuracy"], abs=1e-4)
    assert float(facts["f1"]) == pytest.approx(last["f1"], abs=1e-4)
    assert int(facts["n_correct"]) == last["n_correct"]


@pytest.mark.parametrize("quiet", [False, True])
def test_progress_shows_rows_rate_and_accuracy_unless_quiet(quiet, monkeypatch):
    terminal = Console(file=io.StringIO(), force_terminal=True, width=120)
    monkeypatch.setattr(_show, "errors", terminal)
    with _show.rows_progress("Streaming", quiet=quiet) as advance:
        advance(1000, "accuracy 0.5000")
        advance(1500, "accuracy 0.7500")
    shown = terminal.file.getvalue()
    assert (shown == "") if quiet else all(text in shown for text in ("2,500 rows", " rows/s", "accuracy 0.7500"))


@pytest.fixture
def turned(folder):
    """Return a folder with a stream whose classes change their places after 2,000 rows."""
    X, y = make_table(3000)
    write_libsvm(folder / "turned.txt", X, np.where(np.arange(3000) < 2000, y, -y))
    return folder


def test_the_facts_tell_the_leader_and_the_latest_changes(turned):
    facts = succeed(turned, "stream", "turned.txt", "--records", "records.csv", "--out", "model").facts
    model = isokern.load(turned / "model")
    *_, last = csv.DictReader((turned / "records.csv").read_text().splitlines())
    assert facts["leader"] == last["leader"] == model.selection_["leader"]
    rows = ", ".join(f"{row:,}" for row in model.drifts_[-5:])
    assert facts["n_drifts"] == f"{last['n_drifts']}, latest at rows {rows}"
    assert 2000 < model.drifts_[-1] <= 3000


def test_the_progress_of_a_stream_fits_into_100_columns(turned, monkeypatch):
    terminal = Console(file=io.StringIO(), force_terminal=True, width=100)
    monkeypatch.setattr(_show, "errors", terminal)
    assert run(turned, "stream", "turned.txt", "--out", "model").code == 0
    model = isokern.load(turned / "model")
    leader = model.selection_["leader"].split(",")[0]
    assert re.search(
        rf"accuracy 0\.\d{{3}}, now 0\.\d{{3}}, {leader}, drifts {model.n_drifts_}", terminal.file.getvalue()
    )


def test_the_progress_shows_what_a_record_has():
    numbers = dict.fromkeys(Record.__dataclass_fields__)
    assert _note(Record(**numbers)) == ""
    assert _note(Record(**numbers | {"accuracy": 0.5, "block_accuracy": np.nan})) == "accuracy 0.500"
    assert _note(Record(**numbers | {"leader": "all cells, adagrad 1", "n_drifts": 0})) == "all cells"


# -- pipes


def test_a_pipe_gives_the_model_of_the_file(folder):
    for file, given in {"rows.txt": "", "-": (folder / "rows.txt").read_text()}.items():
        succeed(folder, "stream", file, *RUN, "--out", f"model{file}", stdin=given)
    assert (folder / "modelrows.txt").read_bytes() == (folder / "model-").read_bytes()


def test_records_are_written_while_the_input_goes_on(folder):
    lines = (folder / "rows.txt").read_text().splitlines(keepends=True)
    options = ("--initial", 100, "--block", 10, "--features", 4, "--one-based", "--records", "-")
    with start(folder, "stream", "-", *options) as process:
        for begin, end in ((0, 100), (100, 110), (110, 120)):
            process.stdin.write("".join(lines[begin:end]))
            process.stdin.flush()
            assert select.select([process.stdout], [], [], PATIENCE)[0]
            assert json.loads(process.stdout.readline())["n_seen"] == end - 100
        done = finish(process, "".join(lines[120:125]))
    assert json.loads(done.out)["n_seen"] == 25
    assert done.code == 0


MEMORY = """
import os, sys, threading
from isokern.cli import main

source, target = os.pipe()
sys.stdin = os.fdopen(source)
rows = np.random.default_rng(0).normal(size=(10_000, 2)).round(2)
text = "".join(f"{int(a * b > 0)} 1:{a} 2:{b}\\n" for a, b in rows).encode()
seen = []

def write():
    with os.fdopen(target, "wb") as file:
        for _ in range(10):
            for _ in range(20):
                file.write(text)
            seen.append(megabytes("VmRSS"))

writer = threading.Thread(target=write)
writer.start()
sys.argv[1:] = "stream - --initial 1000 --block 10000 --partitionings 5 --cells 16 --threads 1 --metrics auc".split()
sys.argv += ["--predictions", os.devnull, "--records", os.devnull]
try:
    main()
except SystemExit as end:
    assert not end.code
writer.join()
print(seen[0], seen[-1])
"""


def test_memory_stays_flat_over_two_million_rows(run_script, memory_is_known):
    *shown, memory = run_script(MEMORY, timeout=PATIENCE).splitlines()
    early, late = map(float, memory.split())
    assert "2,000,000" in shown[0]
    assert late < early + 20  # the rows are 230 MB as text or numbers


# -- errors

MISTAKES = {
    "rows.txt --method adaptive --initial 100": "--initial is not an option of --method adaptive.",
    "rows.txt --set bogus=1": "--set must be name=value with a parameter of AdaptiveIKClassifier, ",
    "rows.txt --method ik-svm": "--method must be an online learner; got ik-svm. Use isokern fit for ik-svm.",
    "rows.txt --resume": "--resume must come with --checkpoint, the folder to continue from.",
    "- --resume --checkpoint c": "--resume must come with a file; got -. A pipe cannot be rewound.",
    "rows.txt --checkpoint c --records -": "must be files with --checkpoint",
    "rows.txt --records - --predictions -": "--records and --predictions must not both be -.",
    "rows.txt --out none/model": "--out must be in a folder that exists",
    "rows.txt --records none/records": "none/records",
    "rows.txt --metrics bogus": "--metrics must be",
    "rows.txt --protocol bogus": '--protocol must be "rows" or "blocks"; got \'bogus\'.',
    "rows.csv": "--label must name the label column of rows.csv.",
    "missing.txt": "missing.txt",
    "empty.txt": "empty.txt must have rows; got none.",
    "bad.txt --initial 100 --block 50": "bad.txt, line 601: ",
}


@pytest.mark.parametrize("arguments", MISTAKES)
def test_an_error_is_one_line(arguments, folder):
    (folder / "empty.txt").write_text("")
    (folder / "bad.txt").write_text((folder / "rows.txt").read_text() + "1 1:x\n")
    assert MISTAKES[arguments] in fail(folder, "stream", *arguments.split())
