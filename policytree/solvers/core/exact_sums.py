"""Exact sums of float64 numbers: integers and one power of two, rounded once when they are read as floats.

Every order of the numbers, and every division into parts that are summed apart, gives the same sum to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from policytree.exceptions import InputError
from policytree.solvers.kernels.base.exact_sums import CHUNK_BITS, LOWEST, NOT_FINITE, add_exactly, exponent_range
from policytree.solvers.kernels.compiling import compile_kernels

TOO_LARGE = "rewards, losses or weights are too large to be added up; divide them by a constant."


@dataclass(frozen=True, slots=True)
class ExactSums:
    """An array of sums.

    Attributes
    ----------
    whole : ndarray of object
        Python integers.
    exponent : int
        A sum is its integer times ``2**exponent``.
    """

    whole: np.ndarray
    exponent: int = 0

    def __add__(self, other: ExactSums) -> ExactSums:
        """Sums of the numbers of both."""
        low, high = sorted((self, other), key=lambda sums: sums.exponent)
        return ExactSums(low.whole + high.whole * (1 << (high.exponent - low.exponent)), low.exponent)

    def __getitem__(self, at) -> ExactSums:
        return ExactSums(np.asarray(self.whole[at], dtype=object), self.exponent)

    def total(self) -> Fraction:
        """The sum of all sums."""
        return Fraction(sum(self.whole.ravel().tolist())) * Fraction(2) ** self.exponent

    def rounded_total(self) -> float:
        """The sum of all sums, rounded once to the nearest float64."""
        return float(self._rounded([sum(self.whole.ravel().tolist())])[0])

    def to_float(self) -> np.ndarray:
        """The sums as float64, each rounded once to the nearest.

        Raises
        ------
        InputError
            If one is beyond the range of float64.
        """
        return self._rounded(self.whole.ravel().tolist()).reshape(self.whole.shape)

    def _rounded(self, numbers: list[int]) -> np.ndarray:
        above, below = 1 << max(self.exponent, 0), 1 << max(-self.exponent, 0)
        try:  # Python rounds the quotient of two integers correctly
            return np.array([number * above / below for number in numbers], dtype=np.float64)
        except OverflowError as error:
            raise InputError(TOO_LARGE) from error


def exact_sums(values: np.ndarray, group: np.ndarray, n_groups: int) -> ExactSums:
    """Sum the numbers of each group.

    Parameters
    ----------
    values : ndarray of shape (P, n), float64
        Finite.
    group : ndarray of shape (n,), int64
        0 .. n_groups - 1, the same for all P rows of numbers.
    n_groups : int

    Returns
    -------
    ExactSums
        Of shape (n_groups, P).

    Raises
    ------
    InputError
        If a number is not finite.
    """
    bits = np.require(values, np.float64, ["C", "W"]).view(np.int64)  # kernels take writable arrays only
    compile_kernels([(exponent_range, ""), (add_exactly, "")])
    low, high = map(int, exponent_range(bits))
    if high == NOT_FINITE:
        raise InputError(TOO_LARGE)
    first = low // CHUNK_BITS
    chunks = np.zeros((n_groups, len(bits), high // CHUNK_BITS - first + 3), dtype=np.int64)
    add_exactly(bits, np.require(group, np.int64, ["C", "W"]), first, chunks)
    whole = np.zeros(chunks.shape[:2], dtype=object)
    for c in range(chunks.shape[2]):
        whole += chunks[:, :, c].astype(object) << (CHUNK_BITS * c)
    return ExactSums(whole, CHUNK_BITS * first - LOWEST)


class ExactSum:
    """One exact sum, to which arrays and other such sums are added.

    Attributes
    ----------
    value : Fraction
    """

    def __init__(self) -> None:
        self.value = Fraction(0)

    def add(self, values: np.ndarray) -> None:
        """Add float64 numbers (n,); refuses infinite ones, which come of squares of large ones."""
        self.value += exact_sum(values)

    def merge(self, other: ExactSum) -> None:
        """Add another sum."""
        self.value += other.value

    def rounded(self) -> float:
        """The sum, rounded once to the nearest float64; refuses one beyond their range."""
        try:
            return float(self.value)
        except OverflowError as error:
            raise InputError(TOO_LARGE) from error


def exact_sum(values: np.ndarray) -> Fraction:
    """The sum of finite float64 numbers (n,), exactly."""
    return exact_sums(values[None], np.zeros(len(values), dtype=np.int64), 1).total()


def rounded_sum(values: np.ndarray) -> float:
    """The sum of finite float64 numbers (n,), rounded once to the nearest."""
    return exact_sums(values[None], np.zeros(len(values), dtype=np.int64), 1).rounded_total()
