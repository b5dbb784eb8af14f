"""Intervals of shares in leaves: outcomes of two values, few rows, and shares near none or all of them.

Where nearly every row of an arm has the same outcome, the spread that is seen in a leaf is far too small, and so are
intervals made of it: none of 19 rows with an event is no proof that there are none. The score interval (Wilson 1927)
asks instead which true shares would make the estimate unsurprising, each with the spread that such a share has.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import norm


def effective_rows(leaf_of: np.ndarray, arm: np.ndarray, shape: tuple[int, int], groups, weight) -> np.ndarray:
    """How many equal and independent rows the rows of every arm in every leaf are worth, (L, K).

    Kish's ``(sum w)^2 / sum w^2`` over clusters, whose weights are summed: a cluster counts once.

    Parameters
    ----------
    leaf_of, arm : ndarray of shape (n,)
        Positions of each row's leaf and of the arm that it got.
    shape : (L, K)
    groups, weight : ndarray of shape (n,), or None
    """
    groups = np.arange(len(arm)) if groups is None else np.unique(groups, return_inverse=True)[1]
    weight = np.ones(len(arm)) if weight is None else weight
    cell = leaf_of * shape[1] + arm
    used, position = np.unique(cell * (groups.max() + 1) + groups, return_inverse=True)
    sums, cells = np.bincount(position, weights=weight), used // (groups.max() + 1)
    total, squares = (np.bincount(cells, weights=s, minlength=shape[0] * shape[1]) for s in (sums, sums**2))
    return np.where(squares > 0, total**2 / np.where(squares > 0, squares, 1.0), 0.0).reshape(shape)


def score_ends(share: np.ndarray, rows: np.ndarray, critical: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the score interval of shares in [0, 1] by so many rows; the whole range where there are none.

    References
    ----------
    Wilson (1927), Journal of the American Statistical Association 22(158), 209-212.
    """
    square = critical**2
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = (share * rows + square / 2) / (rows + square)
        half = critical * np.sqrt(share * (1 - share) * rows + square / 4) / (rows + square)
    return np.clip(centre - half, 0.0, 1.0), np.clip(centre + half, 0.0, 1.0)


def widened(leaves: pd.DataFrame, ends: tuple[float, float], rows: np.ndarray, level: float, sign: float):
    """A held-out leaf summary whose intervals are at least as wide as those of shares.

    Values get the union of their interval and the score interval, with the same critical value. Gains get the union of
    their interval and the one that follows from the score intervals of both values, at the gains' critical value.
    Simulated: ``benchmarks/leaf_range.py``.

    Parameters
    ----------
    leaves : DataFrame
        Of :func:`policytree.leaf_summary`, held out, L leaves and K arms.
    ends : (low, high)
        The outcome's two values.
    rows : ndarray of shape (L, K)
        Effective rows of every arm.
    level : float
    sign : float
        1 if larger is better, else -1.

    References
    ----------
    Newcombe (1998), Statistics in Medicine 17(8), 873-890, method 10.
    """
    out, labels = leaves.copy(), list(leaves["value"].columns)
    value, lower, upper = (leaves[part].to_numpy(dtype=float) for part in ("value", "lower", "upper"))
    leaf, chosen = np.arange(len(leaves)), [labels.index(label) for label in leaves["arm", ""]]

    def score(critical: np.ndarray) -> list[np.ndarray]:
        share = np.clip((value - ends[0]) / (ends[1] - ends[0]), 0.0, 1.0)
        return [ends[0] + (ends[1] - ends[0]) * end for end in score_ends(share, rows, critical)]

    usual = norm.isf((1 - level) / 2 / value.size)  # Bonferroni, where no error was seen to compare with
    least, most = score(_ratio(upper - value, leaves["standard_error"].to_numpy(dtype=float), usual))
    wide = {"lower": np.minimum(lower, least), "upper": np.maximum(upper, most)}
    gain, low, high = (leaves[part].to_numpy(dtype=float) for part in ("gain_over", "gain_lower", "gain_upper"))
    second = [labels.index(label) for label in leaves["second_best", ""]]
    critical = _ratio((high - gain)[leaf, second], leaves["gain", "standard_error"].to_numpy(dtype=float), usual)
    least, most = score(np.broadcast_to(critical[:, None], value.shape))
    down, up = np.maximum(value - least, 0.0), np.maximum(most - value, 0.0)
    wide["gain_lower"] = np.minimum(low, gain - np.hypot(down[leaf, chosen][:, None], up))
    wide["gain_upper"] = np.maximum(high, gain + np.hypot(up[leaf, chosen][:, None], down))
    for name, values in wide.items():
        out[[(name, label) for label in labels]] = values
    pick, known = (np.nanmin if sign > 0 else np.nanmax), ~np.isnan(gain + low).all(axis=1)
    for end in ("lower", "upper"):
        out.loc[known, ("gain_over_best", end)] = pick(wide[f"gain_{end}"][known], axis=1)
    return out


def _ratio(width: np.ndarray, error: np.ndarray, otherwise: float) -> np.ndarray:
    """Half-widths in standard errors."""
    known = error > 0
    return np.where(known, width / np.where(known, error, 1.0), otherwise)
