"""Who is in each leaf of a tree, what each treatment is worth there, and on whose rows that was computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from policytree.annotations import Column, Table
from policytree.checks import check_level, treatment_codes
from policytree.evaluation.inputs import arm_codes, check_direction, column, reward_frame, rows_arguments
from policytree.evaluation.numbers import bounds_text
from policytree.evaluation.simultaneous import critical_values, smallest
from policytree.exceptions import InputError
from policytree.tree import Tree

TRAINING_ROWS, HELD_OUT = "training rows", "held out"
FEW_ROWS = 30  # of an arm in a leaf: with fewer the arm's value there leans on the outcome model


@dataclass(frozen=True, slots=True)
class LeafValue:
    """The value of a leaf's treatment, with the rows it was computed on.

    Attributes
    ----------
    value : float
    lower, upper : float or None
        Ends of an interval; None for training rows, on which no interval would cover.
    held_out : bool
        Whether the rows did not choose the tree.
    second_best : str or None
        The best other treatment by its estimate.
    gain, gain_lower, gain_upper : float or None
        Held out: the value less that of the truly best other treatment, and its interval.
    """

    value: float
    lower: float | None = None
    upper: float | None = None
    held_out: bool = False
    second_best: str | None = None
    gain: float | None = None
    gain_lower: float | None = None
    gain_upper: float | None = None

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> LeafValue:
        """Of what :func:`dataclasses.asdict` makes of one.

        Raises
        ------
        TypeError, ValueError
            If they are other fields, or no numbers where there must be some.
        """
        texts = {"second_best", "held_out"}
        known: dict[str, Any] = {k: v if k in texts or v is None else float(v) for k, v in fields.items()}
        return cls(**known)

    def within(self, limits: tuple[float, float] | None) -> LeafValue:
        """The same with intervals cut to what an outcome's range allows, unless the value itself lies outside.

        No mean lies outside, so that nothing is lost: simulated intervals of two-valued outcomes near the edge of their
        range, with effects and without, hold as often as they did uncut (98.8 to 100 % at nominal 95, all leaves at
        once; ``benchmarks/leaf_range.py``).
        """
        if limits is None or self.lower is None or self.upper is None or not limits[0] <= self.value <= limits[1]:
            return self
        cut = replace(self, lower=max(self.lower, limits[0]), upper=min(self.upper, limits[1]))
        if self.gain_lower is None or self.gain_upper is None:
            return cut
        most = limits[1] - limits[0]
        return replace(cut, gain_lower=max(self.gain_lower, -most), gain_upper=min(self.gain_upper, most))

    def lines(self, name: str, digits: int) -> list[str]:
        """How it is shown: the number, its interval, what it gains over the best other arm, and the rows it is from."""
        return [line for part in self.parts(name, digits) for line in part]

    def parts(self, name: str, digits: int) -> list[list[str]]:
        """The same, each number with its interval."""
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
        value = float(row[("value", arm)])
        if row.get(("rows", "")) != HELD_OUT:
            out[int(leaf)] = LeafValue(value)
            continue
        gain, low, high = (_known(row[("gain_over_best", end)]) for end in ("value", "lower", "upper"))
        lower, upper = (_known(row[(end, arm)]) for end in ("lower", "upper"))
        second = str(row[("second_best", "")])
        out[int(leaf)] = LeafValue(value, lower, upper, True, second, gain, low, high)
    return out


def _known(number: float) -> float | None:
    """None in place of NaN: a leaf of one cluster has no interval."""
    return float(number) if np.isfinite(number) else None


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
) -> pd.DataFrame:
    """Who is in each leaf, what they get, and what each treatment would be worth there.

    On the rows that chose the tree every value is flattered: half of all leaves of a search in pure noise look
    significant. So a summary is taken to be of such rows, is marked so, and has no intervals, unless ``held_out=True``
    says that neither these rows' outcomes chose the tree nor their nuisance models saw them.
    :func:`policytree.honest_leaf_summary` makes such a summary by splitting the sample.

    Parameters
    ----------
    leaves : array of shape (n,), or fitted tree estimator
        Leaf of every row, from a tree's ``apply``; or the estimator itself.
    policy : array of shape (n,), or one label; with an estimator: the table ``X`` of shape (n, p)
        The treatment recommended to every row, from ``predict``; the same for all rows of a leaf.
    rewards, groups, sample_weight
        As in :func:`policy_value`.
    T : array of shape (n,), optional
        Treatments received: counts each arm's rows in every leaf and warns where they are few.
    direction : {"maximize", "minimize"}, optional
        Which way rewards are better; the estimator's own, else "maximize". It decides the second-best arm.
    held_out : bool, default False
        See above.
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
        looks too good, and this gain too small. With ``T`` also ``("rows_of", arm)`` and ``("warning", "")``.

        Held out there is more: ``("lower", arm)``, ``("upper", arm)``; ``("gain_over", arm)`` with ``("gain_lower",
        arm)`` and ``("gain_upper", arm)``, against every other arm (NaN for the chosen one); ``("gain_over_best",
        "value")``, ``"lower"``, ``"upper"``: against the truly best other arm, the value free (in the median) of the
        bias of picking it. Standard errors are cluster-robust within the leaf, and NaN where a leaf holds fewer than
        two clusters.

    Raises
    ------
    InputError
        As :func:`policy_value`, and if a leaf gives more than one treatment, or has no weight.

    Notes
    -----
    Simultaneous intervals come from a Gaussian multiplier bootstrap over influence functions
    (:mod:`policytree.evaluation.simultaneous`), clusters taken whole also where they reach into several leaves.
    """
    if hasattr(leaves, "apply"):
        direction = direction or getattr(leaves, "direction", None)
        leaves, policy = leaves.apply(policy), leaves.predict(policy)
    direction = direction or "maximize"
    check_direction(direction)
    check_level(level)
    table = reward_frame(rewards)
    codes, weight = rows_arguments(groups, sample_weight, len(table))
    parts = _Parts.of(
        table, column(leaves, "leaves", len(table)), arm_codes(policy, table.columns, len(table), "policy"),
        np.arange(len(table)) if codes is None else codes, np.ones(len(table)) if weight is None else weight, direction,
    )  # fmt: skip
    columns = parts.columns(held_out, level)
    if T is not None:
        received = treatment_codes(T, len(table), table.columns.to_numpy())[0]
        columns |= parts.counts(received)
    frame = pd.DataFrame(columns, index=pd.Index(parts.ids, name="leaf"))
    frame.columns = pd.MultiIndex.from_tuples(frame.columns)
    return frame


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """Rows by leaf, the arms' values there and their covariance."""

    ids: np.ndarray  # (L,) leaf ids
    labels: list  # (K,) arms
    leaf_of: np.ndarray  # (n,) position of each row's leaf
    chosen: np.ndarray  # (L,) position of each leaf's arm
    share: np.ndarray  # (L,) share of the weight
    value: np.ndarray  # (L, K)
    covariance: np.ndarray  # (L K, L K)
    n_clusters: np.ndarray  # (L,)
    sign: float  # 1 if larger is better, else -1

    @classmethod
    def of(cls, table: pd.DataFrame, leaves, arm, groups, weight, direction: str) -> _Parts:
        """Sort rows into leaves and estimate."""
        scores = table.to_numpy()
        ids, leaf_of = np.unique(leaves, return_inverse=True)
        chosen = _one_arm_each(ids, leaf_of, arm, table.columns)
        total = np.bincount(leaf_of, weights=weight)
        if (total == 0).any():
            raise InputError(f"All rows of leaf {ids[total.argmin()]} have sample_weight zero; leave them out.")
        value = np.column_stack([np.bincount(leaf_of, weights=weight * s) / total for s in scores.T])
        influence = (weight / total[leaf_of])[:, None] * (scores - value[leaf_of])
        pairs = np.unique(np.column_stack([leaf_of, groups])[weight > 0], axis=0)
        clusters = np.bincount(pairs[:, 0], minlength=len(ids))
        covariance = _covariance(influence, leaf_of, groups, clusters)
        sign = 1.0 if direction == "maximize" else -1.0
        share = total / total.sum()
        return cls(ids, list(table.columns), leaf_of, chosen, share, value, covariance, clusters, sign)

    def columns(self, held_out: bool, level: float) -> dict:
        """The summary's columns, by their two names."""
        leaf = np.arange(len(self.ids))
        error = self._errors(np.diag(self.covariance))
        others = self.sign * self.value
        others[leaf, self.chosen] = -np.inf
        second = others.argmax(axis=1)
        gain, gain_error = self._gains()
        out: dict = {
            ("n", ""): np.bincount(self.leaf_of),
            ("share", ""): self.share,
            ("rows", ""): HELD_OUT if held_out else TRAINING_ROWS,
            ("arm", ""): [self.labels[j] for j in self.chosen],
            ("second_best", ""): [self.labels[j] for j in second],
        }
        out |= {("value", label): self.value[:, j] for j, label in enumerate(self.labels)}
        out |= {("standard_error", label): error[:, j] for j, label in enumerate(self.labels)}
        out |= {("gain", "value"): gain[leaf, second], ("gain", "standard_error"): gain_error[leaf, second]}
        if held_out:
            out |= self._intervals(error, gain, gain_error, level)
        return out

    def _gains(self) -> tuple[np.ndarray, np.ndarray]:
        """The chosen arm's value minus every arm's, and standard errors, both (L, K)."""
        leaf = np.arange(len(self.ids))
        gain = self.value[leaf, self.chosen][:, None] - self.value
        contrast = self._contrasts()
        return gain, self._errors(np.einsum("ij,jk,ik->i", contrast, self.covariance, contrast))

    def _errors(self, variance: np.ndarray) -> np.ndarray:
        """Standard errors (L, K); NaN in leaves of one cluster."""
        error = np.sqrt(np.clip(variance, 0.0, None)).reshape(self.value.shape)
        return np.where((self.n_clusters >= 2)[:, None], error, np.nan)

    def _contrasts(self) -> np.ndarray:
        """Every leaf's chosen arm minus each arm, as rows over all values: (L K, L K)."""
        k = len(self.labels)
        own = np.repeat(np.arange(len(self.ids)) * k + self.chosen, k)
        contrast = -np.eye(len(self.ids) * k)
        contrast[np.arange(len(own)), own] += 1.0
        return contrast

    def _intervals(self, error, gain, gain_error, level: float) -> dict:
        """Simultaneous intervals of values and gains, and the gain over the best other arm."""
        k = len(self.labels)
        contrast = self._contrasts()
        gains = contrast @ self.covariance @ contrast.T
        width = self._half_widths(self.covariance, np.ones(self.value.shape, bool), level) * error
        other = np.arange(k) != self.chosen[:, None]
        gain_width = np.where(other, self._half_widths(gains, other, level) * gain_error, np.nan)
        shown = np.where(other, gain, np.nan)
        out: dict = {}
        for name, values in (
            ("lower", self.value - width), ("upper", self.value + width), ("gain_over", shown),
            ("gain_lower", shown - gain_width), ("gain_upper", shown + gain_width),
        ):  # fmt: skip
            out |= {(name, label): values[:, j] for j, label in enumerate(self.labels)}
        # The gain over the best other arm is the smallest gain if larger is better, else the largest.
        pick, never = (np.min, np.inf) if self.sign > 0 else (np.max, -np.inf)
        known = self.n_clusters >= 2
        out[("gain_over_best", "value")] = [self._over_best(j, gain, gains, other) for j in range(len(self.ids))]
        for name, ends in (("lower", shown - gain_width), ("upper", shown + gain_width)):
            out[("gain_over_best", name)] = np.where(known, pick(np.where(other, ends, never), axis=1), np.nan)
        return out

    def _half_widths(self, covariance: np.ndarray, wanted: np.ndarray, level: float) -> np.ndarray:
        """Critical values (L, K) of the wanted entries together; NaN in leaves of one cluster."""
        out = np.full(wanted.shape, np.nan)
        known = wanted & (self.n_clusters >= 2)[:, None]
        at = np.flatnonzero(known.ravel())
        degrees = np.repeat(self.n_clusters - 1, wanted.shape[1])[at]
        if len(at):
            out[known] = critical_values(covariance[np.ix_(at, at)], degrees, level)
        return out

    def _over_best(self, leaf: int, gain: np.ndarray, covariance: np.ndarray, other: np.ndarray) -> float:
        if self.n_clusters[leaf] < 2:
            return float("nan")
        at = leaf * len(self.labels) + np.flatnonzero(other[leaf])
        values = self.sign * gain[leaf, other[leaf]]
        return self.sign * smallest(values, covariance[np.ix_(at, at)], int((self.leaf_of == leaf).sum()))

    def counts(self, received: np.ndarray) -> dict:
        """Rows of every arm in each leaf, and a warning where there are few."""
        count = np.zeros(self.value.shape, dtype=np.int64)
        np.add.at(count, (self.leaf_of, received), 1)
        out: dict = {("rows_of", label): count[:, j] for j, label in enumerate(self.labels)}
        out[("warning", "")] = [
            ", ".join(f"only {c} of {label}" for c, label in zip(row, self.labels, strict=True) if c < FEW_ROWS)
            for row in count
        ]
        return out


def _one_arm_each(ids, leaf_of, arm, labels) -> np.ndarray:
    """The arm of every leaf."""
    for position, leaf in enumerate(ids):
        chosen = np.unique(arm[leaf_of == position])
        if len(chosen) > 1:
            names = ", ".join(str(labels[k]) for k in chosen)
            raise InputError(f"policy gives leaf {leaf} more than one treatment ({names}); pass the same tree's rows.")
    return arm[np.unique(leaf_of, return_index=True)[1]]


def _covariance(influence: np.ndarray, leaf_of: np.ndarray, groups: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Covariance of all leaves' arm values (L K, L K) from influences (n, K); zero for leaves of one cluster."""
    n_leaves, k = len(clusters), influence.shape[1]
    pair = groups * n_leaves + leaf_of  # rows of one cluster in one leaf
    used, position = np.unique(pair, return_inverse=True)
    sums = np.column_stack([np.bincount(position, weights=column) for column in influence.T])
    out = np.zeros((n_leaves * k, n_leaves * k))
    cluster, leaf = used // n_leaves, used % n_leaves
    rows_of = [np.flatnonzero(leaf == j) for j in range(n_leaves)]
    for a in range(n_leaves):
        for b in range(a, n_leaves):
            _, left, right = np.intersect1d(
                cluster[rows_of[a]], cluster[rows_of[b]], assume_unique=True, return_indices=True
            )
            block = sums[rows_of[a][left]].T @ sums[rows_of[b][right]]
            out[a * k : (a + 1) * k, b * k : (b + 1) * k] = block
            out[b * k : (b + 1) * k, a * k : (a + 1) * k] = block.T
    scale = np.repeat(np.where(clusters >= 2, np.sqrt(clusters / np.maximum(clusters - 1, 1)), 0.0), k)
    return out * np.outer(scale, scale)
