"""Fixtures and settings that all tests share."""

from __future__ import annotations

import os
import signal
import sys
import time
from types import SimpleNamespace

os.environ.setdefault("MPLBACKEND", "Agg")  # before anybody imports matplotlib: no test may need a display
# A worker of pytest has one core. Threads of OpenMP and BLAS spin while they wait for each other: a small fit
# took 70 times its processor time where other processes wanted the cores. Processes that tests start inherit this.
os.environ |= {name: os.environ.get(name, "1") for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from policytree.problem.types import Problem
from policytree.solvers.core import limits
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.kernels import compiling

# A first call compiles numba kernels, so a deadline would fail at random; derandomised, so that a red run
# can be repeated, and a failure says the decorator that draws its example again.
EVERY = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "print_blob": True}
settings.register_profile("ci", derandomize=True, database=None, **EVERY)
settings.register_profile("explore", max_examples=2_000, **EVERY)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give workers tests in order, to steal from each other at the end: fixtures of a module are made once."""
    if config.getvalue("dist") != "load":
        return None
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


@pytest.fixture(autouse=True)
def no_figures_left():
    """Close the pictures that a test drew: pyplot keeps them, and warns of more than twenty."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="session", autouse=True)
def limits_count_what_is_computed():
    """Time limits are in seconds of this process's CPU: what a search finds within them depends on no other process."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (limits, compiling):
            patch.setattr(module, "time", SimpleNamespace(perf_counter=time.process_time))
        yield


@pytest.fixture
def moved_clock(monkeypatch) -> list[float]:
    """The seconds that limits look at, the list's only item, which the test moves."""
    seconds = [0.0]
    for module in (limits, compiling):
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: seconds[0]))
    return seconds


@pytest.fixture
def ctrl_c():
    """Ctrl-C raises KeyboardInterrupt here and in processes that are started, also where a shell has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator that starts at the same place in every test."""
    return np.random.default_rng(20_240_611)


@pytest.fixture
def labelled_rows(rng):
    """Weighted, noisy labels of a rule on two of four features."""
    X = rng.integers(0, 12, (240, 4)).astype(float)
    y = np.where(((X[:, 0] > 5) & (X[:, 2] > 3)) ^ (rng.random(240) < 0.15), "yes", "no")
    return X, y, rng.lognormal(size=240)


@pytest.fixture
def rule_problem(rng) -> Problem:
    """Labels of a rule on two of five features, weighted and noisy; 60 thresholds a feature."""
    X = rng.integers(0, 61, (800, 5)).astype(float)
    y = ((X[:, 0] > 30) & (X[:, 1] > 20)) ^ (rng.random(800) < 0.1)
    w = rng.lognormal(size=800)
    losses = np.stack([w * y, w * ~y], axis=1)
    return Problem(bin_matrix(X), losses, 0.005 * w.sum(), 3)
