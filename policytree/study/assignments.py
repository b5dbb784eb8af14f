"""Kinds of assignment: treatments as they were given, and offers that people may refuse."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import pandas as pd

from policytree.exceptions import InputError


class Assignment(ABC):
    """How columns say who got what, and by whose choice.

    A new kind is a frozen dataclass with these methods; the study asks nothing else of it.

    Examples
    --------
    >>> from policytree.study import Assignment, Given, Offered
    >>> issubclass(Given, Assignment), issubclass(Offered, Assignment)
    (True, True)
    """

    column: str

    def columns(self) -> dict[str, str]:
        """Every column that the kind reads, by its role in words; the treatment first."""
        return {"treatment": self.column}

    @property
    def assigned(self) -> str:
        """The column whose probabilities a design fixes: that of the treatments, or of the offers."""
        return self.column

    @abstractmethod
    def arguments(self, table: pd.DataFrame) -> dict[str, Any]:
        """``T``, and what :meth:`policytree.RewardEstimator.fit` takes beside it."""


@dataclass(frozen=True, slots=True)
class Given(Assignment):
    """Treatments as people got them, by chance or by a choice that covariates and confounders explain.

    Parameters
    ----------
    column : str

    Examples
    --------
    >>> from policytree.study import Given
    >>> Given("arm").assigned
    'arm'
    """

    column: str

    def arguments(self, table: pd.DataFrame) -> dict[str, Any]:
        """``T``."""
        return {"T": table[self.column]}


@dataclass(frozen=True, slots=True)
class Offered(Assignment):
    """Treatments that people took or refused for reasons of their own, after offers that were given by chance.

    The rule is for the compliers, who follow the offers (an instrument).

    Parameters
    ----------
    column : str
        What people took, of two treatments.
    by : str
        Column of what they were offered, or encouraged to.

    Examples
    --------
    >>> from policytree.study import Offered
    >>> Offered("enrolled", by="lottery").assigned
    'lottery'
    """

    column: str
    by: str

    def columns(self) -> dict[str, str]:
        """Treatments and offers."""
        return {"treatment": self.column, "offer": self.by}

    @property
    def assigned(self) -> str:
        """The column of the offers."""
        return self.by

    def arguments(self, table: pd.DataFrame) -> dict[str, Any]:
        """``T`` and ``instrument``."""
        return {"T": table[self.column], "instrument": table[self.by]}


def as_assignment(treatment: str | Assignment) -> Assignment:
    """A column's name as the kind :class:`Given`; a kind as it is.

    Raises
    ------
    InputError
        If it is neither.
    """
    if isinstance(treatment, str):
        return Given(treatment)
    if not isinstance(treatment, Assignment):
        raise InputError(
            f"treatment must be the name of a column or a kind of assignment (Given, Offered); got {treatment!r}."
        )
    return treatment
