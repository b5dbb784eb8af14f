"""The marginal sensitivity model's simple bounds: self-normalised means with weights moved to their extremes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from policytree.evaluation.estimates import Estimate, influence_estimate
from policytree.evaluation.inference.cluster_bootstrap import ClusterBootstrap
from policytree.evaluation.sensitivity.contrasts import Contrast


@dataclass(frozen=True, slots=True, eq=False)
class _Cell:
    """People who are newly given a treatment (sign 1), or from whom it is taken away (sign -1).

    Attributes
    ----------
    sign : float
    mass : ndarray of shape (n,)
        Everybody's share in the cell.
    rows : ndarray of shape (n_cell,)
        Those of them who got the treatment, by ascending outcome.
    """

    sign: float
    mass: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """Running sums over a cell's rows by outcome, for some draws: the ends for any Gamma are read off them.

    ``a`` is a row's weight times its share in the cell, ``o`` the odds against the treatment it got.
    """

    sign: float
    share: np.ndarray  # (draws,) mean share of the cell
    plain: tuple[np.ndarray, np.ndarray]  # sums of a y and a, (draws,)
    odds_y: np.ndarray  # (draws, n_cell + 1) sums of a o y over the first rows
    odds: np.ndarray

    def end(self, gamma: np.ndarray, largest: bool) -> np.ndarray:
        """Largest or smallest self-normalised mean for each draw's Gamma, (draws,).

        Weights lie in ``a [1 + o / Gamma, 1 + o Gamma]``; at the extreme, all rows on one side of some outcome have
        their largest weight and all others their smallest (the derivative by a weight has the sign of outcome - mean).
        """
        spread = (gamma - 1 / gamma)[:, None]
        top_y, top = self.odds_y, self.odds
        if largest:
            top_y, top = top_y[:, -1:] - top_y, top[:, -1:] - top
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = (self.plain[0] + self.odds_y[:, -1] / gamma)[:, None] + spread * top_y
            ratio /= (self.plain[1] + self.odds[:, -1] / gamma)[:, None] + spread * top
        return ratio.max(axis=1) if largest else ratio.min(axis=1)


class SimpleBounds:
    """Bounds of a contrast by self-normalised inverse propensity weighting.

    With ``d+`` and ``d-`` the positive and negative parts of a contrast's ``change``, the target is ``sum_k E[d+_k]
    m+_k - E[d-_k] m-_k``, where ``m+_k = E[d+_k Y(k)] / E[d+_k]``. Each ``m`` is bounded by the extreme self-normalised
    mean over rows that got ``k``, weights normalised within these people.

    References
    ----------
    Zhao, Small and Bhattacharya (2019), Journal of the Royal Statistical Society B 81(4), 735-761, equations (9) and
    (10) (their bounds of ``E[Y(k)]`` are those of a policy that gives everybody ``k``). Kallus and Zhou (2021),
    Management Science 67(5), 2870-2890 (against a baseline).
    """

    def __init__(self, contrast: Contrast):
        self._contrast = contrast
        seen = contrast.observed
        self._cells = []
        for k in range(seen.n_arms):
            for sign in (1.0, -1.0):
                mass = np.clip(sign * contrast.change[:, k], 0.0, None)
                rows = np.flatnonzero((mass > 0) & (seen.arm == k) & (contrast.weight > 0))
                if len(rows):
                    order = np.argsort(seen.y[rows], kind="stable")
                    self._cells.append(_Cell(sign, mass, rows[order]))

    def _sums(self, cell: _Cell, weight: np.ndarray, share: np.ndarray) -> _Sums:
        """Running sums for row weights of shape (draws, n_cell)."""
        rows, y = cell.rows, self._contrast.observed.y[cell.rows]
        a = weight * cell.mass[rows]
        with_odds = a * self._contrast.odds[rows]
        start = np.zeros((len(a), 1))
        odds_y = np.concatenate([start, np.cumsum(with_odds * y, axis=1)], axis=1)
        odds = np.concatenate([start, np.cumsum(with_odds, axis=1)], axis=1)
        return _Sums(cell.sign, share, (a @ y, a.sum(axis=1)), odds_y, odds)

    def _whole(self) -> list[_Sums]:
        """All rows, once."""
        weight = self._contrast.weight
        return [
            self._sums(cell, weight[None, cell.rows], np.array([weight @ cell.mass / weight.sum()]))
            for cell in self._cells
        ]

    def _drawn(self, bootstrap: ClusterBootstrap) -> Iterator[tuple[list[_Sums], slice]]:
        """The same of bootstrap draws, some at a time."""
        shares = bootstrap.means(np.column_stack([cell.mass for cell in self._cells]))
        every = np.concatenate([cell.rows for cell in self._cells])
        ends = np.cumsum([len(cell.rows) for cell in self._cells])[:-1]
        start = 0
        for weight in bootstrap.row_weights(every):
            at = slice(start, start + len(weight))
            parts = np.split(weight, ends, axis=1)
            yield (
                (
                    [
                        self._sums(c, part, shares[at, j])
                        for j, (c, part) in enumerate(zip(self._cells, parts, strict=True))
                    ]
                ),
                at,
            )
            start = at.stop

    def ends(self, gamma: float) -> tuple[float, float]:
        """Lower and upper bound on these rows."""
        whole, gammas = self._whole(), np.array([gamma])
        return float(_total(whole, gammas, False)[0]), float(_total(whole, gammas, True)[0])

    def value(self, gamma: float, largest: bool) -> float:
        """One end on these rows."""
        return self.ends(gamma)[largest]

    def estimate(self, gamma: float, largest: bool, level: float) -> Estimate:
        """One end with its influences."""
        seen = self._contrast.observed
        return influence_estimate(
            self.value(gamma, largest), self.influence(gamma, largest), groups=seen.groups,
            sample_weight=seen.sample_weight, level=level,
        )  # fmt: skip

    def influence(self, gamma: float, largest: bool) -> np.ndarray:
        """Each row's influence on one end, propensities given; shape (n,), mean zero.

        The end ``m`` of a cell solves ``E[a v (Y - m)] = 0``, where the extreme weights ``v`` switch at ``m`` itself,
        so that moving the switch changes nothing to first order; the cell's share is estimated from the same rows.
        """
        contrast, n = self._contrast, self._contrast.observed.n
        relative = contrast.weight * n / contrast.weight.sum()
        out = np.zeros(n)
        for cell, sums in zip(self._cells, self._whole(), strict=True):
            up = largest == (cell.sign > 0)
            mean = float(sums.end(np.array([gamma]), up)[0])
            y, odds = contrast.observed.y[cell.rows], contrast.odds[cell.rows]
            weights = 1 + odds * np.where((y > mean) == up, gamma, 1 / gamma)
            a = relative[cell.rows] * cell.mass[cell.rows]
            share = float(sums.share[0])
            out += cell.sign * mean * relative * (cell.mass - share)
            out[cell.rows] += cell.sign * share * n * a * weights * (y - mean) / (a * weights).sum()
        return out

    def bootstrap(self, gammas: np.ndarray, bootstrap: ClusterBootstrap) -> np.ndarray:
        """Both ends for every Gamma in every draw: (n_draws, n_gammas, 2); infinite where a draw has none."""
        out = np.zeros((len(bootstrap.counts), len(gammas), 2))
        if not self._cells:  # nobody is treated otherwise than by the baseline
            return out
        for sums, at in self._drawn(bootstrap):
            ones = np.ones(at.stop - at.start)
            for j, gamma in enumerate(gammas):
                for end in (0, 1):
                    out[at, j, end] = _total(sums, gamma * ones, bool(end))
        return out


def _total(cells: list[_Sums], gamma: np.ndarray, largest: bool) -> np.ndarray:
    """An end of the whole contrast, (draws,)."""
    total = sum((s.sign * s.share * s.end(gamma, largest == (s.sign > 0)) for s in cells), np.zeros(len(gamma)))
    return np.where(np.isnan(total), np.inf if largest else -np.inf, total)  # a draw without a cell's rows
