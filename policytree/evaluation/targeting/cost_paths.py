"""In which order a growing budget buys treatments: hulls of all people at once, then one sort."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

CHUNK = 1 << 14  # people whose hulls are built together: their arrays fit into the processor's cache


@dataclass(frozen=True, slots=True, eq=False)
class CostPath:
    """Purchases, in order, as the budget grows.

    Attributes
    ----------
    first : ndarray of shape (n,), int
        The arm everybody has before anything is bought: the cheapest (of equals the best).
    person, before, after : ndarray of shape (n_steps,), int
        Every step moves one person from one arm to a dearer and better one. Each person's steps come in order.
    price : ndarray of shape (n_steps,)
        Predicted reward that a step gains per unit of cost; never rises.
    starts : ndarray of shape (n_blocks,), int
        Where steps of one price begin. They are bought together, everybody's by the same part: among equals lots are
        drawn.
    """

    first: np.ndarray
    person: np.ndarray
    before: np.ndarray
    after: np.ndarray
    price: np.ndarray
    starts: np.ndarray

    def block_sums(self, values: np.ndarray) -> np.ndarray:
        """Sums of one number per step over the steps of equal price, (n_blocks,)."""
        return values if len(self.starts) == len(values) else np.add.reduceat(values, self.starts)

    def bought(self, block: int, part: float) -> tuple[np.ndarray, np.ndarray]:
        """Steps taken when some blocks are bought wholly and the next one by a part: positions, and how far (0, 1]."""
        end = self.starts[block] if block < len(self.starts) else len(self.person)
        last = self.starts[block + 1] if block + 1 < len(self.starts) else len(self.person)
        if part <= 0.0 or block >= len(self.starts):
            last = end
        far = np.ones(last)
        far[end:] = part
        return np.arange(last), far


def cost_path(reward: np.ndarray, cost: np.ndarray) -> CostPath:
    """The path that buys most predicted reward for every budget: a fractional multiple-choice knapsack.

    Nobody's arms below the upper hull of (cost, reward) are ever bought: two others mixed are better. Along the hull
    prices (reward gained per cost) fall, so that buying all steps of all people by falling price solves the linear
    programme for every budget at once (Dantzig's greedy order), the last step partly. Starts from everybody's cheapest
    arm; O(n K^2 + m log m) for m steps, of which nobody has more than K - 1.

    Parameters
    ----------
    reward, cost : ndarray of shape (n, K), float64
        Predicted, larger rewards being better; costs may be negative.

    References
    ----------
    Sinha & Zoltners (1979), The multiple-choice knapsack problem, Operations Research 27(3), 503-515. Sverdrup, Wu,
    Athey & Wager (2024), Qini curves for multi-armed treatment rules, Journal of Computational and Graphical
    Statistics, algorithm 1.
    """
    n = len(reward)
    first = np.empty(n, dtype=np.int64)
    parts = []
    for start in range(0, n, CHUNK):
        rows = slice(start, min(start + CHUNK, n))
        # An arm is one contiguous row: sums and comparisons over people then run at full speed.
        r, c = np.ascontiguousarray(reward[rows].T), np.ascontiguousarray(cost[rows].T)
        first[rows] = _cheapest(r, c)
        parts += [(person + start, *rest) for person, *rest in _hull_steps(r, c, first[rows])]
    person, before, after, price = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(-price, kind="stable")
    price = price[order]
    starts = np.flatnonzero(np.concatenate([[True], price[1:] != price[:-1]])) if len(price) else np.empty(0, int)
    return CostPath(first, person[order], before[order], after[order], price, starts)


def _cheapest(r: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The cheapest arm of everybody, of equally cheap ones the best; r and c are (K, n)."""
    best, best_r, best_c = np.zeros(r.shape[1], dtype=np.int64), r[0].copy(), c[0].copy()
    for k in range(1, len(r)):
        better = (c[k] < best_c) | ((c[k] == best_c) & (r[k] > best_r))
        best[better] = k
        best_r, best_c = np.where(better, r[k], best_r), np.where(better, c[k], best_c)
    return best


def _hull_steps(r: np.ndarray, c: np.ndarray, now: np.ndarray):
    """Steps along everybody's upper hull, round by round: person, arm before, arm after, price; r and c are (K, n).

    From the arm a person has, the next corner is the one that gains most per cost; of equals the farthest.
    """
    person = np.arange(len(now))
    ceiling = np.full(len(now), np.inf)
    while len(person):
        now_r, now_c = r[now, person], c[now, person]
        price, farthest = np.zeros(len(person)), np.zeros(len(person))
        after = np.full(len(person), -1)
        for k in range(len(r)):
            dearer, gain = c[k, person] - now_c, r[k, person] - now_r
            with np.errstate(over="ignore"):
                slope = np.divide(gain, dearer, out=np.zeros(len(person)), where=(dearer > 0) & (gain > 0))
            better = (slope > price) | ((slope == price) & (slope > 0) & (dearer > farthest))
            np.copyto(price, slope, where=better)
            np.copyto(farthest, dearer, where=better)
            after[better] = k
        moved = after >= 0
        person, before, now = person[moved], now[moved], after[moved]
        ceiling = np.minimum(price[moved], ceiling[moved])  # rounding must not let a later step come first
        yield person, before, now, ceiling


@dataclass(frozen=True, slots=True, eq=False)
class Ledger:
    """Spend and gain of a path by scores that had no part in it.

    Attributes
    ----------
    path : CostPath
    scores, spends : ndarray of shape (n, K)
        Gains and costs beyond the baseline's.
    """

    path: CostPath
    scores: np.ndarray
    spends: np.ndarray

    def of_steps(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scores or spends of everybody's first arm, (n,), and what every step adds, (n_steps,)."""
        path = self.path
        added = values[path.person, path.after] - values[path.person, path.before]
        return values[np.arange(len(values)), path.first], added

    def corners(self, weights: Iterable[np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Spend and gain per person after every block, first of all before any, each (n_blocks + 1,); per weighting.

        The path is sorted once; another weighting costs two sums along it.
        """
        path = self.path
        (first_spend, spend), (first_gain, gain) = self.of_steps(self.spends), self.of_steps(self.scores)
        for weight in weights:
            total, of_step = weight.sum(), weight[path.person]
            yield (
                np.append(weight @ first_spend, path.block_sums(of_step * spend)).cumsum() / total,
                np.append(weight @ first_gain, path.block_sums(of_step * gain)).cumsum() / total,
            )

    def own(self, block: int, part: float) -> tuple[np.ndarray, np.ndarray]:
        """Everybody's spend and gain when some blocks are bought wholly and the next one by a part, (n,) each."""
        steps, far = self.path.bought(block, part)
        out = []
        for values in (self.spends, self.scores):
            first, added = self.of_steps(values)
            out.append(first + np.bincount(self.path.person[steps], far * added[steps], minlength=len(first)))
        return out[0], out[1]


def positions(spend: np.ndarray, budgets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the spend first exceeds each budget: blocks bought wholly, and the part of the next one.

    Estimated spends may fall here and there; a budget is used up when it is first exceeded.
    """
    exceeded = np.searchsorted(np.maximum.accumulate(spend), budgets, side="right")
    block = np.clip(exceeded - 1, 0, len(spend) - 1)
    inside = (exceeded > 0) & (exceeded < len(spend))
    after = np.minimum(block + 1, len(spend) - 1)
    width = np.where(inside, spend[after] - spend[block], 1.0)
    return block, np.where(inside, (budgets - spend[block]) / width, 0.0)


def values_at(spend: np.ndarray, gain: np.ndarray, budgets: np.ndarray) -> np.ndarray:
    """Gain at every budget: straight between corners, and that of the last corner beyond it."""
    block, part = positions(spend, budgets)
    after = np.minimum(block + 1, len(gain) - 1)
    return gain[block] + part * (gain[after] - gain[block])
