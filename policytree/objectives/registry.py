"""The objectives that have a name."""

from __future__ import annotations

from policytree.exceptions import InputError, quoted
from policytree.objectives.accuracy import Accuracy, BalancedAccuracy, WeightedAccuracy
from policytree.objectives.auc import AUC
from policytree.objectives.f_score import FScore, OmegaFScore
from policytree.objectives.objective import Objective
from policytree.objectives.partial_auc import PartialAUC

OBJECTIVES: dict[str, type[Objective]] = {
    each.name: each for each in (Accuracy, BalancedAccuracy, WeightedAccuracy, FScore, OmegaFScore, AUC, PartialAUC)
}


def resolve_objective(objective: str | Objective) -> Objective:
    """The objective that a name stands for (with its parameters' defaults), or the instance itself.

    Parameters
    ----------
    objective : str or Objective
        A name such as "accuracy", "f_score" or "auc", or an instance.

    Raises
    ------
    InputError
        If there is no such objective.

    Examples
    --------
    >>> from policytree.objectives.registry import resolve_objective
    >>> resolve_objective("f_score")
    FScore(beta=1.0)
    """
    if isinstance(objective, Objective):
        return objective
    if isinstance(objective, str) and objective in OBJECTIVES:
        return OBJECTIVES[objective]()
    raise InputError(
        f"objective={quoted(objective)} is not known; use one of {', '.join(map(repr, OBJECTIVES))}, or an instance "
        "from policytree.objectives, such as FScore(beta=2)."
    )
