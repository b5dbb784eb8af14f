"""The value of every treatment in every leaf: estimates, their covariance, and their table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from policytree.evaluation.inference.simultaneous import critical_values, smallest
from policytree.exceptions import InputError

TRAINING_ROWS, HELD_OUT = "training rows", "held out"
FEW_ROWS = 30  # of an arm in a leaf: with fewer rows, the outcome model determines most of the arm's value


@dataclass(frozen=True, slots=True, eq=False)
class LeafParts:
    """The arms' values in every leaf and their covariance.

    Attributes
    ----------
    ids : ndarray of shape (L,)
        Leaves, sorted.
    labels : list of K arms
    n : ndarray of shape (L,)
        Rows.
    chosen : ndarray of shape (L,)
        Position of each leaf's arm.
    share : ndarray of shape (L,)
        Share of the weight.
    value : ndarray of shape (L, K)
    covariance : ndarray of shape (L K, L K)
    n_clusters : ndarray of shape (L,)
    sign : float
        1 if larger is better, else -1.
    received : ndarray of shape (L, K), or None
        Rows by the arm that they got.
    degrees : tuple of two ndarrays of shape (L, K), or None
        Degrees of freedom of the values, and of the chosen arm's gains; None for clusters less one.
    """

    ids: np.ndarray
    labels: list
    n: np.ndarray
    chosen: np.ndarray
    share: np.ndarray
    value: np.ndarray
    covariance: np.ndarray
    n_clusters: np.ndarray
    sign: float
    received: np.ndarray | None = None
    degrees: tuple[np.ndarray, np.ndarray] | None = None

    def estimable(self, held_out: bool) -> np.ndarray:
        """Whether an arm's value is estimable in a leaf, (L, K): held out, only if somebody there received the arm."""
        if not held_out or self.received is None:
            return np.ones(self.value.shape, dtype=bool)
        return self.received > 0

    def frame(self, held_out: bool, level: float, further: dict | None = None) -> pd.DataFrame:
        """The summary; see :func:`policytree.leaf_summary`; ``further`` columns have two names as well."""
        columns = self.columns(held_out, level) | (further or {})
        if self.received is not None:
            columns |= self.counts(self.received, held_out)
        frame = pd.DataFrame(columns, index=pd.Index(self.ids, name="leaf"))
        frame.columns = pd.MultiIndex.from_tuples(frame.columns)
        return frame

    def columns(self, held_out: bool, level: float) -> dict:
        """The summary's columns, by their two names."""
        leaf, known = np.arange(len(self.ids)), self.estimable(held_out)
        error = np.where(known, self._errors(np.diag(self.covariance)), np.nan)
        others = np.where(known, self.sign * self.value, -np.finfo(float).max)
        others[leaf, self.chosen] = -np.inf
        second = others.argmax(axis=1)
        gain, gain_error = self._gains()
        value, both = np.where(known, self.value, np.nan), known & known[leaf, self.chosen][:, None]
        gain, gain_error = np.where(both, gain, np.nan), np.where(both, gain_error, np.nan)
        out: dict = {
            ("n", ""): self.n,
            ("share", ""): self.share,
            ("rows", ""): HELD_OUT if held_out else TRAINING_ROWS,
            ("arm", ""): [self.labels[j] for j in self.chosen],
            ("second_best", ""): [self.labels[j] for j in second],
        }
        out |= {("value", label): value[:, j] for j, label in enumerate(self.labels)}
        out |= {("standard_error", label): error[:, j] for j, label in enumerate(self.labels)}
        out |= {("gain", "value"): gain[leaf, second], ("gain", "standard_error"): gain_error[leaf, second]}
        if held_out:
            out |= self._intervals(value, error, gain, gain_error, level)
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

    def _intervals(self, value, error, gain, gain_error, level: float) -> dict:
        """Simultaneous intervals of values and gains, and the gain over the best other arm; NaN is not estimable."""
        k, known = len(self.labels), np.isfinite(gain)
        contrast = self._contrasts()
        gains = contrast @ self.covariance @ contrast.T
        of_values, of_gains = self.degrees_of_freedom()
        width = self.half_widths(self.covariance, np.isfinite(value), of_values, level) * error
        other = known & (np.arange(k) != self.chosen[:, None])
        gain_width = np.where(other, self.half_widths(gains, other, of_gains, level) * gain_error, np.nan)
        shown = np.where(other, gain, np.nan)
        out: dict = {}
        for name, values in (
            ("lower", value - width), ("upper", value + width), ("gain_over", shown),
            ("gain_lower", shown - gain_width), ("gain_upper", shown + gain_width),
        ):  # fmt: skip
            out |= {(name, label): values[:, j] for j, label in enumerate(self.labels)}
        # The gain over the best other arm is the smallest gain if larger is better, else the largest.
        pick, never = (np.min, np.inf) if self.sign > 0 else (np.max, -np.inf)
        some = (self.n_clusters >= 2) & other.any(axis=1)
        out[("gain_over_best", "value")] = [self._over_best(j, gain, gains, other) for j in range(len(self.ids))]
        for name, ends in (("lower", shown - gain_width), ("upper", shown + gain_width)):
            out[("gain_over_best", name)] = np.where(some, pick(np.where(other, ends, never), axis=1), np.nan)
        return out

    def degrees_of_freedom(self) -> tuple[np.ndarray, np.ndarray]:
        """Degrees of freedom of values and of gains, (L, K) each."""
        if self.degrees is not None:
            return self.degrees
        plain = np.repeat((self.n_clusters - 1)[:, None], len(self.labels), axis=1)
        return plain, plain

    def half_widths(self, covariance: np.ndarray, wanted: np.ndarray, degrees: np.ndarray, level: float) -> np.ndarray:
        """Critical values (L, K) of the wanted entries together; NaN in leaves of one cluster."""
        out = np.full(wanted.shape, np.nan)
        known = wanted & (self.n_clusters >= 2)[:, None]
        at = np.flatnonzero(known.ravel())
        if len(at):
            out[known] = critical_values(covariance[np.ix_(at, at)], degrees.ravel()[at], level)
        return out

    def _over_best(self, leaf: int, gain: np.ndarray, covariance: np.ndarray, other: np.ndarray) -> float:
        if self.n_clusters[leaf] < 2 or not other[leaf].any():
            return float("nan")
        at = leaf * len(self.labels) + np.flatnonzero(other[leaf])
        values = self.sign * gain[leaf, other[leaf]]
        return self.sign * smallest(values, covariance[np.ix_(at, at)], int(self.n[leaf]))

    def counts(self, count: np.ndarray, held_out: bool) -> dict:
        """Rows of every arm in each leaf, and a warning where there are few."""

        def said(n: int, label) -> str:
            return f"nobody got {label}: not estimable" if n == 0 and held_out else f"only {n} of {label}"

        out: dict = {("rows_of", label): count[:, j] for j, label in enumerate(self.labels)}
        out[("warning", "")] = [
            ", ".join(said(c, label) for c, label in zip(row, self.labels, strict=True) if c < FEW_ROWS)
            for row in count
        ]
        return out


def sign_of(direction: str) -> float:
    """1 if larger is better, else -1."""
    return 1.0 if direction == "maximize" else -1.0


def refuse_weightless_leaves(ids: np.ndarray, total: np.ndarray) -> None:
    """Refuse leaves without weight."""
    if (total == 0).any():
        raise InputError(f"All rows of leaf {ids[total.argmin()]} have sample_weight zero; leave them out.")


def small_sample(clusters: np.ndarray) -> np.ndarray:
    """``sqrt(n / (n - 1))`` of so many clusters (L,); zero for leaves of one."""
    return np.where(clusters >= 2, np.sqrt(clusters / np.maximum(clusters - 1, 1)), 0.0)


def clustered_covariance(sums: np.ndarray, cluster: np.ndarray, leaf: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Covariance of all leaves' arm values (L K, L K) from influences; zero for leaves of one cluster.

    ``sums`` (m, K): of the rows of one cluster in one leaf, which ``cluster`` and ``leaf`` (m,) say; by cluster.
    """
    n_leaves, k = len(clusters), sums.shape[1]
    out = np.zeros((n_leaves * k, n_leaves * k))
    rows_of = [np.flatnonzero(leaf == j) for j in range(n_leaves)]
    for a in range(n_leaves):
        for b in range(a, n_leaves):
            _, left, right = np.intersect1d(
                cluster[rows_of[a]], cluster[rows_of[b]], assume_unique=True, return_indices=True
            )
            block = sums[rows_of[a][left]].T @ sums[rows_of[b][right]]
            out[a * k : (a + 1) * k, b * k : (b + 1) * k] = block
            out[b * k : (b + 1) * k, a * k : (a + 1) * k] = block.T
    scale = np.repeat(small_sample(clusters), k)
    return out * np.outer(scale, scale)
