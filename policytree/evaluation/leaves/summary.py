"""The people in each leaf of a tree, the value of each treatment there, and the rows that it was computed from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from policytree.common.docstrings import shares_documentation
from policytree.common.row_labels import aligns_rows
from policytree.common.shared_arguments import JUDGED
from policytree.common.typing import Column, Table
from policytree.common.validation import arm_column, check_level, factors_of, treatment_codes
from policytree.evaluation.formatting import bounds_text
from policytree.evaluation.inputs import arm_codes, check_direction, column, reward_frame, rows_arguments
from policytree.evaluation.leaves.estimates import (
    HELD_OUT,
    TRAINING_ROWS,
    LeafParts,
    clustered_covariance,
    refuse_weightless_leaves,
    sign_of,
)
from policytree.evaluation.leaves.factor_effects import factor_effects
from policytree.exceptions import InputError
from policytree.trees.tree import Tree
from policytree.weighting.cluster_robust import degrees_of_variance
from policytree.weighting.stacked import averages_over_target, study_mask


@dataclass(frozen=True, slots=True)
class LeafValue:
    """The value of a leaf's treatment, with the rows it was computed on.

    Attributes
    ----------
    value : float or None
        None: not estimable, since none of the held-out rows in the leaf got its treatment.
    lower, upper : float or None
        Ends of an interval; None for training rows, on which no interval would cover.
    held_out : bool
        Whether the rows did not choose the tree.
    second_best : str or None
        The best other treatment by its estimate.
    gain, gain_lower, gain_upper : float or None
        Held out: the value less that of the truly best other treatment, and its interval.
    """

    value: float | None
    lower: float | None = None
    upper: float | None = None
    held_out: bool = False
    second_best: str | None = None
    gain: float | None = None
    gain_lower: float | None = None
    gain_upper: float | None = None

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> LeafValue:
        """Make a value from the mapping that :func:`dataclasses.asdict` returns.

        Raises
        ------
        TypeError, ValueError
            If fields differ, or a value that must be a number is none.
        """
        texts = {"second_best", "held_out"}
        known: dict[str, Any] = {k: v if k in texts or v is None else float(v) for k, v in fields.items()}
        return cls(**known)

    def within(self, limits: tuple[float, float] | None) -> LeafValue:
        """Return the value with its intervals cut to the outcome's range, unless the value itself lies outside.

        No mean lies outside, so that nothing is lost: simulated intervals of two-valued outcomes near the edge of their
        range, with effects and without, hold as often as they did uncut (98.8 to 100 % at nominal 95, all leaves at
        once; ``benchmarks/leaf_range.py``).
        """
        if limits is None or self.value is None or self.lower is None or self.upper is None:
            return self
        if not limits[0] <= self.value <= limits[1]:
            return self
        cut = replace(self, lower=max(self.lower, limits[0]), upper=min(self.upper, limits[1]))
        if self.gain_lower is None or self.gain_upper is None:
            return cut
        most = limits[1] - limits[0]
        return replace(cut, gain_lower=max(self.gain_lower, -most), gain_upper=min(self.gain_upper, most))

    def lines(self, name: str, digits: int) -> list[str]:
        """The lines that show it: number, interval, gain over the best other arm, and the rows behind it."""
        return [line for part in self.parts(name, digits) for line in part]

    def parts(self, name: str, digits: int) -> list[list[str]]:
        """The parts of these lines, each a number with its interval."""
        if self.value is None:
            return [[f"{name}: not estimable"]]
        value = [f"{name} {self.value:,.{digits}f}"]
        if not self.held_out:
            return [[*value, f"({TRAINING_ROWS})"]]
        if self.lower is not None and self.upper is not None:
            value.append(bounds_text(self.lower, self.upper, digits))
        parts = [value]
        if self.gain is not None and self.gain_lower is not None and self.gain_upper is not None:
            gain = f"gain {self.gain:+,.{digits}f}"
            parts.append([gain, bounds_text(self.gain_lower, self.gain_upper, digits)])
        if self.second_best is not None:
            parts.append([f"second best: {self.second_best}"])
        return parts


def leaf_values(tree: Tree, summary: pd.DataFrame | None) -> dict[int, LeafValue]:
    """Value of each leaf's own action, from a leaf summary: with intervals, gain and second-best arm if held out."""
    if summary is None:
        return {}
    out = {}
    for leaf in np.flatnonzero(tree.is_leaf):
        if leaf not in summary.index:
            continue
        row, arm = summary.loc[leaf], tree.actions[tree.action[leaf]]
        value = _known(row[("value", arm)])
        if row.get(("rows", "")) != HELD_OUT:
            out[int(leaf)] = LeafValue(value)
            continue
        gain, low, high = (_known(row[("gain_over_best", end)]) for end in ("value", "lower", "upper"))
        lower, upper = (_known(row[(end, arm)]) for end in ("lower", "upper"))
        second = str(row[("second_best", "")])
        out[int(leaf)] = LeafValue(value, lower, upper, True, second, gain, low, high)
    return out


def _known(number: float) -> float | None:
    """Replace NaN by None: a leaf of one cluster has no interval."""
    return float(number) if np.isfinite(number) else None


@aligns_rows
@shares_documentation(JUDGED)
def leaf_summary(
    leaves: Any,
    policy: Column | Table | Any,
    rewards: Table,
    *,
    T: Column | None = None,
    groups: Column | None = None,
    sample_weight: Column | None = None,
    direction: str | None = None,
    held_out: bool = False,
    level: float = 0.95,
    study: Column | None = None,
) -> pd.DataFrame:
    """Summarise every leaf: its people, their treatment, and the value of each treatment there.

    On the rows that chose the tree, every value is too optimistic: half of the leaves that a search finds in pure noise
    look significant. A summary is therefore marked as one of training rows and has no intervals, unless
    ``held_out=True`` states that neither the tree nor the nuisance models were fitted to these rows' outcomes.
    :func:`policytree.honest_leaf_summary` makes such a summary by splitting the sample.

    Parameters
    ----------
    leaves : array of shape (n,), or fitted tree estimator
        Leaf of every row, from a tree's ``apply``; or the estimator itself.
    policy : array of shape (n,), or one label; with an estimator: the table ``X`` of shape (n, p)
        The treatment recommended to every row, from ``predict``; the same for all rows of a leaf.
    T : array of shape (n,), or DataFrame of several treatments, optional
        Treatments received: counts each arm's rows in every leaf and warns where they are few. From the columns of a
        factorial trial the effect of each treatment in every leaf follows as well.
    direction : {"maximize", "minimize"}, optional
        Whether larger or smaller rewards are better; by default the estimator's direction, else "maximize". The second-
        best arm depends on it.
    held_out : bool, default False
        Whether neither the tree nor the nuisance models were fitted to these rows' outcomes.
    study : array of shape (n,) of bool, optional
        Which rows are of the study, where the others are people of a target; ``rewards`` and ``sample_weight`` are then
        those of :meth:`RewardEstimator.per_person`, and ``T`` is read of the study's rows alone.
    level : float
        Coverage of the intervals: of all values together, and of all gains together, over leaves and arms.

    Returns
    -------
    DataFrame
        One row per leaf, sorted by leaf id; two column levels. ``("n", "")``: rows. ``("share", "")``: share of the
        total weight. ``("rows", "")``: "training rows" or "held out". ``("arm", "")``: the chosen arm.
        ``("second_best", "")``: the best other arm by its estimate. ``("value", arm)``, ``("standard_error", arm)``:
        every arm's value. ``("gain", "value")`` and ``("gain", "standard_error")``: the chosen arm's value minus that
        of ``second_best`` (paired; negative is better when minimising). Since that arm was picked on the same rows, it
        looks too good, and this gain too small. With ``T`` also ``("rows_of", arm)`` and ``("warning", "")``. With
        several treatments ``("effect", factor)`` and ``("effect_standard_error", factor)``: the treatment less its
        control, averaged over the combinations of the others
        (``CombinedTreatments.contrasts``); held out also ``"effect_lower"``
        and ``"effect_upper"``, which hold for all these effects together.

        Held out there is more: ``("lower", arm)``, ``("upper", arm)``; ``("gain_over", arm)`` with ``("gain_lower",
        arm)`` and ``("gain_upper", arm)``, against every other arm (NaN for the chosen one); ``("gain_over_best",
        "value")``, ``"lower"``, ``"upper"``: against the truly best other arm, the value free (in the median) of the
        bias of picking it. Standard errors are cluster-robust within the leaf, and NaN where a leaf holds fewer than
        two clusters. With ``T``, an arm that nobody in a leaf got is not estimable there: all its numbers are NaN.

    Raises
    ------
    InputError
        If shapes differ, values are missing or infinite, a treatment has no rewards, or a leaf gives more than one
        treatment or has no weight.

    Notes
    -----
    Simultaneous intervals come from a Gaussian multiplier bootstrap over influence functions
    (:mod:`policytree.evaluation.inference.simultaneous`), with clusters taken whole even where they reach into several
    leaves.

    Examples
    --------
    >>> from policytree import PolicyTree, leaf_summary
    >>> X, rewards = [[1.0], [2.0], [3.0], [4.0]], [[1.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 2.0]]
    >>> tree = PolicyTree(max_depth=1).fit(X, rewards)
    >>> leaf_summary(tree.apply(X), tree.predict(X), rewards)["arm"].tolist()
    [0, 1]
    """
    if hasattr(leaves, "apply"):
        direction = direction or getattr(leaves, "direction", None)
        leaves, policy = leaves.apply(policy), leaves.predict(policy)
    direction = direction or "maximize"
    check_direction(direction)
    check_level(level)
    table = reward_frame(rewards)
    codes, weight = rows_arguments(groups, sample_weight, len(table))
    rows = _Rows(
        column(leaves, "leaves", len(table)),
        table.to_numpy(),
        np.ones(len(table)) if weight is None else weight,
        np.arange(len(table)) if codes is None else codes,
    )
    arms = arm_codes(policy, table.columns, len(table), "policy")
    received = None if T is None else _received(T, study, table)
    if study is not None:
        _refuse_empty_leaves(rows, ~study_mask(study, len(table), both=False))
    parts = rows.parts(list(table.columns), arms, direction, received)
    factors = None if T is None else factors_of(T, table.columns)
    effects = {} if factors is None else factor_effects(parts, factors.contrasts(parts.labels), held_out, level)
    return parts.frame(held_out, level, effects)


def _received(T, study, table: pd.DataFrame) -> np.ndarray:
    """Position of the treatment that every row got, (n,); -1 in rows that are not of the study."""
    labels = table.columns.to_numpy()
    if study is None:
        return treatment_codes(T, len(table), labels)[0]
    own = np.flatnonzero(study_mask(study, len(table), both=False))
    received = np.full(len(table), -1)
    received[own] = treatment_codes(arm_column(T, labels).to_numpy()[own], len(own), labels)[0]
    return received


def _refuse_empty_leaves(rows: _Rows, of_target: np.ndarray) -> None:
    """Refuse leaves in which nobody is of the target (n,): there is no one whose mean could be told."""
    empty = np.flatnonzero(np.bincount(rows.leaf_of, weights=of_target) == 0)
    if len(empty):
        raise InputError(
            f"Nobody of the target is in leaf {rows.ids[empty[0]]}, so it has no values there; raise min_samples_leaf, "
            "or look whether the study has people like those of the target (target_overlap)."
        )


class _Rows:
    """Rows sorted into leaves: ``leaves`` (n,), ``scores`` (n, K), ``weight`` (n,), clusters ``groups`` (n,)."""

    def __init__(self, leaves: np.ndarray, scores: np.ndarray, weight: np.ndarray, groups: np.ndarray):
        self.ids, self.leaf_of = np.unique(leaves, return_inverse=True)
        self.scores, self.weight, self.groups = scores, weight, groups

    def parts(self, labels: list, arms: np.ndarray, direction: str, received: np.ndarray | None) -> LeafParts:
        """Estimates by leaf; ``arms``: what every row is recommended, ``received``: what it got, if known."""
        leaf_of, weight, n_leaves = self.leaf_of, self.weight, len(self.ids)
        chosen = _one_arm_each(self.ids, leaf_of, arms, labels)
        total = np.bincount(leaf_of, weights=weight)
        refuse_weightless_leaves(self.ids, total)
        value = np.column_stack([np.bincount(leaf_of, weights=weight * s) / total for s in self.scores.T])
        influence = (weight / total[leaf_of])[:, None] * (self.scores - value[leaf_of])
        pairs = np.unique(np.column_stack([leaf_of, self.groups])[weight > 0], axis=0)
        clusters = np.bincount(pairs[:, 0], minlength=n_leaves)
        used, position = np.unique(self.groups * n_leaves + leaf_of, return_inverse=True)
        sums = np.column_stack([np.bincount(position, weights=column) for column in influence.T])
        covariance = clustered_covariance(sums, used // n_leaves, used % n_leaves, clusters)
        counts = None
        if received is not None:
            counts, of_study = np.zeros(value.shape, dtype=np.int64), received >= 0
            np.add.at(counts, (leaf_of[of_study], received[of_study]), 1)
        rows = np.bincount(leaf_of)
        share = total / total.sum()
        degrees = _degrees(sums, used % n_leaves, clusters, chosen) if averages_over_target(weight) else None
        return LeafParts(
            self.ids, labels, rows, chosen, share, value, covariance, clusters, sign_of(direction), counts, degrees
        )


def _degrees(
    sums: np.ndarray, leaf: np.ndarray, clusters: np.ndarray, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Degrees of freedom of values and of the chosen arm's gains, (L, K) each, from influences by cluster (m, K)."""
    out = np.ones((2, len(clusters), sums.shape[1]), dtype=np.int64)
    for j in np.flatnonzero(clusters >= 2):
        own = sums[leaf == j]
        for kind, influence in enumerate((own, own[:, [chosen[j]]] - own)):
            out[kind, j] = [degrees_of_variance(column, None, int(clusters[j])) for column in influence.T]
    return out[0], out[1]


def _one_arm_each(ids, leaf_of, arm, labels) -> np.ndarray:
    """The arm of every leaf."""
    for position, leaf in enumerate(ids):
        chosen = np.unique(arm[leaf_of == position])
        if len(chosen) > 1:
            names = ", ".join(str(labels[k]) for k in chosen)
            raise InputError(f"policy gives leaf {leaf} more than one treatment ({names}); pass the same tree's rows.")
    return arm[np.unique(leaf_of, return_index=True)[1]]
