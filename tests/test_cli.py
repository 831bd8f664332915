"""The command line: help and examples, every command, every learner and every file format."""

from __future__ import annotations

import inspect
import json
import re
import shlex
import shutil

import numpy as np
import pytest

import isokern
from command_line import NAMES, SMALL, make_table, run, succeed, write_csv, write_files
from isokern import AdaptiveIKClassifier, IKOGDClassifier, IKOGDRegressor
from isokern.cli._app import app
from isokern.cli._method import METHODS
from isokern.cli.plot import plot
from isokern.data import write_libsvm
from isokern.frames import Categories

COMMANDS = {command.callback.__name__: command.callback for command in app.registered_commands}
FIGURES = {f"plot {figure.callback.__name__}": figure.callback for figure in plot.registered_commands}
EXAMPLES = {
    name: re.findall(r"^Example: isokern (.+)$", inspect.getdoc(command), flags=re.MULTILINE)
    for name, command in (COMMANDS | FIGURES).items()
}


@pytest.fixture
def folder(tmp_path):
    """Return a folder with small files."""
    write_files(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Return a folder with small files, and models of LIBSVM text, of CSV, and of more than two classes."""
    folder = tmp_path_factory.mktemp("models")
    X, y = write_files(folder)
    write_libsvm(folder / "three.txt", X, y + (X[:, 2] > 1))
    for file, *options in (("rows.txt",), ("rows.csv", "--label", "kind"), ("three.txt",)):
        succeed(folder, "fit", file, *SMALL, "--out", f"{file}.isokern", *options)
    return folder


# -- help


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_help_of_a_command_shows_one_example_on_one_line(name, tmp_path, monkeypatch):
    (example,) = EXAMPLES[name]
    assert example.startswith(name)
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    shown = succeed(tmp_path, *name.split(), "--help").out
    assert f"isokern {example}" in {line.partition("Example: ")[2].strip() for line in shown.splitlines()}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_option_has_a_help_text(name):
    for parameter in inspect.signature((COMMANDS | FIGURES)[name], eval_str=True).parameters.values():
        assert parameter.annotation.__metadata__[0].help, parameter.name


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in {"demo", "data", "reproduce"}])
def test_examples_can_be_pasted(name, folder):
    for there, copied in {"a9a": "rows.txt", "a9a.t": "rows.txt", "covtype.xz": "rows.txt.xz"}.items():
        shutil.copy(folder / copied, folder / there)
    if name in {"predict", "evaluate", "explain", "export", "info"}:
        succeed(folder, *shlex.split(EXAMPLES["fit"][0]))
    succeed(folder, *shlex.split(EXAMPLES[name][0]))


def test_the_help_lists_all_commands(tmp_path):
    learning = {"demo", "fit", "predict", "stream", "evaluate", "explain", "export"}
    assert set(COMMANDS) == learning | {"reproduce", "data", "info"}
    assert set(FIGURES) == {"plot stream", "plot regions", "plot kernel"}
    for arguments, names in (((), [*COMMANDS, "plot"]), (("plot",), [name.split()[1] for name in FIGURES])):
        shown = succeed(tmp_path, *arguments, "--help").out
        assert all(re.search(rf"\b{name} ", shown) for name in names)


@pytest.mark.parametrize("arguments", [(), ("fit",), ("stream",)])
def test_without_arguments_the_help_is_shown(arguments, tmp_path):
    done = run(tmp_path, *arguments)
    assert "Usage: isokern" in done.out
    assert done.err == ""


def test_the_version_is_that_of_the_package(tmp_path):
    assert succeed(tmp_path, "--version").out.split() == ["isokern", isokern.__version__]


# -- fit, predict, evaluate


@pytest.mark.parametrize("method", METHODS)
def test_every_learner_can_be_fitted_saved_and_used(method, folder):
    succeed(folder, "fit", "rows.txt", "--method", method, "--out", "model")
    model = isokern.load(folder / "model")
    X, y = make_table()
    assert type(model) is METHODS[method]
    assert succeed(folder, "predict", "model", "rows.txt").out.split() == [f"{label:.0f}" for label in model.predict(X)]
    facts = json.loads(succeed(folder, "evaluate", "model", "rows.txt", "--json").out)
    assert facts["accuracy"] == model.score(X, y)


@pytest.mark.parametrize("file", ["rows.txt", "rows.txt.xz"])
def test_the_model_equals_that_of_python(file, folder):
    options = ("--partitioning", "voronoi", "--cells", 16, "--seed", 3, "--scale", "maxabs", "--set", "average=True")
    succeed(folder, "fit", file, *SMALL, *options, "--out", "model")
    X, y = make_table()
    twin = IKOGDClassifier("voronoi", 10, 16, random_state=3, scale="maxabs", average=True).fit(X, y)
    assert np.array_equal(isokern.load(folder / "model").decision_function(X), twin.decision_function(X))


@pytest.mark.parametrize(
    ("options", "scale"),
    [((), None), (("--dense",), None), (("--scale", "none"), None), (("--dense", "--scale", "minmax"), "minmax")],
)
def test_rows_are_not_scaled_by_default_as_in_python(options, scale, folder):
    succeed(folder, "fit", "rows.txt", *SMALL, *options, "--out", "model")
    assert isokern.load(folder / "model").scale == scale


def test_a_parquet_file_gives_the_model_of_the_csv_file(folder):
    csv, parquet = (pytest.importorskip(f"pyarrow.{name}") for name in ("csv", "parquet"))
    parquet.write_table(csv.read_csv(folder / "rows.csv"), folder / "rows.parquet")
    for file in ("rows.csv", "rows.parquet"):
        succeed(folder, "fit", file, "--label", "kind", *SMALL, "--out", f"{file}.isokern")
    assert (folder / "rows.csv.isokern").read_bytes() == (folder / "rows.parquet.isokern").read_bytes()


def test_columns_can_be_chosen_and_names_with_a_comma_quoted(folder):
    X, y = make_table()
    write_csv(folder / "odd.csv", X, y, names=['"a,1"', "b", "c", "d"])
    succeed(folder, "fit", "odd.csv", "--label", "kind", "--columns", 'b,"a,1"', *SMALL, "--out", "model")
    assert isokern.load(folder / "model").feature_names_in_.tolist() == ["b", "a,1"]
    assert len(succeed(folder, "predict", "model", "odd.csv").out.split()) == len(y)
    assert float(succeed(folder, "evaluate", "model", "odd.csv", "--label", "kind").facts["accuracy"]) > 0.9


@pytest.mark.parametrize("labels", [True, False], ids=["with labels", "without labels"])
def test_columns_are_found_by_name_in_any_order(labels, fitted):
    X, y = make_table()
    turned = fitted / "turned.csv"
    write_csv(turned, X[:, ::-1], np.where(y > 0, "same", "other"), names=NAMES[::-1])
    if not labels:
        turned.write_text("".join(line.rpartition(",")[0] + "\n" for line in turned.read_text().splitlines()))
    predicted = succeed(fitted, "predict", "rows.csv.isokern", turned).out
    assert predicted == succeed(fitted, "predict", "rows.csv.isokern", "rows.csv").out
    assert set(predicted.split()) == {"same", "other"}


@pytest.mark.parametrize("file", ["rows.txt", "rows.csv", "three.txt"])
@pytest.mark.parametrize("option", ["--scores", "--proba"])
def test_scores_and_probabilities_have_a_header_of_classes(option, file, fitted):
    model = isokern.load(fitted / f"{file}.isokern")
    vars(model).pop("feature_names_in_", None)
    values = (model.decision_function if option == "--scores" else model.predict_proba)(make_table()[0])
    (fitted / "written").unlink(missing_ok=True)
    succeed(fitted, "predict", f"{file}.isokern", file, option, "--block", 7, "--out", "written")
    header, *lines = (fitted / "written").read_text().splitlines()
    classes = model.classes_[1:] if values.ndim == 1 else model.classes_
    assert header.split(",") == [str(c) if isinstance(c, str) else f"{c:.0f}" for c in classes]
    assert np.array_equal([[*map(float, line.split(","))] for line in lines], values.reshape(len(values), -1))


def test_rows_to_predict_may_come_from_a_pipe(fitted):
    text = (fitted / "rows.txt").read_text()
    from_pipe = succeed(fitted, "predict", "rows.txt.isokern", "-", stdin=text)
    assert from_pipe == succeed(fitted, "predict", "rows.txt.isokern", "rows.txt")


def test_an_error_leaves_a_file_of_predictions_unchanged(fitted):
    (fitted / "kept").write_text("unchanged")
    (fitted / "bad.txt").write_text((fitted / "rows.txt").read_text() + "1 1:x\n")
    assert run(fitted, "predict", "rows.txt.isokern", "bad.txt", "--out", "kept").code == 1
    assert (fitted / "kept").read_text() == "unchanged"


def test_cross_validation_can_choose_the_number_of_cells(folder):
    facts = succeed(folder, "fit", "rows.txt", "--cells", "cv", *SMALL, "--out", "model").out
    model = isokern.load(folder / "model")
    assert re.search(r"by cross-validation +(\d+)", facts)[1] == str(model.best_params_["n_cells"])
    assert float(succeed(folder, "evaluate", "model", "rows.txt").facts["accuracy"]) > 0.9


def test_rows_without_a_label_are_not_learned(folder):
    X, y = make_table()
    has_label = np.arange(600) % 3 > 0
    write_libsvm(folder / "some.txt", X, np.where(has_label, y, np.nan))
    write_libsvm(folder / "others.txt", X[has_label], y[has_label])
    for file in ("some", "others"):
        succeed(folder, "fit", f"{file}.txt", *SMALL, "--out", file)
    assert (folder / "some").read_bytes() == (folder / "others").read_bytes()


def test_fit_tests_on_another_file(folder):
    X, y = make_table(900)
    write_libsvm(folder / "test.txt", X[600:], y[600:])
    facts = succeed(folder, "fit", "rows.txt", "--test", "test.txt", "--metrics", "auc,kappa", "--out", "model").facts
    assert float(facts["accuracy"]) == pytest.approx(isokern.load(folder / "model").score(X[600:], y[600:]), abs=1e-4)
    assert 0.5 < float(facts["kappa"]) < float(facts["auc"])


def test_an_evaluation_does_not_depend_on_the_size_of_blocks(fitted):
    whole, parts = (
        json.loads(succeed(fitted, "evaluate", "rows.txt.isokern", "rows.txt", "--json", "--block", size).out)
        for size in (10_000, 7)
    )
    assert parts["n_labelled"] == 600
    assert (parts["n_correct"], parts["accuracy"]) == (whole["n_correct"], whole["accuracy"])


@pytest.mark.parametrize(("method", "last"), [("ik-ogd", ["log_loss"]), ("ik-svm", ["log_loss"])])
def test_an_evaluation_shows_whether_accuracy_misleads(method, last, folder):
    succeed(folder, "fit", "rows.txt", *SMALL, "--method", method, "--out", "model")
    facts = json.loads(succeed(folder, "evaluate", "model", "rows.txt", "--json").out)
    metrics = [name for name in facts if not name.endswith("_seconds")]
    assert metrics == ["n_labelled", "n_correct", "accuracy", "balanced_accuracy", "f1", *last]
    asked = json.loads(succeed(folder, "evaluate", "model", "rows.txt", "--json", "--metrics", "auc").out)
    assert "auc" in asked and "f1" not in asked


def test_info_tells_what_a_support_vector_machine_has_chosen(folder):
    succeed(folder, "fit", "rows.txt", *SMALL, "--method", "ik-svm", "--out", "model")
    chosen = isokern.load(folder / "model").selection_["chosen"]
    assert re.search(rf"chosen +{re.escape(chosen)}", succeed(folder, "info", "model").out)


def test_info_tells_how_a_stream_goes(folder):
    X, y = make_table(3000)
    write_libsvm(folder / "turned.txt", X, np.where(np.arange(3000) < 2000, y, -y))
    succeed(folder, "stream", "turned.txt", *SMALL, "--out", "model")
    model = isokern.load(folder / "model")
    facts, _, experts = succeed(folder, "info", "model").out.partition("\n\n")
    assert re.search(rf"^error so far +{model.error_:.4f}$", facts, re.MULTILINE)
    (n_drifts, first) = re.search(r"^drifts +(\d+), latest at rows ([\d,]+)", facts, re.MULTILINE).groups()
    assert (int(n_drifts), int(first.replace(",", ""))) == (model.n_drifts_, model.drifts_[0])
    assert re.search(r"^recent rows +[\d,]+ in the file; .* drops them$", facts, re.MULTILINE)
    selection = model.selection_
    assert re.search(rf"^leader +{re.escape(selection['leader'])}$", facts, re.MULTILINE)
    shown = [re.split(r"  +", line.strip()) for line in experts.splitlines()[1:]]
    errors = zip(selection["candidates"], selection["errors"], strict=True)
    assert [line[:2] for line in shown] == [[name, f"{error:.4f}"] for name, error in errors]
    assert [line[0] for line in shown if line[-1] == "leader"] == [selection["leader"]]


def test_info_mentions_no_rows_if_the_file_has_none(folder):
    model = AdaptiveIKClassifier(random_state=0).fit(*make_table())
    isokern.save(model, folder / "model", buffer=False)
    assert "recent rows" not in succeed(folder, "info", "model").out
    isokern.save(AdaptiveIKClassifier().partial_fit([[0.0]], [1]), folder / "model")
    assert succeed(folder, "info", "model").facts["drifts"] == "0"


def test_json_has_null_for_a_metric_that_is_not_defined(fitted):
    (fitted / "nothing.txt").write_text("? 1:0.5\n")
    facts = succeed(fitted, "evaluate", "rows.txt.isokern", "nothing.txt", "--json", "--metrics", "kappa").out
    assert json.loads(facts, parse_constant=pytest.fail)["accuracy"] is None


def test_a_regressor_predicts_and_is_evaluated(tmp_path):
    X, _ = make_table()
    write_libsvm(tmp_path / "numbers.txt", X, X[:, 0].round(1))
    isokern.save(IKOGDRegressor(n_partitionings=10, random_state=0).fit(X, X[:, 0].round(1)), tmp_path / "model")
    assert len(succeed(tmp_path, "predict", "model", "numbers.txt").out.split()) == 600
    assert json.loads(succeed(tmp_path, "evaluate", "model", "numbers.txt", "--json").out)["r2"] > 0.5


# -- demo, data, info


def test_the_demo_lists_three_learners_and_saves_a_plot(tmp_path):
    shown = succeed(tmp_path, "demo", "--rows", 6000, "--plot", "x.png").out
    names = ["isokern", "random forest", "linear SGD"]
    assert re.findall(rf"^({'|'.join(names)})(?: +\d+\.\d%){{4}} +[\d,]+ *$", shown, flags=re.MULTILINE) == names
    assert re.findall(r"^row ([\d,]+): ", shown, flags=re.MULTILINE) == ["2,000", "3,000", "4,000", "5,000", "6,000"]
    assert "jumps at row 2,000 and moves from row 4,000 on" in " ".join(shown.split())
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_all_eleven_data_sets_are_listed(tmp_path):
    _, *lines = succeed(tmp_path, "data", "--folder", tmp_path).out.splitlines()
    assert [line.split()[0] for line in lines] == [entry.name for entry in isokern.data.list_datasets()]
    assert len(lines) == 11


def test_a_data_set_is_read_from_a_folder(tmp_path, data_set):
    facts = succeed(tmp_path, "data", "a9a", "--folder", data_set("a9a").parent).out
    assert re.findall(r"(\S+) rows +([\d,]+)", facts) == [("training", "32,561"), ("test", "16,281")]


def test_info_describes_the_installation_or_a_model(fitted):
    assert succeed(fitted, "info").facts["isokern"] == isokern.__version__
    facts = succeed(fitted, "info", "three.txt.isokern").facts
    assert (facts["class"], facts["n_features_in_"], facts["n_partitionings"]) == ("IKOGDClassifier", "4", "10")
    assert facts["classes_"] == "-1, 0, 1, 2"


def info_of(folder, model):
    """Return the two parts that info prints of a model: facts and columns."""
    isokern.save(model, folder / "described")
    facts, _, columns = succeed(folder, "info", "described").out.partition("\n\n")
    return facts, [line.split() for line in columns.splitlines()]


def test_info_names_the_version_that_wrote_the_file(fitted):
    written = f"isokern {isokern.__version__}"
    assert succeed(fitted, "info", "rows.csv.isokern").out.splitlines()[1].split(maxsplit=2)[2] == written


def test_info_lists_the_columns_and_their_types(fitted):
    *_, head, first, second, third, last = succeed(fitted, "info", "rows.csv.isokern").out.splitlines()
    assert head.split(maxsplit=1) == ["columns", "4, of which 0 are categories"]
    assert [line.split() for line in (first, second, third, last)] == [
        [str(k), n, "number"] for k, n in enumerate(NAMES)
    ]


def test_info_lists_the_first_of_very_many_columns(tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 1000))
    names = ["wide " * 20, "two\nlines", *map(str, range(998))]
    model = IKOGDClassifier(n_partitionings=2, n_cells=2).fit(X, np.arange(20) % 12)
    model.feature_names_in_ = np.array(names, dtype=object)
    facts, columns = info_of(tmp_path, model)
    assert "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ..." in facts
    assert len(columns) == 32
    assert columns[0] == ["columns", "1,000,", "of", "which", "0", "are", "categories"]
    assert columns[2] == ["1", "'two\\nlines'", "number"]
    assert columns[-1] == ["...", "and", "970", "more"]


def test_info_lists_categories(tmp_path):
    model = IKOGDClassifier(n_partitionings=2, n_cells=2).fit(np.eye(4), [0, 1, 0, 1])
    model.is_categorical_ = np.array([False, True, True, True])
    counted = {f"c{k}": 1000 - k for k in range(30)}
    model.categories_ = {1: Categories.of(dict(list(counted.items())[:2]), 2), 2: Categories.of(counted, 5000)}
    _, columns = info_of(tmp_path, model)
    head, number, few, many, uncounted = (" ".join(column) for column in columns)
    assert head == "columns 4, of which 3 are categories"
    assert number == "0 number"
    assert few == "1 category, 2 in the rows of the map: c0 (1,000), c1 (999)"
    assert many.startswith("2 category, 5,000 in the rows of the map: c0 (1,000), c1 (999), c2") and many.endswith(
        "c19 (981), ..."
    )
    assert uncounted == "3 category"
