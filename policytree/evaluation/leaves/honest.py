"""Sample splitting: some rows choose the tree, others say what is in its leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from policytree.common.calls import StudyLike, refuses_said_by_study
from policytree.common.docstrings import shares_documentation
from policytree.common.shared_arguments import STUDY
from policytree.common.typing import Column, PerTreatment, Seed, Table
from policytree.common.validation import check_level, factors_of
from policytree.data.views import Shown
from policytree.evaluation.estimates import Estimate
from policytree.evaluation.formatting import BOUNDS, NUMBER, decimals, interval_text, size_text, text_frame
from policytree.evaluation.inference.best_arm import BestComparison, compare_with_best
from policytree.evaluation.inference.binary_intervals import effective_rows, widened
from policytree.evaluation.leaves.factor_effects import widened_effects
from policytree.evaluation.leaves.summary import leaf_summary
from policytree.evaluation.policy_value.refits import Data, checked_direction, fit_finished
from policytree.evaluation.policy_value.sample_split import judging_rows, rows_of
from policytree.evaluation.policy_value.values import policy_value
from policytree.exceptions import InputError
from policytree.study_check.directions import with_direction
from policytree.weighting.study_data import StudyData
from policytree.weighting.time_to_event.outcome import INCIDENCE, SURVIVAL


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HonestLeaves(Shown):
    """A tree fitted to some rows, and its leaves evaluated on the others.

    Attributes
    ----------
    estimator : fitted estimator
        Learnt from the rows that are not in ``rows``: the tree to show.
    leaves : DataFrame
        One row per leaf: its people, its arm, and the value and held-out interval of every arm
        (:func:`policytree.leaf_summary` lists the columns).
    rows : ndarray of shape (n_honest,)
        Positions of the rows on which the leaves were evaluated.
    rewards : DataFrame of shape (n_honest, K)
        Their rewards, net of treatment costs; the nuisance models were not fitted to these rows.
    value : Estimate
        The value of this tree.
    against_best : BestComparison
        The comparison of this tree with the best single treatment.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import DRPolicyTree, honest_leaf_summary
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(20, 80, size=(200, 1))
    >>> T = rng.permutation(np.repeat(["drug", "none"], 100))
    >>> Y = (T == "drug") * np.where(X[:, 0] > 50, 1.0, -1.0) + rng.normal(size=200)
    >>> model = DRPolicyTree(max_depth=1, cv=2, random_state=0)
    >>> found = honest_leaf_summary(model, Y, T, X=X, propensity=0.5, random_state=0)
    >>> found.leaves[["n", "arm"]].values.tolist()
    [[44, 'none'], [56, 'drug']]
    >>> len(found.rows)  # judged by one half of the people, learnt from the other
    100
    """

    estimator: Any
    leaves: pd.DataFrame
    rows: np.ndarray = field(repr=False)
    rewards: pd.DataFrame = field(repr=False)
    value: Estimate
    against_best: BestComparison

    def _shown(self) -> list[Any]:
        value, digits = self.value, decimals([self.value.standard_error])
        known = f"{100 * value.level:g}% interval {interval_text(value, digits)}"
        said = f"Value of the tree: {value.value:,.{digits}f}, {known}; {size_text(value)}, which did not choose it."
        return [said, self.against_best, self._table()]

    def _table(self) -> pd.DataFrame:
        """People, treatment, and the value of every treatment with its interval, by leaf."""
        leaves = self.leaves
        digits = decimals(leaves["standard_error"].to_numpy().ravel())
        texts = {"people": [f"{n:,}" for n in leaves["n"]], "gets": leaves["arm"].astype(str)}
        for arm in leaves["value"].columns:
            parts = leaves.xs(arm, axis=1, level=1)[["value", "lower", "upper"]]
            texts |= text_frame(parts, {f"value of {arm}": ("", f"{NUMBER} {BOUNDS}")}, digits=digits)
        return pd.DataFrame(texts, index=leaves.index)


@refuses_said_by_study
@shares_documentation(STUDY)
def honest_leaf_summary(
    estimator: Any,
    Y: Column | StudyLike,
    T: Column | None = None,
    *,
    X: Table | None = None,
    W: Table | None = None,
    propensity: PerTreatment | None = None,
    groups: Column | None = None,
    sample_weight: Column | None = None,
    honest: float | Column = 0.5,
    level: float = 0.95,
    random_state: Seed = None,
) -> HonestLeaves:
    """Fit a tree to some rows and summarise its leaves on the others, which did not influence it.

    Estimates of the leaves, and of the tree, hold for this very tree: intervals cover without any further
    assumption on how it was found (Athey and Imbens 2016 call such trees honest). The price is that fewer rows choose.

    Outcomes of two values get intervals that are at least as wide as score intervals of shares (Wilson 1927), unless
    treatments have costs: where nearly all rows of a leaf have the same outcome, the spread that is seen there is far
    too small. Simulated with rates from .05 to .98, with effects and without, those of values hold for all leaves at
    once in 98.8 to 100 % of studies, those of gains in 98.4 to 100 % (nominal 95; ``benchmarks/leaf_range.py``), cut to
    the outcome's range or not; without this as few as 17 % and 91 %.

    Parameters
    ----------
    estimator : DRPolicyTree or the like
        Unfitted or fitted; it is cloned. Needs the methods that :func:`policytree.cross_val_policy_value` uses, and
        ``apply``.
    honest : float in [0.1, 0.9], or array of shape (n,) of bool, or of row positions
        The share of rows that judge (to the nearest fraction with a denominator of at most ten), drawn in balance over
        treatments, no cluster divided; or which rows.
    level : float
        Coverage of the intervals.
    random_state : int, RandomState or None
        Draws the rows that judge.

    Returns
    -------
    HonestLeaves

    Raises
    ------
    InputError
        If an argument cannot be used, or one of the two parts lacks a treatment.

    References
    ----------
    Athey and Imbens (2016), Recursive partitioning for heterogeneous causal effects, PNAS 113(27), 7353-7360.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import DRPolicyTree, honest_leaf_summary
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(20, 80, size=(200, 1))
    >>> T = rng.permutation(np.repeat(["drug", "none"], 100))
    >>> Y = (T == "drug") * np.where(X[:, 0] > 50, 1.0, -1.0) + rng.normal(size=200)
    >>> model = DRPolicyTree(max_depth=1, cv=2, random_state=0)
    >>> leaves = honest_leaf_summary(model, Y, T, X=X, propensity=0.5, random_state=0)
    >>> list(leaves.leaves["arm"])
    ['none', 'drug']
    """
    check_level(level)
    seen = StudyData.read(
        "honest_leaf_summary", Y, T=T, X=X, W=W, propensity=propensity, groups=groups, sample_weight=sample_weight
    ).with_covariates()
    estimator = with_direction(estimator, seen.direction)
    direction = checked_direction(estimator)
    if not hasattr(estimator, "apply"):
        raise InputError(f"{type(estimator).__name__} has no leaves (no apply); use DRPolicyTree.")
    data = Data(seen, direction)
    judging = judging_rows(honest, seen, random_state)
    rows = np.flatnonzero(judging)
    fitted = fit_finished(estimator, data, np.flatnonzero(~judging))
    table, x = data.held_out_rewards(fitted, rows), data.covariates(rows)["X"]
    groups, weight = rows_of(seen, rows)
    options: dict[str, Any] = {"groups": groups, "sample_weight": weight, "level": level}
    received, policy = seen.received(rows), fitted.predict(x)
    leaves = leaf_summary(
        fitted.apply(x), policy, table, T=received, direction=direction, held_out=True,
        study=None if seen.study is None else seen.study[rows], **options,
    )  # fmt: skip
    limits = _limits_of_shares(seen)
    if limits is not None and seen.sample_treatment_costs is None:
        leaf, judging_weight = fitted.apply(x), weight
        if seen.study is not None:  # treatments are observed in the study alone: weight its rows to the target
            of_study = seen.study[rows]
            ratio = getattr(fitted, "reward_estimator_", fitted).predict_target_ratio(**data.covariates(rows))[of_study]
            leaf, rows = leaf[of_study], rows[of_study]
            judging_weight = ratio if seen.learning_weight is None else ratio * seen.learning_weight[rows]
        factors = factors_of(received, seen.treatments)
        contrasts = {} if factors is None else factors.contrasts(seen.treatments)
        leaves = _for_shares(leaves, leaf, seen, rows, judging_weight, level, direction, limits, contrasts)
    differences = {f"always {k}": policy_value(policy, table, baseline=k, **options) for k in seen.treatments}
    return HonestLeaves(
        fitted, leaves, rows, table, policy_value(policy, table, **options), compare_with_best(differences, direction)
    )


def _limits_of_shares(seen: StudyData) -> tuple[float, float] | None:
    """The two values of an outcome that has no others; of events, whether there was one by the horizon."""
    if seen.times is not None:
        return (0.0, 1.0) if seen.times.target.name in (SURVIVAL, INCIDENCE) else None
    seen = seen.of_study()
    values = np.unique(seen.y if seen.seen is None else seen.y[seen.seen])
    return (float(values[0]), float(values[1])) if len(values) == 2 else None


def _for_shares(
    leaves: pd.DataFrame,
    leaf: np.ndarray,
    seen: StudyData,
    rows: np.ndarray,
    weight,
    level,
    direction: str,
    limits,
    contrasts: Mapping[str, Sequence[float]],
) -> pd.DataFrame:
    """Intervals as wide as those of shares must be, for outcomes of two values."""
    groups = rows_of(seen, rows)[0]
    leaf_of, shape = np.searchsorted(leaves.index, leaf), (len(leaves), seen.n_arms)
    effective = effective_rows(leaf_of, seen.arm[rows], shape, groups, weight)
    sign = 1.0 if direction == "maximize" else -1.0
    return widened_effects(widened(leaves, limits, effective, level, sign), contrasts, limits, effective)
