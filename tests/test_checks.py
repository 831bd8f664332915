"""Check the validation of parameters that all estimators share."""

from __future__ import annotations

import numpy as np
import pytest

from isokern.checks import n_threads


@pytest.mark.parametrize("n_jobs", [0, True, 0.5, "x", [1], 2**31, -(2**63)])
def test_an_invalid_n_jobs_is_an_error(n_jobs):
    with pytest.raises(ValueError, match=r"n_jobs must be None or an integer below 2\^31, not 0; got"):
        n_threads(n_jobs)


def test_threads_are_as_many_as_jobs():
    assert [n_threads(n_jobs) for n_jobs in (None, 1, 3, np.int64(2))] == [0, 1, 3, 2]
    assert n_threads(-1) >= 1
