"""Test which claims of the experiments made-up records confirm.

test_experiments.py compares the texts of verdicts with those in the documentation.
"""

from __future__ import annotations

import pytest

from isokern.data import list_datasets
from isokern.experiments import NAMES, find, settings

STOPPED = {"stopped": "time limit of 120 s"}
A9A = next(info for info in list_datasets() if info.name == "a9a")


def runs(dataset="a9a", n_test=100_000, **methods):
    """Return a record for each method, given its measurements."""
    same = {"dataset": dataset, "source": dataset, "seed": 0, "n_train": 60_000, "n_test": n_test}
    return [{**same, "method": name, **measured} for name, measured in methods.items()]


def holds(name, records):
    return [verdict.holds for verdict in find(name).verdicts(records)]


@pytest.mark.parametrize("name", NAMES)
def test_without_records_no_claim_is_judged(name):
    assert set(holds(name, [])) == {None}


def batch(voronoi, nogd, trees, ogd_seconds):
    """Return records of mnist, where all claims hold, and of a9a."""
    both = [(dict.fromkeys(("IK_a-OGD", "IK_i-OGD"), 0.9) | {"NOGD": 0.8}, 20.0)]
    both += [({"IK_a-OGD": voronoi, "IK_i-OGD": trees, "NOGD": nogd}, ogd_seconds)]
    records = []
    for dataset, (accuracies, seconds) in zip(("mnist", "a9a"), both, strict=True):
        measured = {name: {"accuracy": accuracy, "seconds": 1.0} for name, accuracy in accuracies.items()}
        rivals = {"OGD": {"seconds": seconds, "accuracy": 0.9}, "AdaRaker": {"seconds": 10 * seconds, "accuracy": 0.8}}
        records += runs(dataset, **measured, **rivals)
    return records


def adaraker(accuracy, dataset):
    return runs(dataset, OGD={"accuracy": 0.9}, AdaRaker={"accuracy": accuracy})


def nogd_from_data(accuracy):
    return runs(**{"IK_i-OGD": {"accuracy": 0.85}, "NOGD, lambda from data": {"accuracy": accuracy}})


def stopped_ogd(**measured):
    return runs(**{"IK_i-OGD": {"seconds": 1.0}, "OGD": measured})


def effect_of_t(accuracies, nogd, seconds):
    records = []
    for size, accuracy, rival, spent in zip((100, 1000), accuracies, (0.5, nogd), (1.0, seconds), strict=True):
        ours = {"size": size, "accuracy": accuracy, "seconds": spent}
        records += runs(**{"IK_i-OGD": ours, "NOGD": {"size": size, "accuracy": rival}})
    return records


def online(accuracy, growth, ogd_growth, n_initial=1000, n_done=4000):
    """Return records of a stream whose last tenth comes after 4.6 times as many rows as its first."""
    ogd = {"growth": ogd_growth, "accuracy": 0.8, "n_initial": n_initial, "n_done": n_done}
    return runs(
        "covertype",
        **{"IK_i-OGD": {"accuracy": accuracy, "growth": growth}, "NOGD": {"accuracy": 0.8}, "OGD": ogd},
    )


def primal_dual(share, dual_share, dual_seconds, **stopped):
    dual = {"share": dual_share, "seconds": dual_seconds, **stopped}
    return runs(**{"IK-OGD": {"share": share, "seconds": 1.0}, "IK-OGD(dual)": dual})


def dot_product(learn, naive):
    """Return records for three psi; the naive form did not finish the largest."""
    records = []
    for psi, ours, other in ((4, 1.0, {"total": 4.0}), (4096, learn, {"total": naive}), (8192, learn, STOPPED)):
        total = 2.0 if psi == 4 else 8.0
        records += runs(
            **{"IK-OGD": {"psi": psi, "total": total, "learn": ours}, "IK-OGD(naive)": {"psi": psi, **other}}
        )
    return records


def svm(accuracy, seconds, map_seconds, from_data, n_learned=60_000):
    methods = {
        "IK_a-SVM": {"accuracy": accuracy, "seconds": seconds, "map_seconds": map_seconds},
        "SVM": {"accuracy": 0.8, "seconds": 100.0, "n_learned": n_learned},
        "SVM, lambda from data": {"accuracy": from_data},
    }
    return runs(**methods) + runs("url", **methods)


def additive(chi2_map, ik_map, dataset="mnist"):
    accuracies = {"LIBSVM, IK_a": 0.9, "LIBSVM, chi2": 0.88, "LIBLINEAR, chi2": chi2_map, "LIBLINEAR, IK_a": ik_map}
    return runs(dataset, **{name: {"accuracy": accuracy} for name, accuracy in accuracies.items()})


def gpu(cpu, gpu=None, **changes):
    methods = {"CPU": {"seconds": cpu}} | ({"GPU": {"seconds": gpu}} if gpu else {})
    return [{**run, "n_train": A9A.n_train, "n_test": A9A.n_test, **changes} for run in runs(**methods)]


def datasets(*names, **changes):
    """Return records with the published counts of data sets."""
    keys = ("n_train", "n_test", "n_features", "nonzero")
    counts = [dict(zip(keys, settings.DATASETS_PUBLISHED[name], strict=True)) for name in names]
    return [{"dataset": name, "source": name, **n, **changes} for name, n in zip(names, counts, strict=True)]


def feature_map_size(**changes):
    record = {"dataset": "a9a", "partitioning": "tree", "psi": 16, "n_partitionings": 100, "n_cells": 16}
    return [record | {"n_features": 1600, "fewest_nonzero": 100, "most_nonzero": 100, "kernel_error": 0.0} | changes]


def kernel_shape(error, best_error):
    errors = {"psi": 256, "error": error, "best_error": best_error, "lambda": 2.77, "best_lambda": 9.0}
    return [{"kernel": "trees", **errors}, {"kernel": "trees, capped", **errors}]


def contours(sparse_reach):
    reaches = {"trees": sparse_reach, "Voronoi": 0.5}
    return [{"kernel": name, "dense_reach": 0.2, "sparse_reach": reach} for name, reach in reaches.items()]


@pytest.mark.parametrize(
    ("name", "records", "expected"),
    [
        ("batch", batch(0.90, 0.85, 0.88, 50.0), [True, None, True, True, True, True]),
        ("batch", batch(0.83, 0.85, 0.84, 5.0), [False, None, False, True, False, False]),
        ("batch", batch(0.845, 0.85, 0.846, 50.0), [True, None, True, True, True, True]),  # equal in two decimals
        ("batch", batch(0.90, 0.85, 0.91, 50.0), [True, None, False, True, True, True]),
        ("batch", adaraker(0.91, "a9a"), [None, None, None, False, None, None]),
        ("batch", adaraker(0.91, "url"), [None] * 6),  # where the paper's ran out of memory
        ("batch", stopped_ogd(expected_seconds=10.0, **STOPPED), [None] * 4 + [True, None]),
        ("batch", stopped_ogd(expected_seconds=9.0, **STOPPED), [None] * 4 + [False, None]),
        ("batch", stopped_ogd(**STOPPED), [None] * 6),
        ("batch", stopped_ogd(stopped="memory ran out"), [None] * 6),
        ("batch", nogd_from_data(0.84), [None, True, None, None, None, None]),
        ("batch", nogd_from_data(0.86), [None, False, None, None, None, None]),
        ("effect-of-t", effect_of_t((0.7, 0.9), 0.8, 5.0), [True, True, True]),
        ("effect-of-t", effect_of_t((0.9, 0.9), 0.9, 10.0), [False, False, False]),
        ("online", online(0.9, 1.1, 3.0), [True, None, True, True]),
        ("online", online(0.7, 1.1, 1.2), [False, None, False, False]),
        ("online", online(0.8, 2.0, 3.0), [True, None, True, False]),  # ours grows
        ("online", online(0.8, 1.1, 2.7), [True, None, True, False]),  # OGD's by less than half as much as the rows
        ("online", online(0.8, 1.1, 1.2, n_initial=16_000), [True, None, True, True]),  # the rows grow to 1.225
        ("online", online(0.8, 1.12, 1.2, n_initial=16_000), [True, None, True, False]),
        ("online", online(0.8, 1.1, 1.11, n_initial=16_000), [True, None, True, False]),
        ("online", nogd_from_data(0.84), [None, True, None, None]),
        ("online", nogd_from_data(0.86), [None, False, None, None]),
        ("primal-dual", primal_dual(0.02, 0.99, 100.0), [True, True]),
        ("primal-dual", primal_dual(0.02, 0.99, 99.0), [True, False]),
        ("primal-dual", primal_dual(0.2, 0.99, 100.0), [False, True]),
        ("primal-dual", primal_dual(0.02, 0.8, 5.0), [False, False]),
        ("primal-dual", primal_dual(0.02, 0.99, 9.0, stopped_at_row=7, expected_seconds=100.0), [True, True]),
        ("primal-dual", primal_dual(0.02, 0.99, 9.0, stopped_at_row=7, expected_seconds=99.0), [True, False]),
        ("primal-dual", primal_dual(0.02, 0.8, 5.0, stopped_at_row=7), [None, None]),  # more time might confirm them
        ("primal-dual", primal_dual(0.2, 0.8, 5.0, stopped_at_row=7), [False, None]),
        ("dot-product", dot_product(2.0, 200.0), [True, True]),
        ("dot-product", dot_product(5.0, 200.0), [True, False]),
        ("dot-product", dot_product(2.0, 20.0), [False, True]),
        ("svm", svm(0.81, 1.0, 2.0, from_data=0.8), [True, True, True, True, True]),
        ("svm", svm(0.804, 1.0, 2.0, from_data=0.8), [False, True, True, True, True]),  # not higher
        ("svm", svm(0.79, 1.0, 20.0, from_data=0.95), [False, True, False, True, False]),
        ("svm", svm(0.7, 11.0, 20.0, from_data=0.6), [False, False, True, False, False]),
        ("svm", svm(0.82, 11.0, 20.0, from_data=0.8), [True, False, True, False, False]),  # not comparable
        ("svm", svm(0.81, 11.0, 20.0, from_data=0.8, n_learned=30_000), [True, True, True, True, False]),
        ("svm", svm(0.81, 11.0, 20.0, from_data=0.8, n_learned=15_000), [True, True, True, True, True]),
        ("additive", additive(0.865, 0.89), [True, True, True]),
        ("additive", additive(0.86, 0.89), [True, True, True]),  # lower by exactly the tolerance
        ("additive", additive(0.859, 0.889), [True, False, True]),
        ("additive", additive(0.87, 0.879), [False, True, True]),
        ("additive", additive(0.91, 0.9), [True, True, False]),
        ("additive", additive(0.91, 0.9, dataset="url"), [True, True, None]),  # url is not dense
        ("gpu", gpu(2.9), [None, True]),
        ("gpu", gpu(3.1), [None, False]),
        ("gpu", gpu(2.9, source="a9a-subset"), [None, None]),  # only all rows of official files count
        ("gpu", gpu(2.9, n_train=5000), [None, None]),
        ("gpu", gpu(10.0, 4.0, n_train=9), [True, None]),
        ("gpu", gpu(10.0, 6.0, n_train=9), [False, None]),
        ("datasets", datasets("a9a"), [True, None]),
        ("datasets", datasets("a9a", nonzero=11.26), [True, None]),
        ("datasets", datasets("a9a", nonzero=11.5), [False, None]),
        ("datasets", datasets("a9a", n_test=16280), [False, None]),
        ("datasets", datasets("a9a", n_test=16280, source="a9a-subset"), [None, None]),
        ("datasets", datasets("url", "a9a"), [True, True]),
        ("datasets", datasets("mnist", "a9a"), [True, False]),  # both are dense
        ("datasets", datasets("real-sim", "mnist"), [True, False]),  # about as many rows
        ("feature-map-size", feature_map_size(), [True, True]),
        ("feature-map-size", feature_map_size(n_features=1599), [False, True]),
        ("feature-map-size", feature_map_size(fewest_nonzero=99), [False, True]),
        ("feature-map-size", feature_map_size(kernel_error=0.01), [True, False]),
        ("kernel-shape", kernel_shape(0.01, 0.01), [True, True]),
        ("kernel-shape", kernel_shape(0.3, 0.02), [True, False]),
        ("kernel-shape", kernel_shape(0.3, 0.06), [False, False]),
        ("kernel-shape", kernel_shape(0.01, 0.01)[:1], [None, None]),
        ("contours", contours(0.31), [True]),
        ("contours", contours(0.29), [False]),
        ("contours", contours(0.31)[1:], [None]),
    ],
)
def test_claims_are_judged_by_their_rules(name, records, expected):
    assert holds(name, records) == expected


@pytest.mark.parametrize(("n_test", "expected"), [(600, True), (10_000, False)])
def test_accuracies_that_the_test_rows_cannot_tell_apart_are_not_lower(n_test, expected):
    pair = {"IK_i-OGD": {"accuracy": 0.965}, "NOGD": {"accuracy": 0.975}}
    verdict = find("batch").verdicts(runs(n_test=n_test, **pair))[0]
    assert verdict.holds == expected
    assert "not lower by more than 0.005 and 2 standard errors of the difference" in verdict.rule
    assert verdict.found.endswith("a9a (.965 vs .975)" if expected else "a9a (.965 vs .975; in the paper .84 vs .84)")


@pytest.mark.parametrize(("n_test", "expected"), [(600, False), (10_000, True)])
def test_accuracies_that_the_test_rows_cannot_tell_apart_are_not_higher(n_test, expected):
    pair = {"IK_a-SVM": {"accuracy": 0.975}, "SVM": {"accuracy": 0.965}}
    verdict = find("svm").verdicts(runs("url", n_test=n_test, **pair))[0]
    assert verdict.holds == expected
    assert "higher by more than 0.005 and 2 standard errors of the difference" in verdict.rule


def test_rows_of_a_stream_count_as_test_rows():
    records = online(0.79, 1.0, 3.0)
    assert holds("online", records)[0] is False
    short = [{**record, "n_stream": 400} for record in records]
    for record in short:
        del record["n_test"]
    assert holds("online", short)[0] is True


def test_an_accuracy_names_the_sample_that_it_was_learned_from():
    records = [{**one, "n_learned": 20_000} if "LIBSVM" in one["method"] else one for one in additive(0.88, 0.93)]
    found = find("additive").verdicts(records)[0].found
    assert found == "on 1 of 1 data sets: mnist (.930 vs .900 from 20,000 rows)"


def test_nogd_is_compared_at_the_largest_size_that_both_finished():
    records = effect_of_t((0.7, 0.9), 0.8, 5.0)
    records += runs(**{"IK_i-OGD": {"size": 9_000, "accuracy": 0.75, "seconds": 9.0}})
    found = find("effect-of-t").verdicts(records)[1].found
    assert found == "on 1 of 1 data sets: a9a (.800 vs .900 at 1,000)"


@pytest.mark.parametrize(
    ("name", "place", "good", "bad"),
    [
        ("kernel-shape", 1, kernel_shape(0.01, 0.01), kernel_shape(0.3, 0.02)),
        ("primal-dual", 0, primal_dual(0.02, 0.99, 100.0), primal_dual(0.2, 0.99, 100.0)),
        ("batch", 5, batch(0.90, 0.85, 0.88, 50.0), batch(0.83, 0.85, 0.84, 5.0)),
    ],
)
def test_a_verdict_gives_the_reason_only_if_the_claim_fails(name, place, good, bad):
    verdicts = [find(name).verdicts(records)[place] for records in (good, bad)]
    assert [bool(verdict.why) for verdict in verdicts] == [False, True]


@pytest.mark.parametrize(("source", "expected"), [("rcv1.binary", False), ("rcv1-subset", None)])
def test_stand_ins_do_not_count_where_the_number_of_rows_matters(source, expected):
    records = [run | {"dataset": "rcv1.binary", "source": source} for run in primal_dual(0.02, 0.99, 5.0)]
    assert holds("primal-dual", records) == [True, expected]


def test_a_verdict_names_what_does_not_satisfy_the_rule():
    maps, _ = find("feature-map-size").verdicts(feature_map_size(n_features=1599))
    assert maps.found.endswith("not on a9a (tree, psi = 16)")
    files, _ = find("datasets").verdicts(datasets("a9a", n_test=16280))
    assert "not on a9a (32,561, 16,280" in files.found
