"""One column of the user's table, as the search and the tree see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

NUMERIC = "numeric"
CATEGORICAL = "categorical"


@dataclass(frozen=True, slots=True)
class Feature:
    """One column of the user's table, as the search and the tree see it.

    Attributes
    ----------
    name : str
        The column's name.
    kind : {"numeric", "categorical"}
        Numeric features split by ``x <= threshold``; categorical ones by ``x == category``.
    categories : tuple
        The user's category values; the encoded value of a category is its position here. Empty for numeric features.
    has_missing : bool or None
        Whether values were missing in the training table; None if that is not known. Features are equal without it.
    """

    name: str
    kind: str = NUMERIC
    categories: tuple[Any, ...] = ()
    has_missing: bool | None = field(default=None, compare=False)
