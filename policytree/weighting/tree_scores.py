"""Raw scores of boosted trees of at most eight leaves: LightGBM's own, to the last bit, several times as fast.

LightGBM goes from row to row and down every tree, at a mispredicted branch a level. Here every question is put to all
rows at once, and one that several trees ask is put once: a row's answers strike out leaves of a tree, bits of a byte,
and the first one that is left is the row's.

References
----------
Lucchese, Nardini, Orlando, Perego, Tonellotto and Venturini (2015), QuickScorer, SIGIR.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

MOST_LEAVES = 8
FEWEST_ROWS = 1_500  # of fewer, reading the trees takes longer than LightGBM needs
FEWEST_ROWS_OF_ROUNDS = 200  # the same where LightGBM would be called for every round
BLOCK = 8_192  # rows whose answers and sums stay in a processor's own memory
#: Of a byte of struck leaves, the first that is left, by the number of leaves.
FIRST_LEFT = [
    np.array([min((~struck & -~struck).bit_length(), n_leaves) - 1 for struck in range(256)])
    for n_leaves in range(MOST_LEAVES + 1)
]
MISSING_TYPE, NEVER, NAN = 12, 0, 8  # bits of LightGBM's ``decision_type``, and two of their values
CATEGORICAL, DEFAULT_LEFT = 1, 2

Question = tuple[int, float, bool]  # feature, threshold, whether NaN goes right


@dataclass(frozen=True, slots=True)
class _Tree:
    """A tree by what its questions strike out.

    Attributes
    ----------
    questions : ndarray of shape (q,), int
        Numbers of its questions, which several trees may ask.
    n_known : int
        Questions of this tree and of those before it.
    struck : ndarray of shape (q, 1), uint8
        Leaves of the left side, bits that rows above the threshold strike out.
    values : ndarray of shape (256,)
        By the struck leaves.
    """

    questions: np.ndarray
    n_known: int
    struck: np.ndarray
    values: np.ndarray


@dataclass(frozen=True, slots=True)
class _Trees:
    """Trees of a booster, one after the other, of every output in turn; questions in the order of their first use."""

    questions: list[Question]
    trees: list[_Tree]
    n_outputs: int


#: Trees of so many rounds, which are asked again: of other rows and arms.
_READ: WeakKeyDictionary[Any, tuple[int, _Trees | None]] = WeakKeyDictionary()


class RawScores:
    """Sums of a booster's trees for the rows of one table, as ``predict(raw_score=True)`` says them.

    Parameters
    ----------
    read : _Trees
    Z : ndarray of shape (n, p), float64
        May have NaN.
    """

    def __init__(self, read: _Trees, Z: np.ndarray):
        self._read, self._Z = read, Z

    @classmethod
    def of(cls, booster: Any, Z: np.ndarray, rounds: Sequence[int]) -> RawScores | None:
        """None where LightGBM is as fast at these rounds, or trees are of another kind: more leaves, or categories."""
        if len(Z) < (FEWEST_ROWS if 2 * len(rounds) < rounds[-1] else FEWEST_ROWS_OF_ROUNDS):
            return None
        n_rounds, read = _READ.get(booster, (0, None))
        if n_rounds < rounds[-1]:
            text = booster.model_to_string(num_iteration=rounds[-1])
            read = _read(text, booster.num_model_per_iteration())
            _READ[booster] = rounds[-1], read
        return None if read is None else cls(read, Z)

    def sums(self, rounds: Sequence[int]) -> np.ndarray:
        """Over the rounds between two of the ascending ``rounds``, (len(rounds) - 1, n), or (.., n, K) of K outputs."""
        K, n = self._read.n_outputs, len(self._Z)
        out = np.zeros((len(rounds) - 1, K, n))
        for start in range(0, n, BLOCK):
            self._add(np.ascontiguousarray(self._Z[start : start + BLOCK].T), rounds, out[:, :, start : start + BLOCK])
        return out[:, 0] if K == 1 else np.moveaxis(out, 1, 2)

    def with_columns(self, fixed: np.ndarray, rounds: Sequence[int]) -> np.ndarray:
        """Sums over the first ``rounds[v]`` rounds where further columns are ``fixed[v]`` in all rows, (V, n).

        Their questions have one answer for all rows, and what trees ask about rows is answered for all ``v`` at once.
        """
        n, q = self._Z.shape
        reduced = [_reduced(tree, self._read.questions, q, fixed) for tree in self._read.trees[: max(rounds)]]
        out, n_questions = np.zeros((len(fixed), n)), self._read.trees[max(rounds) - 1].n_known
        for start in range(0, n, BLOCK):
            columns = np.ascontiguousarray(self._Z[start : start + BLOCK].T)
            right, buffers = self._answers(columns, n_questions), _Buffers(columns.shape[1])
            for r, (questions, struck, values) in enumerate(reduced):
                buffers.strike(right, questions, struck)
                for of_leaves, users in values:
                    value = buffers.looked_up(of_leaves)
                    for v in users:
                        if r < rounds[v]:
                            out[v, start : start + BLOCK] += value
        return out

    def _add(self, columns: np.ndarray, rounds: Sequence[int], out: np.ndarray) -> None:
        """Add the trees' values, one tree after the other as LightGBM does, so that sums round alike."""
        K = self._read.n_outputs
        used = self._read.trees[: rounds[-1] * K]
        right, buffers = self._answers(columns, used[-1].n_known if used else 0), _Buffers(columns.shape[1])
        for (first, last), sums in zip(pairwise(rounds), out, strict=True):
            for k, tree in enumerate(used[first * K : last * K]):
                buffers.strike(right, tree.questions, tree.struck)
                sums[k % K] += buffers.looked_up(tree.values)

    def _answers(self, columns: np.ndarray, n_questions: int) -> np.ndarray:
        """Ones where a row goes to the right, (questions, n)."""
        right = np.empty((n_questions, columns.shape[1]), dtype=bool)
        has_missing = np.isnan(columns).any(axis=1)
        for (feature, threshold, nan_right), answer in zip(self._read.questions, right, strict=False):
            if feature >= len(columns):
                continue
            np.greater(columns[feature], threshold, out=answer)  # false of NaN
            if nan_right and has_missing[feature]:
                answer |= np.isnan(columns[feature])
        return right.view(np.uint8)


class _Buffers:
    """The memory that one tree after the other uses, of ``n`` rows."""

    def __init__(self, n: int):
        self.answers = np.empty((MOST_LEAVES - 1, n), dtype=np.uint8)
        self.struck, self.value = np.empty(n, dtype=np.uint8), np.empty(n)

    def strike(self, right: np.ndarray, questions: np.ndarray, struck: np.ndarray) -> None:
        """Mark the leaves of a tree that every row's answers strike out."""
        own = self.answers[: len(questions)]
        np.take(right, questions, axis=0, out=own, mode="clip")
        np.multiply(own, struck, out=own)
        np.bitwise_or.reduce(own, axis=0, out=self.struck)

    def looked_up(self, values: np.ndarray) -> np.ndarray:
        """Every row's value of ``values`` by the leaves that are struck, until the next call."""
        return np.take(values, self.struck, out=self.value, mode="clip")


def _reduced(tree: _Tree, asked: list[Question], q: int, fixed: np.ndarray):
    """Questions about the first ``q`` columns and what they strike; values, with the rows of ``fixed`` they are for."""
    about = np.array([asked[number][0] for number in tree.questions], dtype=np.intp)
    own = about < q
    users: dict[int, list[int]] = {}
    beyond = [(asked[number], bits) for number, bits in zip(tree.questions[~own], tree.struck[~own, 0], strict=True)]
    for v, columns in enumerate(fixed):
        struck = np.bitwise_or.reduce([bits for (f, t, _), bits in beyond if columns[f - q] > t], dtype=np.uint8)
        users.setdefault(int(struck), []).append(v)
    values = [(tree.values[np.arange(256) | struck], of) for struck, of in users.items()]
    return tree.questions[own], tree.struck[own], values


def _read(text: str, n_outputs: int) -> _Trees | None:
    """Trees of LightGBM's text, which has all digits of thresholds and values."""
    known: dict[Question, int] = {}
    trees = []
    for block in text.split("\nTree=")[1:]:
        fields = dict([line.split("=", 1) for line in block.split("\n\n", 1)[0].split("\n")[1:]])
        leaves = np.array(fields["leaf_value"].split(), dtype=np.float64)
        if len(leaves) > MOST_LEAVES:
            return None
        if len(leaves) == 1:
            nothing = np.empty(0, dtype=np.intp)
            trees.append(_Tree(nothing, len(known), nothing.astype(np.uint8)[:, None], np.full(256, leaves[0])))
            continue
        kinds = _kinds(fields["decision_type"])
        if kinds is None:
            return None
        thresholds = [*map(float, fields["threshold"].split())]
        # Where training had no missing value, a missing one is read as zero.
        nan_right = [t < 0.0 if kind is None else kind for kind, t in zip(kinds, thresholds, strict=True)]
        questions = zip(map(int, fields["split_feature"].split()), thresholds, nan_right, strict=True)
        numbers = np.array([known.setdefault(question, len(known)) for question in questions])
        struck, leaf = _sides(fields["left_child"], fields["right_child"])
        trees.append(_Tree(numbers, len(known), struck, leaves[leaf]))
    return _Trees(list(known), trees, n_outputs)


@lru_cache(maxsize=10_000)  # trees of eight leaves have a few thousand shapes
def _kinds(text: str) -> tuple[bool | None, ...] | None:
    """Whether NaN goes right at every question, None where it is read as zero; None for questions of another kind."""
    kinds = [*map(int, text.split())]
    if any([kind & CATEGORICAL or kind & MISSING_TYPE not in (NEVER, NAN) for kind in kinds]):
        return None
    return tuple([not kind & DEFAULT_LEFT if kind & MISSING_TYPE == NAN else None for kind in kinds])


@lru_cache(maxsize=10_000)
def _sides(left_text: str, right_text: str) -> tuple[np.ndarray, np.ndarray]:
    """For every question the bits of the leaves on its left side, (q, 1); by struck leaves the first left, (256,)."""
    left, right = ([*map(int, text.split())] for text in (left_text, right_text))
    order: list[int] = []  # of leaves from left to right; they are negative in the text
    below = [0] * len(left)

    def walk(node: int) -> int:
        if node < 0:
            order.append(~node)
            return 1 << (len(order) - 1)
        below[node] = walk(left[node])
        return below[node] | walk(right[node])

    walk(0)
    return np.array(below, dtype=np.uint8)[:, None], np.array(order)[FIRST_LEFT[len(order)]]
