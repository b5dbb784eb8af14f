"""Contract of every bound of the whole problem: it exceeds no tree that is deeper than those that were searched.

A new bound of ``engine_table.py::ENGINES`` is tested here without a new line.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import inf

import numpy as np
import pytest

from policytree.problem.types import Problem, SearchLimits, SizeGates
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.exact.direct import solve_direct
from policytree.solvers.exact.engine_table import ENGINES, SWITCHES
from policytree.solvers.exact.shared_state import SharedState

BOUNDS = ["row_duals", *(engine.switch for engine in ENGINES if engine.bound is not None)]
OPEN = SizeGates(least_pricing_seconds=0.0, pricing_share=10.0, pair_share=inf)
SHAPES = {2: 5, 3: 3}  # columns, and values of each: few enough boxes of rows for every tree there is


def problem(rng: np.random.Generator, planted: bool) -> Problem:
    """Labels that one path of many questions explains, or that nothing does: only deep trees fit them."""
    p = int(rng.choice(list(SHAPES)))
    n, K = int(rng.integers(20, 50)), int(rng.integers(2, 4))
    X, label = rng.integers(0, SHAPES[p], (n, p)).astype(float), rng.integers(0, K, n)
    for step in reversed(range(7 * planted)):
        label[X[:, int(rng.integers(p))] == int(rng.integers(SHAPES[p]))] = step % K
    losses = (np.arange(K) != label[:, None]) * rng.integers(1, 4, n)[:, None].astype(float)
    return Problem(bin_matrix(X), losses, float(rng.choice([0.2, 0.5, 1.0])), None)


def least_cost(node, deeper: int) -> float:
    """Cost of the best tree of more than ``deeper`` levels of questions; infinite without one."""
    losses, codes = node.all_losses, node.codes

    @cache
    def least(rows: tuple[int, ...], deeper: int) -> float:
        found = inf if deeper >= 0 else int(losses[:, rows].sum(axis=1).min()) + node.penalty
        for of_rows in codes[:, rows]:
            for cut in np.unique(of_rows)[:-1]:
                left = tuple(row for row, code in zip(rows, of_rows, strict=True) if code <= cut)
                right = tuple(row for row, code in zip(rows, of_rows, strict=True) if code > cut)
                ways = {(deeper - 1, -1), (-1, deeper - 1)} if deeper > 0 else {(-1, -1)}
                found = min(found, *(least(left, one) + least(right, other) for one, other in ways))
        return found

    return least(tuple(range(node.n_rows)), deeper)


@pytest.mark.parametrize("switch", BOUNDS)
def test_a_bound_exceeds_no_deeper_tree(switch, monkeypatch):
    told = []

    def improve(shared, bound, depth, seconds, original=SharedState.improve):
        work = bound.work
        monkeypatch.setattr(
            bound, "work", lambda *given: told.append((shared.node, depth, work(*given))) or told[-1][2]
        )
        original(shared, bound, depth, seconds)
        monkeypatch.setattr(bound, "work", work)

    monkeypatch.setattr(SharedState, "improve", improve)
    rng, rises = np.random.default_rng(len(switch)), 0
    others = dict.fromkeys(set(SWITCHES) - {switch, "subsets"}, False)
    for i in range(48):  # the first 32 let a toy bound pass that was ten penalties too high
        given = problem(rng, planted=i % 4 > 0)
        for gates in (OPEN, replace(OPEN, most_priced_columns=0)):  # row duals apply, or do not
            solve_direct(given, SearchLimits(gates=gates), subsets=i % 2 > 0, **others)
        for node, depth, bound in told:
            assert bound <= least_cost(node, depth), f"a tree deeper than {depth} costs less: {given!r}"
            rises += bound > int(node.least_losses.sum()) + 2 * node.penalty
        told.clear()
    assert rises, "the bound said nothing of any of these problems"
