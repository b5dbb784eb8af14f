"""Which search optimises an objective that is no sum over rows."""

from __future__ import annotations

from functools import partial

from policytree.exceptions import InputError
from policytree.objectives.auc import AUC
from policytree.objectives.f_score import FScore, OmegaFScore
from policytree.objectives.monotone import MonotoneObjective
from policytree.objectives.objective import Objective
from policytree.objectives.partial_auc import PartialAUC
from policytree.solvers.bags import solve_bags
from policytree.solvers.monotone import solve_monotone
from policytree.solvers.ratio import solve_ratio


def solver_for(objective: Objective):
    """The solver of an objective, a function of problem and limits; the problem's losses are its rows' weights.

    Raises
    ------
    InputError
        If there is none.
    """
    if isinstance(objective, (AUC, PartialAUC, OmegaFScore)):
        return partial(solve_bags, objective=objective)
    if isinstance(objective, FScore):
        return partial(solve_ratio, objective=objective)
    if isinstance(objective, MonotoneObjective):
        return partial(solve_monotone, objective=objective)
    raise InputError(f"objective={objective!r} has no solver; use one of policytree.objectives.")
