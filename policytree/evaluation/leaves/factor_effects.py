"""Factorial trials: the effect of each treatment in every leaf, averaged over the other treatments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from policytree.evaluation.inference.binary_intervals import score_ends
from policytree.evaluation.leaves.estimates import LeafParts

EFFECT, EFFECT_ERROR, EFFECT_LOWER, EFFECT_UPPER = "effect", "effect_standard_error", "effect_lower", "effect_upper"


def factor_effects(
    parts: LeafParts, contrasts: Mapping[str, Sequence[float]], held_out: bool, level: float
) -> dict[tuple[str, str], np.ndarray]:
    """Columns of a leaf summary: each effect, its standard error and, held out, its interval.

    An effect is a contrast of arms' values, so that its error follows from their covariance: a person's rewards under
    all arms come from the same outcome, and are not independent.

    Parameters
    ----------
    parts : LeafParts
        L leaves and K arms.
    contrasts : mapping of name to K weights
        :meth:`policytree.data.combined_treatments.CombinedTreatments.contrasts`.
    held_out : bool
        Whether the rows did not choose the tree; otherwise no interval would cover.
    level : float
        Coverage of all these intervals together, over leaves and effects.
    """
    if not contrasts:
        return {}
    weights, n_leaves = np.array(list(contrasts.values()), dtype=np.float64), len(parts.ids)  # (F, K)
    needed = (weights != 0.0).astype(np.int64)
    known = (~parts.estimable(held_out)).astype(np.int64) @ needed.T == 0  # (L, F)
    over_all = np.kron(np.eye(n_leaves), weights)  # (L F, L K)
    covariance = over_all @ parts.covariance @ over_all.T
    error = np.sqrt(np.clip(np.diag(covariance), 0.0, None)).reshape(known.shape)
    error = np.where(known & (parts.n_clusters >= 2)[:, None], error, np.nan)
    effect = np.where(known, parts.value @ weights.T, np.nan)
    columns = {EFFECT: effect, EFFECT_ERROR: error}
    if held_out:
        of_values, _ = parts.degrees_of_freedom()
        degrees = np.stack([of_values[:, row > 0].min(axis=1) for row in needed], axis=1)
        width = parts.half_widths(covariance, known, degrees, level) * error
        columns |= {EFFECT_LOWER: effect - width, EFFECT_UPPER: effect + width}
    return {(name, of): values[:, j] for name, values in columns.items() for j, of in enumerate(contrasts)}


def widened_effects(
    leaves: pd.DataFrame, contrasts: Mapping[str, Sequence[float]], ends: tuple[float, float], rows: np.ndarray
) -> pd.DataFrame:
    """The summary whose intervals of effects are at least as wide as follows from the score intervals of shares.

    As :func:`policytree.evaluation.inference.binary_intervals.widened` does for gains, at the effects' critical value.

    Parameters
    ----------
    leaves : DataFrame
        Held out, L leaves and K arms.
    contrasts : mapping of name to K weights
    ends : (low, high)
        The outcome's two values.
    rows : ndarray of shape (L, K)
        Effective rows of every arm.
    """
    out, span = leaves.copy(), ends[1] - ends[0]
    value = leaves["value"].to_numpy(dtype=np.float64)
    share = np.clip((value - ends[0]) / span, 0.0, 1.0)
    for name, weights in contrasts.items():
        effect, error, lower, upper = (
            leaves[part, name].to_numpy(dtype=np.float64) for part in (EFFECT, EFFECT_ERROR, EFFECT_LOWER, EFFECT_UPPER)
        )
        seen = error > 0
        critical = np.where(seen, (upper - effect) / np.where(seen, error, 1.0), np.nan)
        critical = np.where(seen, critical, np.nanmax(critical) if seen.any() else np.nan)
        least, most = score_ends(share, rows, np.broadcast_to(critical[:, None], value.shape))
        down, up = (np.maximum(span * part, 0.0) for part in (share - least, most - share))
        plus, minus = np.clip(weights, 0.0, None), np.clip(weights, None, 0.0)

        def half(own: np.ndarray, other: np.ndarray, plus=plus, minus=minus) -> np.ndarray:
            squares = np.where(plus != 0, (plus * own) ** 2, 0.0) + np.where(minus != 0, (minus * other) ** 2, 0.0)
            return np.sqrt(squares.sum(axis=1))

        out[(EFFECT_LOWER, name)] = np.fmin(lower, effect - half(down, up))
        out[(EFFECT_UPPER, name)] = np.fmax(upper, effect + half(up, down))
    return out
