"""Whether a study knows people like those of a target: who is outside its range, or has hardly any like there."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from policytree.common.callers import stacklevel_outside
from policytree.data.feature_encoder import as_pandas
from policytree.exceptions import OverlapWarning

LARGE_SHARE = 0.05  # of the target, outside what the study covers, before it is worth a warning
FEW_EFFECTIVE = 0.1  # effective rows per row, weighted


def effective_sample_size(weight) -> float:
    """Kish's ``(sum w)^2 / sum w^2``: how many equally weighted rows are as precise; zero without any weight."""
    weight = np.asarray(weight, dtype=np.float64)
    squares = float((weight**2).sum())
    return float(weight.sum() ** 2 / squares) if squares > 0.0 else 0.0


def covariate_table(tables: Iterable) -> pd.DataFrame:
    """X and W (either may be None) as one frame with columns of text names; the first of equal names stays."""
    frames = []
    for table in tables:
        if table is not None:
            frame = as_pandas(table)
            frame = pd.DataFrame(np.asarray(table)).infer_objects() if frame is None else frame
            frames.append(frame.reset_index(drop=True).rename(columns=str))
    both = pd.concat(frames, axis=1)
    return both.loc[:, ~both.columns.duplicated()]


def is_number(column: pd.Series) -> bool:
    """Whether a column has a range; that of booleans is their values."""
    return pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)


def outside_study(table: pd.DataFrame, own: np.ndarray) -> dict[str, np.ndarray]:
    """People of the target outside the study, (n,) bool, by column.

    Outside are numbers beyond those of the study, categories that it lacks, and missing values where it has none.

    Parameters
    ----------
    table : DataFrame of shape (n, p)
        Study and target.
    own : ndarray of shape (n,), bool
        Rows of the study.
    """
    out = {}
    for name, column in table.items():
        known = column[own].dropna()
        if is_number(column):
            beyond = (column < known.min()) | (column > known.max()) if len(known) else column.notna()
        else:
            beyond = column.notna() & ~column.isin(known.unique())
        if len(known) == own.sum():
            beyond |= column.isna()
        out[str(name)] = beyond.fillna(False).to_numpy(bool) & ~own
    return out


@dataclass(frozen=True, slots=True)
class TargetSupport:
    """How well a study knows the people of a target.

    Attributes
    ----------
    n_study : int
    outside : dict of column to float
        Share of the target's people outside the study (:func:`outside_study`) in that column.
    outside_somewhere, by_chance : float
        Share outside in some column; the most that it would be of a target like the study, since one more value is
        more extreme than n others with a probability of 2 / (n + 1).
    rare : float
        Share whose like occur in the study so rarely that weights are lowered.
    effective_rows : float
        Weighted to the target, the study's rows are as good as so many equally weighted ones (Kish).
    """

    n_study: int
    outside: dict[str, float]
    outside_somewhere: float
    by_chance: float
    rare: float
    effective_rows: float

    def warn(self, more: str = "") -> None:
        """Warn (OverlapWarning) where the study hardly knows many of the target; ``more`` says what to look at."""
        said = []
        if self.outside_somewhere > LARGE_SHARE + self.by_chance:
            worst = max(self.outside, key=lambda name: self.outside[name])
            said.append(
                f"{self.outside_somewhere:.1%} of the target are outside the study's range in some column (most in "
                f"{worst}: {self.outside[worst]:.1%})"
            )
        if self.rare > LARGE_SHARE:
            said.append(f"{self.rare:.1%} of the target have hardly any like them in the study")
        if self.effective_rows < FEW_EFFECTIVE * self.n_study:
            said.append(
                f"weighted to the target, the {self.n_study} rows of the study are as good as {self.effective_rows:.1f}"
            )
        if said:
            text = "; ".join(said)
            text = f"{text[0].upper()}{text[1:]}: what is said of such people is extrapolated.{more}"
            warnings.warn(text, OverlapWarning, stacklevel=stacklevel_outside())


def target_support(
    table: pd.DataFrame, own: np.ndarray, ratio: np.ndarray, largest: float, sampling_weight: np.ndarray | None
) -> TargetSupport:
    """Count who is outside, and who is rare.

    Parameters
    ----------
    table : DataFrame of shape (n, p)
        Covariates of study and target.
    own : ndarray of shape (n,), bool
        Rows of the study.
    ratio : ndarray of shape (n,)
        How often a row's covariates occur in the target, over how often in the study.
    largest : float
        Bound to which larger ratios are lowered.
    sampling_weight : ndarray of shape (n,), or None
    """
    w, n = np.ones(len(own)) if sampling_weight is None else sampling_weight, int(own.sum())
    of_target, beyond = w * ~own, outside_study(table, own)
    return TargetSupport(
        n,
        {name: float(np.average(people, weights=of_target)) for name, people in beyond.items()},
        float(np.average(np.any(list(beyond.values()), axis=0), weights=of_target)),
        sum(is_number(column) for _, column in table.items()) * 2.0 / (n + 1),
        float(np.average(ratio > largest, weights=of_target)),
        effective_sample_size((w * np.minimum(ratio, largest))[own]),
    )
