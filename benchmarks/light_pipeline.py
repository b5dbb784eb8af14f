"""The held-out scores of `LinearLearner` in a twentieth of the library's time, for thousands of simulated trials.

`held_out_scores` fits the same least squares in the same two inner folds as `LinearLearner` in `cross_val_policy_value`
and scores the same rows; its trees have the same value on the rows that they are learnt from, and folds are balanced
over arms as there (`tests/repository/test_benchmark_power.py`). Only fixed, known chances of treatment, no weights.

The exact tree of depth two: for every root cut, as rows move from one side to the other, sums of rewards by side,
column, bin and arm; a side's best stump is the best prefix of such sums. The time is that of bins times root cuts, so
that columns are best rounded (`Cell.rounded`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numba as nb
import numpy as np

FOLDS, REPETITIONS = 5, 5
TREE = 10  # numbers of a tree: three columns, the last bins of their left sides (-1: no cut), four arms


@dataclass(frozen=True)
class HeldOut:
    """Held-out rewards of every row of a simulated trial, by repetition.

    Attributes
    ----------
    scores : ndarray of shape (R, 1 + K, n)
        Held-out rewards of the tree that has not seen the row, and of every arm.
    trees : ndarray of shape (R, folds, TREE), int
    values : list of ndarray
        Of every column, ascending: bins.
    folds : ndarray of shape (R, n), int
    """

    scores: np.ndarray
    trees: np.ndarray
    values: list
    folds: np.ndarray

    def chosen(self, X: np.ndarray) -> np.ndarray:
        """Arms (R, folds, rows) that the trees give other rows."""
        codes = np.column_stack(
            [np.searchsorted((v[:-1] + v[1:]) / 2, column) for v, column in zip(self.values, X.T, strict=True)]
        )
        return np.array([[predicted(tree, codes) for tree in trees] for trees in self.trees])


def held_out_scores(study: dict, rng, linear: bool = True) -> HeldOut:
    """Repeat five folds five times.

    Parameters
    ----------
    study : dict
        "Y", "T" (0, 1, ...), "X" (n, p), "propensity" by arm, perhaps "groups".
    rng : Generator
        Draws the folds.
    linear : bool
        Whether outcome models have slopes; else they are the arms' means.
    """
    Y, T, X, groups = study["Y"], study["T"], study["X"], study.get("groups")
    chances = np.array([study["propensity"][k] for k in range(len(study["propensity"]))])
    design = np.column_stack([np.ones(len(Y)), X]) if linear else np.ones((len(Y), 1))
    values, codes = zip(*(np.unique(column, return_inverse=True) for column in X.T), strict=True)
    codes = np.column_stack(codes)
    order = np.argsort(codes, axis=0, kind="stable")
    units = np.arange(len(Y)) if groups is None else groups
    folds = np.array([balanced(T, units, rng) for _ in range(REPETITIONS)])
    scores, trees = [], []
    for fold in folds:
        inner = np.full((FOLDS, len(Y)), -1)
        for k in range(FOLDS):
            train = fold != k
            inner[k, train] = inner_folds(groups[train]) if groups is not None else _halves(train.sum())
        found, learnt = one_pass(design, Y, T, chances, codes, order, inner, max(map(len, values)))
        scores.append(found.T)
        trees.append(learnt)
    return HeldOut(np.array(scores), np.array(trees), list(values), folds)


@dataclass(frozen=True)
class JudgedLater:
    """Rewards of the later half of a simulated trial, whose blocks are judged by what all rows before them taught.

    Attributes
    ----------
    scores : ndarray of shape (1 + K, m)
        Rewards of the tree learnt from the rows before a row's block, and of every arm.
    rows, block : ndarray of shape (m,), int
    """

    scores: np.ndarray
    rows: np.ndarray
    block: np.ndarray


def sequential_scores(study: dict, blocks: np.ndarray, linear: bool = True) -> JudgedLater:
    """Sequential validation, as `cross_val_policy_value` does with ``validation="sequential"``.

    Parameters
    ----------
    study : dict
        As in `held_out_scores`.
    blocks : ndarray of shape (n,), int
        0, 1, ...; the later half of them is judged.
    """
    Y, T, X, groups = study["Y"], study["T"], study["X"], study.get("groups")
    chances = np.array([study["propensity"][k] for k in range(len(study["propensity"]))])
    design = np.column_stack([np.ones(len(Y)), X]) if linear else np.ones((len(Y), 1))
    codes = np.column_stack([np.unique(column, return_inverse=True)[1] for column in X.T])
    found, rows, n_blocks = [], [], blocks.max() + 1
    for k in range(n_blocks // 2, n_blocks):
        known = np.flatnonzero(blocks <= k)
        learns, own = blocks[known] < k, codes[known]
        half = np.full((1, len(known)), -1)
        half[0, learns] = _halves(learns.sum()) if groups is None else inner_folds(groups[known][learns])
        order = np.argsort(own, axis=0, kind="stable")
        scores, _ = one_pass(design[known], Y[known], T[known], chances, own, order, half, codes.max() + 1)
        found.append(scores[~learns].T)
        rows.append(known[~learns])
    judged = np.concatenate(rows)
    return JudgedLater(np.hstack(found), judged, blocks[judged])


def balanced(T, units, rng, folds: int = FOLDS) -> np.ndarray:
    """Folds (n,) that deal the units of every arm out evenly."""
    _, first = np.unique(units, return_index=True)
    shuffled = rng.permutation(len(first))
    fold = np.empty(len(first), dtype=np.int64)
    fold[shuffled[np.argsort(T[first[shuffled]], kind="stable")]] = np.arange(len(first)) % folds
    return fold[units]


def inner_folds(groups) -> np.ndarray:
    """The two folds of `LinearLearner`."""
    units = np.unique(groups, return_inverse=True)[1]
    return _halves(units.max() + 1)[units]


@lru_cache(maxsize=16)
def _halves(n: int) -> np.ndarray:
    return np.random.default_rng(0).permutation(n) % 2


@nb.njit(cache=True)
def one_pass(design, Y, T, chances, codes, order, inner, B):
    """Scores (n, 1 + K) of one cross-fitting, and its trees; ``inner`` (folds, n): the learners' half, -1 if judged."""
    n, K = len(Y), len(chances)
    found, trees = np.zeros((n, 1 + K)), np.zeros((len(inner), TREE), dtype=np.int64)
    for fold in range(len(inner)):
        rewards = scored(design, Y, T, chances, inner[fold])
        trees[fold] = depth_two(codes, order, rewards, inner[fold], B)
        arms = predicted(trees[fold], codes)
        for i in range(n):
            if inner[fold, i] < 0:
                found[i, 0] = rewards[i, arms[i]]
                found[i, 1:] = rewards[i]
    return found, trees


@nb.njit(cache=True)
def scored(design, Y, T, chances, half):
    """Doubly robust scores: of learners by the other half's models, of judged rows by the mean of both."""
    (n, p), K = design.shape, len(chances)
    models = np.zeros((2, K, p))
    for fold in range(2):
        gram, right = np.zeros((K, p, p)), np.zeros((K, p))
        for i in range(n):
            if half[i] == 1 - fold:
                k = T[i]
                for a in range(p):
                    right[k, a] += design[i, a] * Y[i]
                    for b in range(p):
                        gram[k, a, b] += design[i, a] * design[i, b]
        for k in range(K):
            models[fold, k] = np.linalg.solve(gram[k] + 1e-9 * np.eye(p), right[k])
    out = np.zeros((n, K))
    for i in range(n):
        for k in range(K):
            for a in range(p):
                slope = models[half[i], k, a] if half[i] >= 0 else (models[0, k, a] + models[1, k, a]) / 2
                out[i, k] += slope * design[i, a]
        out[i, T[i]] += (Y[i] - out[i, T[i]]) / chances[T[i]]
    return out


@nb.njit(cache=True)
def best_stump(sums, total):
    """Value, column and bin (the last of its left side; -1: no cut) of the best stump from sums (p, B, K)."""
    p, B, K = sums.shape
    best, column, cut = total.max(), 0, -1
    left = np.zeros(K)
    for g in range(p):
        left[:] = 0.0
        for b in range(B - 1):
            up = down = -np.inf
            for k in range(K):
                left[k] += sums[g, b, k]
                up, down = max(up, left[k]), max(down, total[k] - left[k])
            if up + down > best:
                best, column, cut = up + down, g, b
    return best, column, cut


@nb.njit(cache=True)
def depth_two(codes, order, rewards, half, B):
    """The best tree of depth two of the rows that learn."""
    (n, p), K = codes.shape, rewards.shape[1]
    tree, best = np.zeros(TREE, dtype=np.int64), -np.inf
    for f in range(p):
        sums, totals = np.zeros((2, p, B, K)), np.zeros((2, K))
        for i in range(n):
            if half[i] >= 0:
                for k in range(K):
                    totals[1, k] += rewards[i, k]
                    for g in range(p):
                        sums[1, g, codes[i, g], k] += rewards[i, k]
        last = -1
        for at in range(n + 1):
            i = order[min(at, n - 1), f]
            if at < n and half[i] < 0:
                continue
            if last >= 0 and (at == n or codes[i, f] > last):
                lv, lg, lb = best_stump(sums[0], totals[0])
                rv, rg, rb = best_stump(sums[1], totals[1])
                if lv + rv > best + 1e-9:
                    best = lv + rv
                    tree[:6] = (f, lg, rg, last, lb, rb)
            if at < n:
                last = codes[i, f]
                for k in range(K):
                    totals[0, k] += rewards[i, k]
                    totals[1, k] -= rewards[i, k]
                    for g in range(p):
                        sums[0, g, codes[i, g], k] += rewards[i, k]
                        sums[1, g, codes[i, g], k] -= rewards[i, k]
    totals = np.zeros((4, K))
    leaf = leaves(tree, codes)
    for i in range(n):
        if half[i] >= 0:
            totals[leaf[i]] += rewards[i]
    for j in range(4):
        tree[6 + j] = totals[j].argmax()
    return tree


@nb.njit(cache=True)
def leaves(tree, codes):
    """The leaf of every row: 0 to 3 from left to right."""
    out = np.zeros(len(codes), dtype=np.int64)
    for i in range(len(codes)):
        side = int(codes[i, tree[0]] > tree[3])
        out[i] = 2 * side + int(codes[i, tree[1 + side]] > tree[4 + side])
    return out


@nb.njit(cache=True)
def predicted(tree, codes):
    """The arm of every row."""
    return tree[6:][leaves(tree, codes)]
