"""The held-out scores of `LinearLearner` in a fortieth of the library's time, for thousands of simulated trials.

`held_out_scores` draws the same folds as `cross_val_policy_value`, fits the same least squares in the same two inner
folds and scores the same rows; its trees have the same value on the rows that they are learnt from
(`tests/test_benchmark_power.py`). Only fixed, known chances of treatment, no weights.

The exact tree of depth two: for every root cut, as rows move from one side to the other, sums of rewards by side,
column, bin and arm; a side's best stump is the best prefix of such sums. Columns are best rounded (`Cell.rounded`): the
time is that of bins times root cuts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np

from policytree.evaluation.policy_value.validation import REPEATED, Validation, draw_validation
from policytree.weighting.study_data import observe


@dataclass(frozen=True)
class HeldOut:
    """What a simulated trial brings every row, repetition by repetition.

    Attributes
    ----------
    scores : ndarray of shape (R, n, K)
        Held-out rewards of every arm.
    chosen : ndarray of shape (R, n), int
        The arm of the tree that has not seen the row.
    trees : list of list of ndarray
        Of every repetition and fold: root column, left column, right column, their thresholds, four arms.
    validation : Validation
    seen : StudyData
    """

    scores: np.ndarray
    chosen: np.ndarray
    trees: list
    validation: Validation
    seen: object

    def of_rules(self) -> np.ndarray:
        """Scores (R, 1 + K, n) of the tree and of every arm."""
        tree = np.take_along_axis(self.scores, self.chosen[:, :, None], axis=2)
        return np.concatenate([tree, self.scores], axis=2).transpose(0, 2, 1)


def held_out_scores(study: dict, seed: int, linear: bool = True) -> HeldOut:
    """Repeat five folds five times, as ``cross_val_policy_value(LinearLearner(2), ..., random_state=seed)`` does.

    Parameters
    ----------
    study : dict
        "Y", "T" (0, 1, ...), "X" (n, p), "propensity" by arm, perhaps "groups".
    linear : bool
        Whether outcome models have slopes; else they are the arms' means.
    """
    Y, T, X, groups = study["Y"], study["T"], study["X"], study.get("groups")
    chances = np.array([study["propensity"][k] for k in range(len(study["propensity"]))])
    seen = observe(Y, T, groups=groups)
    validation = draw_validation(REPEATED, None, None, seen, seed)
    design = np.column_stack([np.ones(len(Y)), X]) if linear else np.ones((len(Y), 1))
    scores, chosen, trees = [], np.zeros((len(validation.plans), len(Y)), dtype=np.int64), []
    for r, plan in enumerate(validation.plans):
        scores.append(np.zeros((len(Y), len(chances))))
        trees.append([])
        for train, test in plan.splits():
            inner = inner_folds(len(train), None if groups is None else groups[train])
            own, held = fit_and_score(design, Y, T, chances, train, inner, test)
            scores[r][test] = held
            tree = depth_two(X[train], own)
            trees[r].append(tree)
            chosen[r, test] = predict(tree, X[test])
    return HeldOut(np.array(scores), chosen, trees, validation, seen)


def inner_folds(n: int, groups) -> np.ndarray:
    """The two folds of `LinearLearner`."""
    units = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    return np.random.default_rng(0).permutation(units.max() + 1)[units] % 2


@nb.njit(cache=True)
def fit_and_score(design, Y, T, chances, train, inner, test):
    """Doubly robust scores of the training rows, out of fold, and of the test rows, by both folds' models."""
    K, p = len(chances), design.shape[1]
    models = np.zeros((2, K, p))
    for fold in range(2):
        gram, right = np.zeros((K, p, p)), np.zeros((K, p))
        for i in range(len(train)):
            if inner[i] != fold:
                row, k = train[i], T[train[i]]
                for a in range(p):
                    right[k, a] += design[row, a] * Y[row]
                    for b in range(p):
                        gram[k, a, b] += design[row, a] * design[row, b]
        for k in range(K):
            models[fold, k] = np.linalg.solve(gram[k] + 1e-9 * np.eye(p), right[k])
    own, held = np.zeros((len(train), K)), np.zeros((len(test), K))
    for i in range(len(train)):
        row = train[i]
        for k in range(K):
            own[i, k] = (models[inner[i], k] * design[row]).sum()
        own[i, T[row]] += (Y[row] - own[i, T[row]]) / chances[T[row]]
    for i in range(len(test)):
        row = test[i]
        for k in range(K):
            held[i, k] = ((models[0, k] + models[1, k]) * design[row]).sum() / 2
        held[i, T[row]] += (Y[row] - held[i, T[row]]) / chances[T[row]]
    return own, held


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
def exact_cuts(codes, order, rewards, B):
    """Root column and bin, and both sides' columns and bins, of the best tree of depth two."""
    n, p = codes.shape
    K = rewards.shape[1]
    found = np.array([0, -1, 0, -1, 0, -1])
    best = -np.inf
    for f in range(p):
        left, right = np.zeros((p, B, K)), np.zeros((p, B, K))
        left_total, right_total = np.zeros(K), np.zeros(K)
        for i in range(n):
            for k in range(K):
                right_total[k] += rewards[i, k]
                for g in range(p):
                    right[g, codes[i, g], k] += rewards[i, k]
        for at in range(n):
            i = order[at, f]
            for k in range(K):
                left_total[k] += rewards[i, k]
                right_total[k] -= rewards[i, k]
                for g in range(p):
                    left[g, codes[i, g], k] += rewards[i, k]
                    right[g, codes[i, g], k] -= rewards[i, k]
            if at + 1 < n and codes[order[at + 1, f], f] == codes[i, f]:
                continue
            lv, lg, lb = best_stump(left, left_total)
            rv, rg, rb = best_stump(right, right_total)
            if lv + rv > best + 1e-9:
                best = lv + rv
                found[:] = (f, codes[i, f], lg, lb, rg, rb)
    return found


def depth_two(X, rewards) -> np.ndarray:
    """The tree: three columns, three thresholds, four arms."""
    values = [np.unique(column) for column in X.T]
    codes = np.column_stack([np.searchsorted(v, column) for v, column in zip(values, X.T, strict=True)])
    order = np.argsort(codes, axis=0, kind="stable")
    cuts = exact_cuts(codes, order, rewards, max(map(len, values)))
    columns = cuts[::2]
    thresholds = [_between(values[column], b) for column, b in zip(columns, cuts[1::2], strict=True)]
    tree = np.concatenate([columns, thresholds, np.zeros(4)])
    leaves = _leaves(tree, X)
    for leaf in range(4):
        if (leaves == leaf).any():
            tree[6 + leaf] = rewards[leaves == leaf].sum(axis=0).argmax()
    return tree


def _between(values, b: int) -> float:
    """The threshold after the bin; every row is below that of the last bin, none below that of -1."""
    return -np.inf if b < 0 else np.inf if b + 1 >= len(values) else (values[b] + values[b + 1]) / 2


def _leaves(tree, X) -> np.ndarray:
    root = X[:, int(tree[0])] > tree[3]
    inner = np.where(root, X[:, int(tree[2])] > tree[5], X[:, int(tree[1])] > tree[4])
    return 2 * root + inner


def predict(tree, X) -> np.ndarray:
    """The arm of every row."""
    return tree[6 + _leaves(tree, X)].astype(np.int64)
