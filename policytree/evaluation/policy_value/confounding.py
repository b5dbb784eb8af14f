"""How far what a verdict says moves when a covariate that was seen is hidden: a measure for one that was not seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from policytree.data.features import shown
from policytree.evaluation.policy_value.benchmark_covariates import estimators_without, frame_of, nuisances_of
from policytree.evaluation.policy_value.rule_names import STATUS_QUO
from policytree.evaluation.policy_value.verdict import Reason, Verdict
from policytree.weighting.covariates import Covariates
from policytree.weighting.reward_estimator import RewardEstimator
from policytree.weighting.study_data import StudyData

MOST_BENCHMARKS = 3  # covariates that are left out in turn: each is one more cross-fitting of all nuisance models
LEAST_VARIANCE = 1e-9  # of a standardised column: a ridge, so that columns that repeat each other have an inverse

Rule = np.ndarray | None  # positions of treatments, row by row; None: what people got
Nuisances = tuple[pd.DataFrame, pd.DataFrame]


@dataclass(frozen=True, slots=True)
class Hidden:
    """A verdict's estimate, and how far it moves where a covariate is hidden.

    Attributes
    ----------
    what : str
        Name of the estimate, such as "policy tree - always drug".
    estimate : float
        Held out, in the outcome's unit.
    moved : mapping of str to float
        The estimate without a covariate less the estimate with it, by covariate.
    nuisances : mapping of str to (DataFrame, DataFrame)
        ``propensity_`` and ``regression_`` without it, as :func:`policytree.evaluation.nuisances_without` gives them.
    problem : str
        Why it could not be computed; "" if it was.
    """

    what: str
    estimate: float
    moved: Mapping[str, float]
    nuisances: Mapping[str, Nuisances] = field(default_factory=dict, repr=False)
    problem: str = ""


def compared(verdict: Verdict) -> tuple[str, str, float] | None:
    """The rule that a verdict recommends, the one that it is shown better than, and by how much; None: none is."""
    if verdict.reason is Reason.TREE_BETTER:
        return verdict.words.rule, verdict.against_best.best, verdict.against_best.value
    gain = verdict.tree if verdict.use_tree else verdict.treatment
    if gain is None or verdict.reason not in (
        Reason.TREE_BETTER_THAN_REFERENCE, Reason.TREATMENT_BETTER, Reason.TREATMENT_BEST,
    ):  # fmt: skip
        return None
    return gain.rule, gain.over, gain.value


def hidden(
    verdict: Verdict,
    rules: Sequence[Mapping[str, Rule]],
    judged: np.ndarray,
    seen: StudyData,
    fitted: RewardEstimator,
    most: int,
    told: Callable[[], None] = lambda: None,
) -> Hidden | None:
    """Leave out the covariates that explain most of treatment and outcome, one at a time, and see what moves.

    Parameters
    ----------
    verdict : Verdict
    rules : sequence of mapping of str to Rule
        Treatments of the judged rows by every rule of the table, repetition by repetition.
    judged : ndarray
        Positions of these rows.
    seen : StudyData
    fitted : RewardEstimator
        Fitted to all rows, with estimated probabilities of treatment.
    most : int
        How many covariates.
    told : callable
        Called after every covariate.

    Returns
    -------
    Hidden or None
        None where the verdict recommends nothing, or fewer than two covariates were seen.
    """
    pair = compared(verdict)
    names = strongest(seen, seen.X, seen.W, most) if pair is not None else []
    if pair is None or not names:
        return None
    a, b, estimate = pair
    what = f"{a} - {b}"
    found: dict[str, RewardEstimator] = {}
    try:
        for name in names:
            found |= estimators_without(fitted, {str(name): [name]}, seen)
            told()
        nuisances = {name: nuisances_of(each) for name, each in found.items()}
    except ValueError as error:  # a model of the user's that needs the column
        return Hidden(what, estimate, {}, problem=str(error).splitlines()[0])
    weight = seen.weight[judged]

    def value(models: RewardEstimator) -> float:
        rewards, own = models.rewards_.to_numpy()[judged], models.outcome_.to_numpy()[judged]
        every = np.arange(len(judged))

        def scores(rule: Rule) -> np.ndarray:
            return own if rule is None else rewards[every, rule]

        means = [np.average(scores(each[a]) - scores(each[b]), weights=weight) for each in rules]
        return float(np.mean(means))

    full = value(fitted)
    moved = {shown(name): value(models) - full for name, models in found.items()}
    return Hidden(what, estimate, moved, nuisances)


def codes_of(labels: np.ndarray, policy: np.ndarray, tree: str) -> dict[str, Rule]:
    """Assign these rows by every rule that a verdict may name; ``policy``: labels that the tree gives."""
    constant = {f"always {label}": np.full(len(policy), k) for k, label in enumerate(labels)}
    return {tree: pd.Index(labels).get_indexer(pd.Index(policy)), STATUS_QUO: None, **constant}


def strongest(seen: StudyData, X: Any, W: Any, most: int) -> list[Any]:
    """The columns that explain most of what others leave of both treatment and outcome, by least squares.

    The product of both shares decides, as in the bias of an omitted variable. None if there is one column only.
    """
    blocks: dict[Any, np.ndarray] = {}
    for table in (X, W):
        if table is not None:
            frame = frame_of(table)
            blocks |= {name: Covariates.fit(frame[[name]]).matrix(frame[[name]], None) for name in frame.columns}
    if len(blocks) < 2 or most < 1:
        return []
    rows = (np.ones(seen.n, dtype=bool) if seen.seen is None else seen.seen) & (seen.weight > 0)
    weight = seen.weight[rows] / seen.weight[rows].sum()
    arms = (seen.arm[rows, None] == np.arange(1, seen.n_arms)).astype(np.float64)
    Z = np.hstack([_standardised(block[rows], weight) for block in blocks.values()])
    D, y = _standardised(arms, weight), _standardised(seen.y[rows, None], weight)
    first = np.cumsum([0, *(block.shape[1] for block in blocks.values())])
    parts = [np.arange(start, end) for start, end in pairwise(first)]
    of_treatment, of_outcome = _losses(Z, D, weight, parts), _losses(np.hstack([Z, D]), y, weight, parts)
    order = np.argsort(-(of_treatment * of_outcome), kind="stable")
    return [list(blocks)[j] for j in order[:most]]


def _standardised(columns: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and variance 1, missing values at the mean."""
    known = np.isfinite(columns)
    total = np.maximum(weight @ known, LEAST_VARIANCE)
    centred = np.where(known, columns - weight @ np.where(known, columns, 0.0) / total, 0.0)
    scale = np.sqrt(weight @ centred**2)
    return centred / np.where(scale > 0, scale, 1.0)


def _losses(Z: np.ndarray, y: np.ndarray, weight: np.ndarray, parts: Sequence[np.ndarray]) -> np.ndarray:
    """How much less of the columns of y is explained without each part of the columns of Z, by least squares."""
    weighted = Z.T * weight
    inverse = np.linalg.inv(weighted @ Z + LEAST_VARIANCE * np.eye(Z.shape[1]))
    slopes = inverse @ (weighted @ y)
    return np.array([
        float((slopes[part] * np.linalg.solve(inverse[np.ix_(part, part)], slopes[part])).sum()) for part in parts
    ])  # fmt: skip
