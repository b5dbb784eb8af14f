"""Which search optimises an objective that is no sum over rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from policytree.exceptions import InputError
from policytree.objectives.objective import Objective
from policytree.solvers.bags import solve_bags
from policytree.solvers.monotone import solve_monotone
from policytree.solvers.ratio import solve_ratio
from policytree.types import Solution

SOLVERS: dict[str, Callable[..., Solution]] = {"bags": solve_bags, "ratio": solve_ratio, "monotone": solve_monotone}


def solver_for(objective: Objective) -> Callable[..., Solution]:
    """The solver of an objective, a function of problem and limits; the problem's losses are its rows' weights.

    Raises
    ------
    InputError
        If there is none.
    """
    if objective.search not in SOLVERS:
        raise InputError(f"objective={objective!r} has no solver; use one of policytree.objectives.")
    return partial(SOLVERS[objective.search], objective=objective)
