"""Check the running mean and standard deviation that standardise the targets of a regression."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from isokern.learners.commits import copy_arrays
from isokern.learners.moments import Moments


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
    expected = reference.standardised_targets(y, weights)
    np.testing.assert_allclose(residuals, expected[0], atol=1e-12)
    np.testing.assert_allclose(units, expected[1], rtol=1e-9)
    np.testing.assert_allclose(moments.means, np.average(y, weights=weights, axis=0))
    again = moments.again(y)
    np.testing.assert_allclose(again.residuals, y - moments.means)
    deviation = np.sqrt(np.average((y - moments.means) ** 2, weights=weights, axis=0))
    np.testing.assert_allclose(again.units, np.tile(deviation, (60, 1)))
    assert again.copies == []


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
    np.testing.assert_allclose(merged.again(y).units[0], y.std(axis=0))


@pytest.mark.parametrize("sums", [np.zeros((3, 1)), np.full((4, 1), np.nan), -np.ones((4, 1)), np.zeros(4)])
def test_damaged_sums_are_refused(sums):
    with pytest.raises(ValueError, match="sums"):
        Moments(sums).check()
