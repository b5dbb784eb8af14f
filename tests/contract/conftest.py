"""Warm-up: compiling the kernels must not count towards the time limits that tests set."""

from __future__ import annotations

import numpy as np
import pytest
from numba import config

from policytree.problem.types import SearchLimits
from policytree.solvers import SOLVERS
from policytree.solvers.core import compilation
from tests.support.strategies import Case


@pytest.fixture(scope="session")
def one_version_where_bounds_are_checked():
    """Kernels that have every way, for every problem: what has no strips and blocks is compiled from the same lines."""
    with pytest.MonkeyPatch.context() as patch:
        if config.BOUNDSCHECK:
            patch.setattr(compilation, "FEWEST", 0)
        yield


@pytest.fixture(scope="session", autouse=True)
def compiled(one_version_where_bounds_are_checked):
    """Solve one small problem of each kind with every solver: few and many thresholds, shallow and deep."""
    rng = np.random.default_rng(0)
    for solver in SOLVERS.values():
        for n_values, max_depth in ((5, 1), (5, 3), (300, 1), (300, 2), (300, 3)):
            X = rng.integers(0, n_values, (300, 2)).astype(float)
            case = Case(X, rng.integers(-5, 6, (300, 3)).astype(float), 40.0, max_depth)
            solver(case.problem(), SearchLimits())
