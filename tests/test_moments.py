"""Check the running mean and standard deviation that standardise the targets of a regression."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from isokern.learners.commits import copy_arrays
from isokern.learners.moments import Moments, centres_and_spreads


def make_targets(n=60, n_outputs=2):
    rng = np.random.default_rng(0)
    return rng.normal(3.0, 2.0, (n, n_outputs)), rng.choice([0.0, 0.3, 1.0, 2.5], n)


def counted(moments, y, weights, sizes=(10**9,)):
    """Count targets in parts; return all residuals and units."""
    found, begin = [], 0
    for size in sizes:
        part = slice(begin, begin + size)
        standard = moments.next(y[part], None if weights is None else weights[part])
        copy_arrays(standard.copies)
        found.append(standard[:2])
        begin += size
    return [np.concatenate(tables) for tables in zip(*found, strict=True)]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_residuals_and_units_equal_the_reference(weighted):
    y, weights = make_targets()
    moments = Moments.none(2)
    residuals, units = counted(moments, y, weights if weighted else None)
    weights = weights if weighted else np.ones(60)
    for k in range(2):
        expected = reference.standardised_targets(y[:, k], weights)
        np.testing.assert_allclose(residuals[:, k], expected[0], atol=1e-12)
        np.testing.assert_allclose(units[:, k], expected[1], rtol=1e-9)
    np.testing.assert_allclose(moments.means, np.average(y, weights=weights, axis=0))
    again = moments.again(y, None)
    np.testing.assert_allclose(again.residuals, y - moments.means)
    deviation = np.sqrt(np.average((y - moments.means) ** 2, weights=weights, axis=0))
    np.testing.assert_allclose(again.units, np.tile(deviation, (60, 1)))
    assert again.copies == []


def with_outliers(y):
    """Return targets with single outliers, another level from target 200 on, and one level for 20 targets."""
    y = y.copy()
    y[[0, 5, 90, 91, 150]] = 1e6, -1e9, 1e3, 1e300, -40.0
    y[200:] += 1e4
    y[250:270] = 77.0
    y[300] = -1e300
    return y.clip(-1e50, 1e50)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("n_first", [0, 16, 400])
def test_outliers_and_lasting_changes_are_those_of_the_reference(n_first, weighted):
    y, weights = make_targets(400, 1)
    y = with_outliers(y[:, 0])
    moments = Moments.begun(y[:n_first, None])
    standard = moments.next(y[:, None], weights if weighted else None)
    weights = weights if weighted else np.ones(400)
    expected = reference.standardised_targets(y, weights, y[:n_first] if n_first else None)
    np.testing.assert_allclose(standard.residuals[:, 0], expected[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(standard.units[:, 0], expected[1], rtol=1e-6)
    learned = np.ones(400) if standard.weights is None else standard.weights
    np.testing.assert_array_equal(learned, np.where(expected[2], 0.0, weights))
    assert expected[2][[5, 91, 300]].all() == (n_first > 0)
    assert expected[2].sum() < 60


def test_a_first_batch_tells_typical_targets_from_others():
    rng = np.random.default_rng(0)
    for y in (rng.normal(size=16), rng.integers(0, 2, 15), np.zeros(9), np.array([0, 0, 0, 3.0, 0, 5]), np.ones(1)):
        found = centres_and_spreads(y[:, None].astype(float))
        np.testing.assert_array_equal(np.ravel(found), reference.centre_and_spread(y))


@pytest.mark.parametrize("sizes", [[1] * 400, [7, 13, 380], [399, 1]])
def test_any_split_of_a_stream_with_outliers_gives_the_same_bytes(sizes):
    y = np.column_stack([with_outliers(column) for column in make_targets(400, 2)[0].T])
    whole, split = Moments.begun(y[:16]), Moments.begun(y[:16])
    for one, other in zip(counted(whole, y, None), counted(split, y, None, sizes), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(whole.sums, split.sums)


def test_moments_of_an_older_file_get_limits_from_the_targets_to_come():
    y, _ = make_targets(60, 1)
    moments = Moments.none(1)
    counted(moments, y, None)
    older = Moments.from_state({"sums": moments.sums[:4]})
    older.check()
    np.testing.assert_array_equal(older.means, moments.means)
    counted(older, y, None)
    assert older.next(np.array([[1e6]]), None).weights[0] == 0.0


@pytest.mark.parametrize("sizes", [[1] * 60, [7, 13, 40], [59, 1]])
def test_any_split_of_a_stream_gives_the_same_bytes(sizes):
    y, weights = make_targets()
    weights[:5] = 0.0  # the first target that counts comes later
    whole, split = Moments.none(2), Moments.none(2)
    for one, other in zip(counted(whole, y, weights), counted(split, y, weights, sizes), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(whole.sums, split.sums)


def test_a_small_deviation_far_from_zero_is_found():
    y = 1e9 + 1e-3 * make_targets()[0]
    _, units = counted(Moments.none(2), y, None)
    np.testing.assert_allclose(units[-1], y.std(axis=0), rtol=1e-3)


def test_constant_targets_have_a_unit_of_one():
    residuals, units = counted(Moments.none(1), np.full((5, 1), 7.0), None)
    np.testing.assert_array_equal(residuals, 0.0)
    np.testing.assert_array_equal(units, 1.0)


def test_merged_moments_are_those_of_all_targets():
    y, _ = make_targets(90)
    parts = [Moments.none(2) for _ in range(3)]
    for k, part in enumerate(parts):
        counted(part, y[k::3], None)
    merged = Moments.merge(parts, np.full(3, 1 / 3))
    np.testing.assert_allclose(merged.means, y.mean(axis=0))
    np.testing.assert_allclose(merged.again(y, None).units[0], y.std(axis=0))


@pytest.mark.parametrize("sums", [np.zeros((3, 1)), np.full((13, 1), np.nan), -np.ones((13, 1)), np.zeros(4)])
def test_damaged_sums_are_refused(sums):
    with pytest.raises(ValueError, match="sums"):
        Moments(sums).check()
