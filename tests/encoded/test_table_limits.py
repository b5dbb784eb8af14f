"""Limits of time and memory of a search by tables: kept to, and said."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from policytree import OptimalTreeClassifier, PolicyTree
from policytree.encoded import encode, solve
from policytree.encoded.streams import Streams
from policytree.exceptions import SearchWarning
from policytree.problem.types import Status
from policytree.solvers.core.limits import Clock
from policytree.solvers.out_of_core import table_search
from policytree.solvers.out_of_core.table_search import _FirstCuts
from tests.support.streamed import to_learn

pytest.importorskip("pyarrow")


@pytest.fixture(autouse=True)
def by_tables(monkeypatch):
    monkeypatch.setattr(solve, "FEW_ROWS", 0)


@pytest.fixture
def rows(rng):
    """Numbers of many values, with gaps: every value is cut from the others twice."""
    frame = pd.DataFrame({f"x{j}": rng.normal(size=200).round(2) for j in range(3)})
    frame = frame.mask(rng.random(frame.shape) < 0.1)
    return frame.assign(y=rng.choice(["a", "b", "c"], 200))


@pytest.mark.parametrize(("depth", "min_leaf"), [(2, 1), (3, 1), (3, 5)])
def test_memory_of_tables_is_foreseen(rows, tmp_path, depth, min_leaf):
    data = encode(to_learn(rows, ["x0", "x1", "x2"], y="y"), max_bins=40, directory=tmp_path)
    streams = Streams(data, [0, 1, 2], min_leaf > 1, 1, 1, Clock(None))
    foreseen = solve._bytes_of_tables(streams, depth, 1e12)
    tree = OptimalTreeClassifier(max_depth=depth, min_samples_leaf=min_leaf).fit(data)  # kernels are loaded
    tracemalloc.start()
    try:
        tree.set_params(memory_limit=foreseen).fit(data)
        used = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0.3 * foreseen < used < foreseen + 3e6


def test_long_tables_are_taken_in_slices(rows, tmp_path, monkeypatch):
    """Slices give the same tree, and keep the memory of sums by the cuts of three features down."""
    min_leaf = 5
    data = encode(to_learn(rows, ["x0", "x1", "x2"], y="y"), max_bins=40, directory=tmp_path)
    tree = OptimalTreeClassifier(max_depth=3, min_samples_leaf=min_leaf)
    whole, streams = tree.fit(data).export_text(), Streams(data, [0, 1, 2], min_leaf > 1, 1, 1, Clock(None))
    at_once = solve._bytes_of_tables(streams, 3, 1e12)
    monkeypatch.setattr(table_search, "SLICE_BYTES", 60_000)
    foreseen = solve._bytes_of_tables(streams, 3, 1e12)
    tracemalloc.start()
    try:
        assert tree.set_params(memory_limit=foreseen).fit(data).export_text() == whole
        used = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert foreseen < 0.6 * at_once and 0.3 * foreseen < used < foreseen + 3e6


def test_a_limit_ends_the_search_between_tables(rows, tmp_path, monkeypatch, moved_clock):
    """Also before the first triple is read: a path may ask about one feature thrice."""
    data = encode(to_learn(rows, ["x0", "x1", "x2"], y="y"), max_bins=10, directory=tmp_path)
    best = OptimalTreeClassifier(max_depth=3).fit(data)
    two = OptimalTreeClassifier(max_depth=2).fit(data)
    added = []

    def add(*arguments):
        added.append(arguments)
        moved_clock[0] += 0.3

    monkeypatch.setattr(_FirstCuts, "add", add)
    with pytest.warns(SearchWarning, match="time limit"):
        tree = OptimalTreeClassifier(max_depth=3, time_limit=0.25).fit(data)
    assert len(added) == 1
    assert tree.status_ is Status.TIME_LIMIT
    assert best.objective_value_ < tree.objective_value_ == two.objective_value_
    assert tree.objective_bound_ <= best.objective_value_


def test_compiling_kernels_is_no_search(rows, tmp_path, monkeypatch, moved_clock):
    data = encode(to_learn(rows.assign(a=rows.x0.fillna(0), b=0.0), ["x1"], rewards=["a", "b"]), directory=tmp_path)

    def compiling(needed):
        moved_clock[0] += 0.5
        return 0.5

    monkeypatch.setattr(solve, "load_kernels", compiling)
    tree = PolicyTree(max_depth=2, time_limit=0.4).fit(data)
    assert tree.status_ in (Status.OPTIMAL, Status.OPTIMAL_GIVEN_GUESSES)
    assert np.isfinite(tree.objective_value_)
