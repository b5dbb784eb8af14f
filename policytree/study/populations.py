"""Whom a rule is for, where these are other people than those of the study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from policytree.data.feature_encoder import as_pandas
from policytree.exceptions import InputError


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """The people whom a rule is for: who they are, or how many of them every row of the study stands for.

    Parameters
    ----------
    people : table of shape (m, columns), optional
        A row for each, with the covariates (and confounders) of the study; effects are transported to them. People who
        are exactly those of the study leave everything as it is.
    weights : str, optional
        In place of ``people``: the study's column of how many of them its rows stand for, up to a constant.

    Examples
    --------
    >>> import pandas as pd
    >>> from policytree.study import Population
    >>> len(Population(pd.DataFrame({"age": [30, 40]})).people)
    2
    """

    people: Any = field(default=None, repr=False)
    weights: str | None = None

    def __post_init__(self) -> None:
        if (self.people is None) is (self.weights is None):
            raise InputError(
                "Population takes a table of people, or weights=, a column of the study; give one of them."
            )
        if self.people is None:
            return
        frame = as_pandas(self.people, "Population")
        if frame is None:
            raise InputError("Population takes a table with named columns (pandas or polars), a row for every person.")
        if not len(frame):
            raise InputError("Population has no rows; give a row for every person whom the rule is for.")
        object.__setattr__(self, "people", frame)

    def __str__(self) -> str:
        return f"weighted by {self.weights}" if self.people is None else f"{len(self.people):,} other people"

    def arguments(self, table: pd.DataFrame, covariates: Sequence[str], confounders: Sequence[str]) -> dict[str, Any]:
        """Covariates and confounders of the people, or the weights of the study's rows.

        Raises
        ------
        InputError
            If a column is not there.
        """
        if self.weights is not None:
            return {"target_weights": table[self.weights]}
        assert isinstance(self.people, pd.DataFrame), "made so above"
        for name in (*covariates, *confounders):
            if name not in self.people.columns:
                raise InputError(
                    f"The people of the population have no column {name!r}, which is a covariate or confounder of the "
                    "study; add it, or leave it out of the study."
                )
        tables = {"target_X": self.people[list(covariates)]}
        return tables | ({"target_W": self.people[list(confounders)]} if confounders else {})
