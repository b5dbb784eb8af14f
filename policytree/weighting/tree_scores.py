"""Raw scores of boosted trees of at most eight leaves: LightGBM's own, to the last bit, several times as fast.

LightGBM goes from row to row and down every tree, at a mispredicted branch a level. Here every question of a tree is
put to all rows at once: a row's answers strike out leaves, bits of a byte, and the first one that is left is the row's.

References
----------
Lucchese, Nardini, Orlando, Perego, Tonellotto and Venturini (2015), QuickScorer, SIGIR.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

MOST_LEAVES = 8
FEWEST_ROWS = 3_000  # of fewer, reading the trees takes longer than LightGBM needs
BLOCK = 16_384  # rows whose bytes and sums stay in a processor's own memory
#: Of a byte of struck leaves, the first that is left, by the number of leaves.
FIRST_LEFT = [
    np.array([min((~struck & -~struck).bit_length(), n_leaves) - 1 for struck in range(256)])
    for n_leaves in range(MOST_LEAVES + 1)
]
MISSING_TYPE, NEVER, NAN = 12, 0, 8  # bits of LightGBM's ``decision_type``, and two of their values
CATEGORICAL, DEFAULT_LEFT = 1, 2


@dataclass(frozen=True, slots=True)
class _Tree:
    """A tree as its questions.

    Attributes
    ----------
    questions : tuple of (feature, threshold, whether NaN goes right, struck)
        Rows above the threshold strike out the leaves of the left side, bits of ``struck``.
    values : ndarray of shape (256,)
        By the struck leaves.
    """

    questions: tuple[tuple[int, float, bool, int], ...]
    values: np.ndarray


_READ: WeakKeyDictionary[Any, list[_Tree] | None] = WeakKeyDictionary()  # trees are asked again: of other rows and arms


class RawScores:
    """Sums of a booster's trees for the rows of one table, as ``predict(raw_score=True)`` says them.

    Parameters
    ----------
    trees : list of _Tree
    Z : ndarray of shape (n, p), float64
        May have NaN.
    """

    def __init__(self, trees: list[_Tree], Z: np.ndarray):
        self._trees, self._n = trees, len(Z)
        self._blocks = [np.ascontiguousarray(Z[start : start + BLOCK].T) for start in range(0, len(Z), BLOCK)]
        self._has_missing = [np.isnan(columns).any(axis=1) for columns in self._blocks]

    @classmethod
    def of(cls, booster: Any, Z: np.ndarray) -> RawScores | None:
        """None where LightGBM is as fast, or trees are of another kind: more leaves, or categories."""
        if len(Z) < FEWEST_ROWS:
            return None
        if booster not in _READ:
            _READ[booster] = _read(booster.model_to_string())
        trees = _READ[booster]
        return None if trees is None else cls(trees, Z)

    def sums(self, first: int, count: int) -> np.ndarray:
        """Over trees ``first`` to ``first + count`` of a booster of one output, (n,)."""
        out = np.zeros(self._n)
        for k, (columns, has_missing) in enumerate(zip(self._blocks, self._has_missing, strict=True)):
            start = k * BLOCK
            _add(self._trees[first : first + count], columns, has_missing, out[start : start + BLOCK])
        return out


def _add(trees: list[_Tree], columns: np.ndarray, has_missing: np.ndarray, out: np.ndarray) -> None:
    """Add the trees' values, one tree after the other as LightGBM does, so that sums round alike."""
    right, struck, value = np.empty(len(out), dtype=bool), np.empty(len(out), dtype=np.uint8), np.empty(len(out))
    bits = np.empty_like(struck)
    for tree in trees:
        struck.fill(0)
        for feature, threshold, nan_right, left in tree.questions:
            column = columns[feature]
            np.greater(column, threshold, out=right)  # false of NaN
            if nan_right and has_missing[feature]:
                right |= np.isnan(column)
            np.multiply(right.view(np.uint8), left, out=bits)
            np.bitwise_or(struck, bits, out=struck)
        np.take(tree.values, struck, out=value, mode="clip")
        out += value


def _read(text: str) -> list[_Tree] | None:
    """Trees of LightGBM's text, which has all digits of thresholds and values."""
    trees = []
    for block in text.split("\nTree=")[1:]:
        fields = dict([line.split("=", 1) for line in block.split("\n\n", 1)[0].split("\n")[1:]])
        leaves = np.array(fields["leaf_value"].split(), dtype=np.float64)
        if len(leaves) > MOST_LEAVES:
            return None
        if len(leaves) == 1:
            trees.append(_Tree((), np.full(256, leaves[0])))
            continue
        features, kinds, left, right = (
            [*map(int, fields[name].split())]
            for name in ("split_feature", "decision_type", "left_child", "right_child")
        )
        if any([kind & CATEGORICAL or kind & MISSING_TYPE not in (NEVER, NAN) for kind in kinds]):
            return None
        thresholds = [*map(float, fields["threshold"].split())]
        # Where training had no missing value, a missing one is read as zero.
        nan_right = [
            not kind & DEFAULT_LEFT if kind & MISSING_TYPE == NAN else threshold < 0.0
            for kind, threshold in zip(kinds, thresholds, strict=True)
        ]
        order, below = _sides(left, right)
        questions = tuple(zip(features, thresholds, nan_right, below, strict=True))
        trees.append(_Tree(questions, leaves[order][FIRST_LEFT[len(leaves)]]))
    return trees


def _sides(left: list[int], right: list[int]) -> tuple[list[int], list[int]]:
    """Leaves from left to right, and for every question the bits of those on its left side; leaves are negative."""
    order: list[int] = []
    below = [0] * len(left)

    def walk(node: int) -> int:
        if node < 0:
            order.append(~node)
            return 1 << (len(order) - 1)
        below[node] = walk(left[node])
        return below[node] | walk(right[node])

    walk(0)
    return order, below
