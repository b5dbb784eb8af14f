"""How subsets are kept: as bits where rows have few distinct losses, otherwise as lists of rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from policytree.problem.types import GATES, SizeGates
from policytree.solvers.core.columns import columns_of
from policytree.solvers.core.rows import Node
from policytree.solvers.kernels.base.layout import LANES
from policytree.solvers.kernels.subsets.bit_sets import N_NAMES
from policytree.solvers.kernels.subsets.layout import N_ROWS, BitSets, RowLists

WORD = 64
MOST_PARTS = 64


def numbers_of(node: Node) -> np.ndarray:
    """The sums' terms of every row, (sums, rows): see subsets/layout.py."""
    losses = node.all_losses
    order = np.sort(losses, axis=0)
    numbers = [*node.losses, order[0], order[-1]]
    if len(losses) > 2:
        best, regret = losses.argmin(axis=0), order[1] - order[0]
        numbers += [np.where(best == k, regret, 0) for k in range(len(losses))]
    return np.vstack([*numbers, *node.rows.planes[len(node.losses) : -2], np.ones(node.n_rows, np.int64)])


def make_sets(
    node: Node, keep: str | None = None, every_row: bool = False, gates: SizeGates = GATES
) -> ListMaker | BitMaker:
    """Choose how sets are kept: what costs less, or "lists" or "bits" if ``keep`` says so.

    Rows that no action gains or loses by have no bit, unless ``every_row`` has to count: where only some features may
    split all rows, a leaf of such rows alone can be the price of a first split.
    """
    numbers = numbers_of(node)
    parts = _parts(numbers[:-1], every_row)
    lists = ListMaker(node, numbers, gates)
    if parts is None or keep == "lists":
        return lists
    bits = BitMaker(node, *parts)
    return bits if bits.cost <= lists.cost or keep == "bits" else lists


def _side_one(node: Node, columns: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Whether every row is on side 1 of every column, (rows, padded columns)."""
    features, cuts = columns
    on = np.zeros((node.n_rows, _padded(len(features))), bool)
    on[:, : len(features)] = (node.codes[features] > cuts[:, None]).T
    return on


def _padded(n: int) -> int:
    return -(-n // LANES) * LANES


def _starts(rows: np.ndarray, n: int) -> np.ndarray:
    """Where every row's entries begin in a list that is sorted by row, and the end of the last."""
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))]).astype(np.int64)


def _parts(numbers: np.ndarray, every_row: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Write every row's numbers as a sum of few vectors.

    Returns the vectors (parts, sums), and for every bit its part and its row; None if there are too many.
    A row's numbers are a whole multiple of a vector, and the multiple a sum of powers of two.
    """
    multiple_of_row = np.gcd.reduce(numbers, axis=0)
    kept = np.flatnonzero(multiple_of_row)
    if not len(kept):
        return None
    vectors, kind = _distinct(numbers[:, kept] // (multiple := multiple_of_row[kept]))
    multiple //= (unit := np.gcd.reduce(multiple))
    if vectors.shape[1] > MOST_PARTS or multiple.max() >= 1 << MOST_PARTS // 2:
        return None
    powers = np.arange(int(multiple.max()).bit_length())
    row, power = np.nonzero((multiple[:, None] >> powers) & 1)
    pairs, part = np.unique(kind[row] * len(powers) + power, return_inverse=True)
    if len(pairs) > MOST_PARTS:
        return None
    kind, power = np.divmod(pairs, len(powers))
    values, row = (vectors[:, kind] * (unit << power)).T, kept[row]
    idle = np.flatnonzero(multiple_of_row == 0) if every_row else kept[:0]
    if len(idle):
        values = np.vstack([values, np.zeros_like(values[:1])])
        part = np.concatenate([part, np.full(len(idle), len(values) - 1)])
        row = np.concatenate([row, idle])
    return np.ascontiguousarray(values), part, row


def _distinct(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct columns of a matrix of integers, and which of them every column is."""
    keys = np.random.default_rng(0).integers(-(2**62), 2**62, size=len(columns))
    _, first, which = np.unique(keys @ columns, return_index=True, return_inverse=True)
    distinct = columns[:, first]
    if (distinct[:, which] == columns).all():  # sums that wrap around: equal ones may yet be of different columns
        return distinct, which
    distinct, which = np.unique(columns, axis=1, return_inverse=True)
    return distinct, which.ravel()


class ListMaker:
    """Makes sets as lists of rows."""

    keeps = "lists"

    def __init__(self, node: Node, numbers: np.ndarray, gates: SizeGates):
        self.node, self.numbers, self.n_sums = node, numbers, len(numbers)
        n = node.n_rows
        self.columns = columns_of(node.bins - 1)
        self.width = _padded(len(self.columns[0]))
        self.common = np.array([np.bincount(codes).argmax() for codes in node.codes], dtype=np.int64)
        self.padded = _padded(self.n_sums + 2)
        self.bytes_a_level, self.work = 4 * n, n * len(self.columns[0])
        pairs = len(self.columns[0]) * self.n_sums * self.width
        self.has_pairs = pairs <= gates.most_set_pairs  # what a fast cache holds
        self.bytes = 9 * n * self.padded + 8 * int(node.rows.offset[-1]) * self.padded
        self.bytes += (8 * pairs + 5 * n * self.width) * self.has_pairs
        added = n + int(np.count_nonzero(node.codes != self.common[:, None]))
        self.cost = added * (self.padded // LANES) * gates.row_cost

    def __call__(self, levels: int) -> tuple[RowLists, None]:
        """Make room for so many levels; returns what the kernels take: lists, and no bits."""
        node, offset, n_sums, size = self.node, self.node.rows.offset, self.n_sums, len(self.columns[0])
        n = node.n_rows
        numbers = np.zeros((n, self.padded), np.int64)
        numbers[:, : n_sums + 2] = np.vstack([self.numbers, node.keys]).T
        of_row, feature = np.nonzero((node.codes != self.common[:, None]).T)
        items = (offset[feature] + node.codes[feature, of_row]).astype(np.int32)
        on = _side_one(node, self.columns) if self.has_pairs else np.zeros((1, 0), bool)
        row, column = np.nonzero(on)
        lists = RowLists(
            node.codes, offset, offset[:-1] + self.common, offset - np.arange(len(offset)), numbers, _starts(of_row, n),
            items, np.zeros((int(offset[-1]), self.padded), np.int64), np.zeros((1, self.padded), np.int64),
            _starts(row, len(on)), column.astype(np.int32), np.packbits(on, axis=1, bitorder="little"),
            len(row) * self.width * n_sums // (2 * LANES * n),
            np.zeros((size * self.has_pairs, n_sums, self.width), np.int64), np.zeros((levels, n), np.int32),
        )  # fmt: skip
        return lists, None

    def name(self, rows: np.ndarray) -> tuple[int, int]:
        """Sums of the rows' keys."""
        one, two = self.node.keys[:, rows].sum(axis=1)
        return int(one), int(two)

    def enter_all(self, arguments: tuple, root: np.ndarray) -> None:
        """Make all rows the set of level 0."""
        arguments[0].index[0] = np.arange(self.node.n_rows)
        root[N_ROWS] = self.node.n_rows

    def rows_of_bits(self) -> np.ndarray:
        """There are no bits."""
        return np.zeros(0, np.int32)


class BitMaker:
    """Makes sets as bits; every cut of a feature is a column."""

    keeps = "bits"

    def __init__(self, node: Node, values: np.ndarray, part: np.ndarray, row: np.ndarray):
        self.node, self.n_sums = node, values.shape[1] + 1
        self.values = np.ascontiguousarray(np.column_stack([values, np.ones(len(values), np.int64)]))
        self.columns = columns_of(node.bins - 1)
        words = -(-np.bincount(part, minlength=len(values)) // WORD)
        self.part = np.concatenate([[0], np.cumsum(words)]).astype(np.int64)
        order = np.lexsort([row, part])
        self.row, part = row[order], part[order]
        self.bit = WORD * self.part[part] + np.arange(len(part)) - np.searchsorted(part, part)
        self.width = _padded(len(self.columns[0]))
        self.words = int(self.part[-1])
        self.keys = np.random.default_rng(1).integers(0, 1 << 64, (self.words, 2 * N_NAMES), np.uint64) | np.uint64(1)
        self.bytes_a_level, self.work = 12 * self.words, self.words * self.width
        self.cost, self.bytes = self.work, 17 * self.work

    def __call__(self, levels: int) -> tuple[None, BitSets]:
        """Make room for so many levels; returns what the kernels take: no lists, and bits."""
        bits = np.zeros((self.words, self.width), np.uint64)
        of_bits = np.zeros(self.words * WORD, np.uint16)
        of_features = pairwise([0, *np.cumsum(self.node.bins - 1).tolist()])
        for codes, (first, end) in zip(self.node.codes, of_features, strict=True):
            of_bits[self.bit] = codes[self.row]
            member = of_bits > self.columns[1][first:end, None]
            bits[:, first:end] = np.packbits(member, axis=1, bitorder="little").view(np.uint64).T
        sets = BitSets(
            bits, self.values, self.keys, np.zeros(N_NAMES, np.int64), np.zeros((levels, self.words), np.uint64),
            np.zeros((levels, self.words), np.int32), np.zeros((levels, len(self.values) + 1), np.int64),
            np.zeros(self.words * self.width, np.uint64),
        )  # fmt: skip
        return None, sets

    def pack(self, member: np.ndarray) -> np.ndarray:
        """Words of the set of rows that are members."""
        spread = np.zeros(self.words * WORD, np.uint8)
        spread[self.bit] = member[self.row]
        return np.packbits(spread, bitorder="little").view(np.uint64)

    def name(self, rows: np.ndarray) -> tuple[int, int]:
        """The upper halves of four sums, two in each number; see subsets/bit_sets.py."""
        member = np.zeros(self.node.n_rows, bool)
        member[rows] = True
        words = self.pack(member)
        half = np.uint64(32)
        halves = np.stack([words << half >> half, words >> half], axis=1)
        keys = self.keys.reshape(-1, N_NAMES, 2).transpose(1, 0, 2)
        sums = (halves * keys).sum(axis=(1, 2), dtype=np.uint64) >> half
        one, two = (sums[k] << half | sums[k + 1] for k in (0, 2))
        return int(one.astype(np.int64)), int(two.astype(np.int64))

    def enter_all(self, arguments: tuple, root: np.ndarray) -> None:
        """Make all rows the set of level 0."""
        sets = arguments[1]
        sets.value[0] = self.pack(np.ones(self.node.n_rows, bool))
        sets.where[0] = np.arange(self.words)
        sets.part[0] = self.part
        root[N_ROWS] = self.words

    def rows_of_bits(self) -> np.ndarray:
        """The row that every bit stands for, (64 * words,); -1 where another bit does, or nothing."""
        rows, first = np.unique(self.row, return_index=True)
        of_bit = np.full(WORD * self.words, -1, np.int32)
        of_bit[self.bit[first]] = rows
        return of_bit
