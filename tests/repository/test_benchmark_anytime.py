"""Computations of benchmarks of unfinished searches: integrals, the tree in hand, a limit of processor time."""

import csv
import math
import time

import numpy as np
import pytest

from policytree.problem.types import Problem, SearchLimits, Status
from policytree.solvers import solve_direct
from policytree.solvers.core.binning import bin_matrix
from tests.support.simulations import benchmark_script


@pytest.fixture
def peers():
    """The script of searches side by side."""
    with benchmark_script("anytime_peers") as script:
        yield script


@pytest.fixture
def processor_limit():
    """The limit that its sibling puts on searches."""
    with benchmark_script("no_depth_limit") as script:
        yield script.processor_limit


def point(seconds, errors, proved=False):
    return {"seconds": seconds, "errors": errors, "proved": proved}


def test_integral_weighs_the_gap_of_every_second(peers):
    """Nothing for two seconds, 800 errors for three, the 628 of the best tree known for five."""
    traces = {
        ("Broward d4", "policytree"): [point(2.0, 800), point(5.0, 628, proved=True)],
        ("Broward d4", "CA-ConTree"): [],
    }
    ours, theirs = peers.summary(traces, 10.0)
    assert ours == ["Broward d4", "policytree", "2.00", "none", "628", "628", "5.00", f"{2 + 3 * 172 / 800:.2f}"]
    assert theirs == ["Broward d4", "CA-ConTree", "none", "none", "none", "628", "", "10.00"]


def test_best_known_is_the_fewest_of_any_solver(peers):
    traces = {
        ("FICO d5", "policytree"): [point(0.1, 600), point(3.0, 590)],
        ("FICO d5", "CA-ConTree"): [point(0.2, 588)],
        ("Broward d4", "policytree"): [point(0.1, 640)],
    }
    assert peers.best_known(traces) == {"FICO d5": 588, "Broward d4": 628}
    assert peers.errors_at(traces["FICO d5", "policytree"], 1.0) == 600
    assert peers.errors_at([], 1.0) == math.inf


def test_binary_columns_are_all_thresholds(peers):
    X = np.array([[1.0, 7.0], [3.0, 7.0], [2.0, 7.0]])
    np.testing.assert_array_equal(peers.binary_columns(X), [[0, 0], [1, 1], [1, 0]])


def test_processor_limit_ends_a_search_that_is_not_done(processor_limit):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 20)), rng.integers(0, 2, 400)
    problem = Problem(bin_matrix(X), np.column_stack([y, 1.0 - y]), 1.0, None)
    solve_direct(problem, SearchLimits(time_limit=0.1))  # loads kernels
    start = time.process_time()
    with processor_limit(0.5):
        found = solve_direct(problem, SearchLimits())
    assert found.status == Status.INTERRUPTED
    assert 0.5 <= time.process_time() - start < 5
    assert found.lower_bound < found.objective
    assert (
        solve_direct(Problem(bin_matrix(X), problem.losses, 0.0, 1)).status == Status.OPTIMAL
    )  # no limit is left over


@pytest.mark.parametrize("seconds", [0.2, 60.0])
def test_processor_limit_passes_on_what_is_raised(processor_limit, seconds):
    with pytest.raises(ZeroDivisionError), processor_limit(seconds):
        raise ZeroDivisionError


def test_no_other_search_had_a_better_tree_after_a_second(peers):
    """The page of comparisons says so; it must say otherwise if the results change."""
    traces = {}
    with (peers.RESULTS / "anytime_peers.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found = point(float(row["seconds"]), float(row["errors"]), row["proved"] == "True")
            traces.setdefault((row["case"], row["solver"]), []).append(found)
    assert {case for case, _ in traces} == set(peers.CASES)
    for (case, solver), points in traces.items():
        ours = peers.errors_at(traces[case, "policytree"], peers.EARLY)
        assert ours <= peers.errors_at(points, peers.EARLY), (case, solver)
