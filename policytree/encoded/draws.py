"""Draws that depend on a row's number (or cluster) and a seed only: the same for every size of batches."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pandas as pd

HELD_OUT, FOLD, SAMPLE = 0, 1, 2  # independent draws of one seed
_STEP = np.uint64(0x9E3779B97F4A7C15)


def random_bits(keys: np.ndarray, seed: int, draw: int) -> np.ndarray:
    """64 random bits for every key (uint64).

    The finaliser of SplitMix64: Steele, Lea & Flood (2014), OOPSLA, figure 17.
    """
    start = np.random.SeedSequence([seed, draw]).generate_state(1, np.uint64)[0]
    with np.errstate(over="ignore"):
        z = keys * _STEP + start
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def cluster_keys(values: np.ndarray) -> np.ndarray:
    """A key for every cluster; ``values``: float64, or object (text)."""
    return pd.util.hash_array(values)


def folds_of(keys: np.ndarray, seed: int, n_folds: int) -> np.ndarray:
    """Fold of every row, int64."""
    return ((random_bits(keys, seed, FOLD) >> np.uint64(11)) % np.uint64(n_folds)).astype(np.int64)


def held_out_of(keys: np.ndarray, seed: int, share: float) -> np.ndarray:
    """Whether each row is held out, with this probability."""
    return (random_bits(keys, seed, HELD_OUT) >> np.uint64(11)).astype(np.float64) * 2.0**-53 < share


class Smallest:
    """The smallest of many numbers, so many of each kind: who is in a random sample of at most that size."""

    def __init__(self, most: int):
        self.most = most
        self.kept: dict[Hashable, np.ndarray] = {}
        self.added: dict[Hashable, int] = {}

    def add(self, kind: Hashable, values: np.ndarray) -> None:
        """Add numbers (uint64) of a kind."""
        held = np.concatenate([self.kept.get(kind, values[:0]), values])
        if len(held) > 2 * self.most:
            held = np.partition(held, self.most - 1)[: self.most]
        self.kept[kind] = held
        self.added[kind] = self.added.get(kind, 0) + len(values)

    def threshold(self, kind: Hashable) -> np.uint64:
        """The largest number of the sample; of all that were added, those up to it are in."""
        if self.added.get(kind, 0) <= self.most:
            return np.uint64(2**64 - 1)
        return np.partition(self.kept[kind], self.most - 1)[self.most - 1]
