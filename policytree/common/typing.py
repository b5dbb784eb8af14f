"""Type names for users' arguments; values that do not fit are refused at run time in one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypedDict

import numpy as np
from numpy.typing import ArrayLike

# DataFrames of pandas and polars are array-like: they have ``__array__``.
Table: TypeAlias = ArrayLike  # shape (n, p)
Column: TypeAlias = ArrayLike | Sequence[Any]  # shape (n,); labels may be of any type
PerTreatment: TypeAlias = float | Mapping[Any, Any] | ArrayLike  # numbers by treatment: (K,), (n, K), or by label
Seed: TypeAlias = int | np.random.RandomState | None


class BesideArguments(TypedDict, total=False):
    """Arguments of calls with arrays beside Y, T and X; a study says more."""

    W: Table | None
    propensity: PerTreatment | None
    sample_weight: Column | None
    groups: Column | None
