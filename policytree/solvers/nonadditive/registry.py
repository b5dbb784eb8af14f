"""The search of each objective that is no sum over rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from policytree.exceptions import InputError, quoted
from policytree.objectives.objective import Objective
from policytree.problem.types import Problem, SearchLimits, Solution
from policytree.solvers.multi_objective.monotone import solve_monotone
from policytree.solvers.nonadditive.fractional import solve_fractional
from policytree.solvers.nonadditive.ranking import solve_ranking

SOLVERS: dict[str, Callable[..., Solution]] = {
    "ranking": solve_ranking,
    "fractional": solve_fractional,
    "monotone": solve_monotone,
}


#: How much heavier one class may be than another, in all. Losses of all classes become whole numbers of one unit, whose
#: rounding is 2^-50 of the heaviest class or less; these objectives divide by the weight of a class, and so magnify it.
#: A function of Python may magnify it more.
MOST_UNEQUAL = {"ranking": 1e7, "fractional": 1e7, "monotone": 1e5}


def solver_for(objective: Objective) -> Callable[..., Solution]:
    """The solver of an objective, a function of problem and limits; the problem's losses are its rows' weights.

    Raises
    ------
    InputError
        If there is none. The function raises it for classes that differ too much in weight.
    """
    if objective.search not in SOLVERS:
        raise InputError(f"objective={quoted(objective)} has no solver; use one of policytree.objectives.")
    return partial(_solve, objective=objective)


def _solve(problem: Problem, limits: SearchLimits | None = None, *, objective: Objective) -> Solution:
    _refuse_unequal_classes(problem, objective)
    return SOLVERS[objective.search](problem, limits, objective=objective)


def _refuse_unequal_classes(problem: Problem, objective: Objective) -> None:
    weight = np.bincount(
        problem.losses.argmin(axis=1), weights=problem.losses.max(axis=1), minlength=problem.losses.shape[1]
    )
    present = weight[weight > 0]
    most = MOST_UNEQUAL[objective.search]
    if len(present) and present.max() > most * present.min():
        raise InputError(
            f"sample_weight makes one class weigh {present.max() / present.min():.3g} times as much as another; "
            f"objective={objective.name!r} is proved up to {most:g} times: rescale the weights of a class."
        )
