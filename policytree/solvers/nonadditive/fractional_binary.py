"""The F-score for columns of two values: depth three at one ratio after another, on the same rows."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil, gcd, lcm

import numpy as np

from policytree.problem.types import Problem, SizeGates
from policytree.solvers.core.columns import short_codes
from policytree.solvers.core.compilation import PAIR_ROUNDS, PAIRS, load_kernels
from policytree.solvers.core.leaf_sums import Masses
from policytree.solvers.core.limits import Clock
from policytree.solvers.exact.binary_features import BinaryRoot, Tree, blocks_apply, kind_for
from policytree.solvers.exact.estimate import seconds_of_blocks
from policytree.solvers.kernels.binary.sums import best_column

NewClock = Callable[[], Clock]

DEPTH = 3
LARGEST = 2**62  # sums stay below it


def pair_rounds_apply(problem: Problem, gates: SizeGates) -> bool:
    """Whether blocks solve a problem at every ratio, with nothing deeper than three, and leaves are free."""
    n = len(problem.data.n_bins)
    if problem.max_depth != DEPTH or problem.leaf_penalty > 0 or n**2 > gates.most_ratio_entries:
        return False
    return blocks_apply(problem, gates)


def whole_losses(c: Fraction, b: Fraction) -> tuple[int, int]:
    """Return the losses of a false and of a missed positive at ratio c, as integers without a common divisor."""
    wrong, missed = max(1 - c, Fraction(0)), b + c
    scale = lcm(wrong.denominator, missed.denominator)
    numbers = int(wrong * scale), int(missed * scale)
    divisor = gcd(*numbers)
    return numbers[0] // divisor, numbers[1] // divisor


class PairRounds:
    """Rounds of a search for the least ratio among trees of depth three.

    A round at ratio c gives every column the least value that a tree has which splits on it first. Where that is not
    below the threshold (see :func:`policytree.solvers.nonadditive.fractional.solve_fractional`), no tree with this
    first split has a ratio below c, nor one below any smaller ratio. The best tree of the other columns sets the ratio
    of the next round, in which only they take part. So the proof and the search are one pass over the columns, and a
    little more.

    Parameters
    ----------
    problem : Problem
        Merged rows; :func:`pair_rounds_apply` to it.
    sums : Masses
    squared : Fraction
        Beta squared.
    gates : SizeGates
    """

    def __init__(self, problem: Problem, sums: Masses, squared: Fraction, gates: SizeGates):
        self.problem, self.sums, self.squared, self.gates = problem, sums, squared, gates
        self.codes = short_codes(problem.data)
        self.rounds = 0
        self.root: BinaryRoot | None = None
        self.pending: np.ndarray | None = None  # columns that may come first in a better tree; None: all, unordered

    def iterate(
        self, ratio: Callable[[], Fraction], take: Callable[[Tree], bool], seen: Callable, clock: NewClock
    ) -> bool:
        """Search until it is proved that no tree has a smaller ratio; whether that is so.

        Else a limit has struck (the clock is stopped), or the numbers at a ratio are too large to be exact.

        Parameters
        ----------
        ratio : callable
            The ratio to go below.
        take : callable
            Gets a tree that is below.
        seen : callable
            Gets how far below the threshold of the present ratio a tree may be.
        clock : callable
            Starts a clock, after kernels were loaded: it is called again where larger numbers need other ones.
        """
        proved = None
        while proved is None:
            kind = self._kind_at(ratio())
            if kind is None:
                return False
            load_kernels([(PAIRS + PAIR_ROUNDS, kind.name)])
            proved = self._watched(kind, ratio, take, seen, clock())
        return proved

    def _watched(self, kind: np.dtype, ratio, take, seen, clock: Clock) -> bool | None:
        """Rounds in one type of numbers; None where another one is needed."""
        found: list[bool | None] = []

        def search() -> None:
            found.append(self._rounds(kind, ratio, take, seen, clock))

        hasty = clock.time_limit is not None and clock.time_limit <= 1
        if hasty or seconds_of_blocks(self.problem) > self.gates.most_unwatched_seconds:
            clock.watch(search)
        else:
            search()
        return found[0]

    def bytes(self) -> int:
        """Roughly what the search takes."""
        n, m = self.codes.shape
        return 8 * (6 * n * n + 3 * n * m)

    def _rounds(self, kind: np.dtype, ratio, take, seen, clock: Clock) -> bool | None:
        alone = self.codes.size >= self.gates.least_ratio_table  # the best first split alone lowers the ratio
        while self.pending is None or len(self.pending):
            c = ratio()
            if c <= 0:  # nothing loses less than nothing
                return True
            if self._kind_at(c) != kind:
                return None
            wrong, missed = whole_losses(c, self.squared)
            root = self._root_at(wrong, missed, kind)
            # A tree's loss is that of calling nothing positive, missed * P, and the sums that are below zero.
            scale = missed / (self.squared + c)
            cutoff = ceil(scale * self.sums.P * self.squared * (c - 1))  # of whole numbers
            two = root.open_two()
            if self.pending is None:
                self.pending = np.argsort(root.work.by_split, kind="stable")
                if two < cutoff:
                    take(self._split(root, int(self.pending[0]), root.rows))
                    continue
            columns = self.pending[:1] if alone else self.pending
            root.open_three(columns, clock.flag)
            if clock.stopped:
                return False
            values = root.node.two[columns] + root.node.two[root.size.n + columns]
            below = columns[values < cutoff]
            if len(below):
                if not alone:
                    seen(max(cutoff - int(values.min()), 0) / scale)
                take(self._tree(root, int(columns[np.argmin(values)])))
            self.pending = np.concatenate([below, self.pending[1:]]) if alone else below
            alone = alone and len(below) > 0
        return True

    def _kind_at(self, c: Fraction) -> np.dtype | None:
        """The type that holds all sums at a ratio; None where they are too large."""
        wrong, missed = whole_losses(c, self.squared)
        total = wrong * self.sums.N + missed * self.sums.P
        return kind_for(total) if total < LARGEST else None

    def _root_at(self, wrong: int, missed: int, kind: np.dtype) -> BinaryRoot:
        """The blocks for these losses."""
        self.rounds += 1
        losses = wrong * self.sums.negative - missed * self.sums.positive
        if self.root is not None and self.root.kind == kind:
            self.root.refill(losses)
        else:
            keys = np.zeros((2, len(losses)), np.int64)  # names of sets of rows, which nobody asks for
            self.root = BinaryRoot(self.codes, losses, keys, kind, flat=True)
        return self.root

    def _tree(self, root: BinaryRoot, k: int) -> Tree:
        """The tree of depth three that ``open_three`` valued."""
        n, by_split = root.size.n, root.node.two_by_split
        off, on = root.sides(k, root.rows)
        seconds = (int(np.argmin(by_split[at * n : (at + 1) * n])) for at in (k, n + k))
        return root.join(k, *(self._split(root, j, rows) for j, rows in zip(seconds, (off, on), strict=True)))

    def _split(self, root: BinaryRoot, k: int, rows: np.ndarray) -> Tree:
        """The best tree of depth two with this first split, or without where it does not part the rows."""
        off, on = root.sides(k, rows)
        if len(off) and len(on):
            return root.join(k, self._stump(root, off), self._stump(root, on))
        return self._stump(root, rows)

    def _stump(self, root: BinaryRoot, rows: np.ndarray) -> Tree:
        column = best_column(rows, root.data, root.size.n)[1]
        return [(-1, 0)] if column < 0 else [(int(column), 0), (-1, 0), (-1, 0)]
