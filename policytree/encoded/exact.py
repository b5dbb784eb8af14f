"""Sums of float64 numbers that are exact, and so the same in whatever order the numbers come."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from policytree.exceptions import InputError

LOW_BITS = 26  # a significand of 53 bits is summed in two halves: sums of a batch stay exact in float64
MOST = 1 << 25  # numbers added up at a time


class ExactSum:
    """A sum of finite numbers, to which arrays and other such sums are added."""

    def __init__(self) -> None:
        self.parts: dict[int, int] = {}  # by the exponent of two: whole numbers

    def add(self, values: np.ndarray) -> None:
        """Add finite float64 numbers; refuses others, which come of squares of large ones."""
        if not np.isfinite(values).all():
            raise InputError("rewards or weights are too large to be added up; divide them by a constant.")
        for start in range(0, len(values), MOST):
            fractions, exponents = np.frexp(values[start : start + MOST])
            whole = np.ldexp(fractions, 53).astype(np.int64)
            high = whole >> LOW_BITS
            low = whole - (high << LOW_BITS)
            least = int(exponents.min())
            places = exponents - least
            sums = np.bincount(places, weights=high), np.bincount(places, weights=low)
            for place in np.flatnonzero((sums[0] != 0) | (sums[1] != 0)):
                total = (int(sums[0][place]) << LOW_BITS) + int(sums[1][place])
                self.parts[least + int(place)] = self.parts.get(least + int(place), 0) + total

    def merge(self, other: ExactSum) -> None:
        """Add another sum."""
        for exponent, total in other.parts.items():
            self.parts[exponent] = self.parts.get(exponent, 0) + total

    @property
    def value(self) -> Fraction:
        """The sum."""
        total = Fraction(0)
        for exponent, part in self.parts.items():
            shift = exponent - 53
            total += Fraction(part << shift) if shift >= 0 else Fraction(part, 1 << -shift)
        return total
