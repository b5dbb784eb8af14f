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
    """The people whom a rule is for: their covariates, from which effects are transported.

    Parameters
    ----------
    people : table of shape (m, columns)
        A row for each, with the covariates (and confounders) of the study.

    Examples
    --------
    >>> import pandas as pd
    >>> from policytree.study import Population
    >>> len(Population(pd.DataFrame({"age": [30, 40]})).people)
    2
    """

    people: Any = field(repr=False)

    def __post_init__(self) -> None:
        frame = as_pandas(self.people, "Population")
        if frame is None:
            raise InputError("Population takes a table with named columns (pandas or polars), a row for every person.")
        if not len(frame):
            raise InputError("Population has no rows; give a row for every person whom the rule is for.")
        object.__setattr__(self, "people", frame)

    def arguments(self, covariates: Sequence[str], confounders: Sequence[str]) -> dict[str, Any]:
        """``target_X`` and ``target_W`` as :meth:`policytree.RewardEstimator.fit` takes them.

        Raises
        ------
        InputError
            If a column is not there.
        """
        assert isinstance(self.people, pd.DataFrame), "made so above"
        for name in (*covariates, *confounders):
            if name not in self.people.columns:
                raise InputError(
                    f"The people of the population have no column {name!r}, which is a covariate or confounder of the "
                    "study; add it, or leave it out of the study."
                )
        tables = {"target_X": self.people[list(covariates)]}
        return tables | ({"target_W": self.people[list(confounders)]} if confounders else {})
