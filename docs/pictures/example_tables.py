"""Two columns as codes, and what the search does with them: the pictures of the method page share it.

Pictures are drawn in this folder.
"""

import numpy as np

CUTS = 12  # codes 0 .. CUTS - 1 of both columns


def rows(n: int = 400, seed: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes of two columns, and each row's reward of treating rather than not; all of shape (n,)."""
    rng = np.random.default_rng(seed)
    f, g = rng.integers(0, CUTS, n), rng.integers(0, CUTS, n)
    effect = np.where(f < 5, np.where(g < 4, 1.0, -0.6), np.where(g < 8, -0.7, 0.9))
    return f, g, effect + rng.normal(scale=0.8, size=n)


def pair_table(f: np.ndarray, g: np.ndarray, gain: np.ndarray) -> np.ndarray:
    """Sums of gains by the codes of both columns; (CUTS, CUTS)."""
    table = np.zeros((CUTS, CUTS))
    np.add.at(table, (f, g), gain)
    return table


def corner_sums(table: np.ndarray) -> np.ndarray:
    """Sums over all codes up to here, of both columns."""
    return table.cumsum(axis=0).cumsum(axis=1)


def side(sums_by_code: np.ndarray) -> float:
    """The most that one further cut of the second column can gain, by its sums; a leaf treats or does not."""
    total, left = sums_by_code.sum(), sums_by_code.cumsum()
    best = np.maximum(left, 0.0) + np.maximum(total - left, 0.0)
    return float(best.max())


def by_first_cut(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest gains left and right of every cut of the first column."""
    left = np.array([side(table[: cut + 1].sum(axis=0)) for cut in range(CUTS - 1)])
    right = np.array([side(table[cut + 1 :].sum(axis=0)) for cut in range(CUTS - 1)])
    return left, right
