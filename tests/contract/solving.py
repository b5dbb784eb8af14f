"""Shared code of the contract's tests: solve and check, compare trees."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from policytree.problem.types import Problem, SearchLimits, Status
from policytree.solvers.exact.engine_table import SWITCHES, engines_for
from policytree.solvers.exact.engine_table import Case as EngineCase
from tests.support import checker
from tests.support.strategies import Case

PATIENCE = SearchLimits(time_limit=20.0)  # a search that should take milliseconds must fail a test, not hang it


def solve(solver, case: Case, limits: SearchLimits = PATIENCE, **switches):
    """Solve, and check all that can be checked without the optimum."""
    problem = case.problem()
    solution = solver(problem, limits, **switches)
    checker.check_solution(problem, case.X, solution)
    return solution


def all_settings(solver) -> list[dict[str, bool]]:
    """Every combination of the switches within kernels; with these on, and all off, those of engines: each, and all."""
    names = getattr(solver, "switches", ())
    within, engines = [n for n in names if n not in SWITCHES], [n for n in names if n in SWITCHES]
    found = [dict(zip(within, values, strict=True)) for values in product([True, False], repeat=len(within))]
    if engines:
        found += [{name: False} for name in engines]
        found += [dict.fromkeys(engines, False), dict.fromkeys(names, False)]
    return found


def working(names: Sequence[str], problem: Problem) -> list[str]:
    """Switches that change what a search does: not those of engines that do not apply to a problem of this size."""
    engines = {engine.name for engine in engines_for(EngineCase.of(problem))}
    return [name for name in names if name not in SWITCHES or name.replace("_", " ") in engines]


def settings_in_turn(solver, problem: Problem, turn: int) -> list[dict[str, bool]]:
    """All switches on, all off, and two of them off by themselves, which are others in the next turn.

    All on finds a bound that is wrong; one off finds what that one hides.
    """
    names = getattr(solver, "switches", ())
    some = working(names, problem)
    off = dict.fromkeys(some[(turn + more) % len(some)] for more in (0, 3)) if some else ()
    return [{}, *({name: False} for name in off), dict.fromkeys(names, False)]


def assert_same_tree(one, other):
    """Every array of two trees is identical."""
    for name in ("children_left", "children_right", "feature", "threshold", "missing_go_to_left", "action"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    np.testing.assert_array_equal(one.value, other.value)
    np.testing.assert_array_equal(one.n_node_samples, other.n_node_samples)


def prove(solver, case: Case):
    """Solve to the end and check the solution."""
    solution = solve(solver, case, SearchLimits(time_limit=60.0))
    assert solution.status is Status.OPTIMAL
    return solution
