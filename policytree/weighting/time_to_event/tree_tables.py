"""Boosted trees of covariates and a bin of time, evaluated for all bins of a row at once.

A row meets the splits of a tree on covariates with the same answers in every bin. The answers to all of them, as bits
of a number, are the row of a table that has what the tree predicts in every bin: one comparison per split and one
row of the table per tree, in place of a way through the tree for every bin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class _Split:
    """A split on a covariate: whether a value goes left."""

    column: int
    threshold: float
    missing_left: bool

    def left(self, values: np.ndarray) -> np.ndarray:
        return (values <= self.threshold) | (np.isnan(values) if self.missing_left else False)


@dataclass(frozen=True, slots=True)
class TreeTables:
    """The trees of a LightGBM model whose last column is the bin.

    Attributes
    ----------
    splits : tuple (trees) of tuples of splits on covariates
    tables : tuple (trees) of ndarray of shape (2^splits, J)
        Contribution of a tree in every bin; bit ``i`` of the number of a row says whether split ``i`` sends it left.
    n_bins : int
    """

    splits: tuple[tuple[_Split, ...], ...]
    tables: tuple[np.ndarray, ...]
    n_bins: int

    @classmethod
    def of(cls, booster: Any, n_bins: int) -> TreeTables:
        """Read a fitted ``lightgbm.Booster``."""
        dumped = booster.dump_model()
        bin_column = dumped["max_feature_idx"]
        found = [_table(tree["tree_structure"], bin_column, n_bins) for tree in dumped["tree_info"]]
        return cls(tuple(splits for splits, _ in found), tuple(table for _, table in found), n_bins)

    def stages(self, Z: np.ndarray, rounds: tuple[int, ...]) -> np.ndarray:
        """Sums over the first trees, after each of the ascending ``rounds``: (S, n, J)."""
        columns = np.ascontiguousarray(Z.T)
        out = np.empty((len(rounds), len(Z), self.n_bins))
        raw, done = np.zeros((len(Z), self.n_bins)), 0
        for stage, r in enumerate(rounds):
            for splits, table in zip(self.splits[done:r], self.tables[done:r], strict=True):
                code = np.zeros(len(Z), dtype=np.intp)
                for i, split in enumerate(splits):
                    code |= split.left(columns[split.column]).astype(np.intp) << i
                raw += table[code]
            done = r
            out[stage] = raw
        return out


def _table(root: dict[str, Any], bin_column: int, n_bins: int) -> tuple[tuple[_Split, ...], np.ndarray]:
    """The splits of one tree on covariates, and its table."""
    splits: list[_Split] = []
    leaves: list[tuple[dict[int, bool], int, int, float]] = []

    def visit(node: dict[str, Any], answers: dict[int, bool], low: int, high: int) -> None:
        if "leaf_value" in node:
            leaves.append((answers, low, high, node["leaf_value"]))
            return
        threshold = float(node["threshold"])
        if node["split_feature"] == bin_column:
            cut = min(max(int(np.floor(threshold)) + 1, low), high)
            visit(node["left_child"], answers, low, cut)
            visit(node["right_child"], answers, cut, high)
            return
        # A column without missing values at the fit counts a missing one as zero.
        missing_left = node["default_left"] if node["missing_type"] == "NaN" else threshold >= 0.0
        split = _Split(node["split_feature"], threshold, missing_left)
        if split not in splits:
            splits.append(split)
        i = splits.index(split)
        visit(node["left_child"], {**answers, i: True}, low, high)
        visit(node["right_child"], {**answers, i: False}, low, high)

    visit(root, {}, 0, n_bins)
    codes = np.arange(1 << len(splits))
    table = np.zeros((len(codes), n_bins))
    for answers, low, high, value in leaves:
        own = np.ones(len(codes), dtype=bool)
        for i, answer in answers.items():
            own &= ((codes >> i) & 1) == answer
        table[own, low:high] = value
    return tuple(splits), table
