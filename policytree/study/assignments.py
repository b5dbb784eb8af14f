"""Kinds of assignment: treatments as they were given, and offers that people may refuse."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from policytree.data.combined_treatments import CombinedTreatments, combine_frame
from policytree.exceptions import InputError
from policytree.study.columns import names_of


class Assignment(ABC):
    """How columns say who got what, and by whose choice.

    A new kind is a frozen dataclass with these methods; the study asks nothing else of it.

    Examples
    --------
    >>> from policytree.study import Offered
    >>> from policytree.study.assignments import Assignment, Given
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
    >>> from policytree.study.assignments import Given
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
        The treatment that people took, of two.
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
        return {"treatment": self.column, "instrument": self.by}

    @property
    def assigned(self) -> str:
        """The column of the offers."""
        return self.by

    def arguments(self, table: pd.DataFrame) -> dict[str, Any]:
        """``T`` and ``instrument``."""
        return {"T": table[self.column], "instrument": table[self.by]}


@dataclass(frozen=True, slots=True)
class Unassigned(Assignment):
    """No treatment, where an outcome needs none: rewards of every treatment, or labels.

    Examples
    --------
    >>> from policytree.study.assignments import Unassigned
    >>> Unassigned().columns()
    {}
    """

    column: str = ""

    def columns(self) -> dict[str, str]:
        """None."""
        return {}

    def arguments(self, table: pd.DataFrame) -> dict[str, Any]:
        """Nothing: ``T`` is what somebody got."""
        del table
        return {}


@dataclass(frozen=True, slots=True)
class Combined(Assignment):
    """Several treatments at once, a column each: their combinations are the arms.

    Labels are those of :class:`policytree.data.combined_treatments.CombinedTreatments`.

    Parameters
    ----------
    of : tuple of str
        Columns of the treatments.

    Examples
    --------
    >>> from policytree.study.assignments import Combined
    >>> Combined(("drug", "physio")).column
    'drug and physio'
    """

    of: tuple[str, ...]

    @property
    def column(self) -> str:  # type: ignore[override]
        """The columns' names in words."""
        return " and ".join(self.of)

    def columns(self) -> dict[str, str]:
        """The column of every treatment."""
        return {f"treatment {name}": name for name in self.of}

    def arguments(self, table: pd.DataFrame) -> dict[str, Any]:
        """``T``, a table."""
        return {"T": table[list(self.of)]}

    def combined(self, table: pd.DataFrame) -> CombinedTreatments:
        """The combinations, their counts, and the control."""
        return combine_frame(table[list(self.of)])


def as_assignment(treatment: str | Sequence[str] | Assignment | None, *, needed: bool = True) -> Assignment:
    """A column's name as the kind :class:`Given`, several names as :class:`Combined`; a kind as it is.

    Parameters
    ----------
    treatment : str, sequence of str, Assignment or None
    needed : bool
        Whether None is refused, and does not stand for :class:`Unassigned`.

    Raises
    ------
    InputError
        If it is neither.
    """
    if treatment is None and not needed:
        return Unassigned()
    if isinstance(treatment, str):
        return Given(treatment)
    if isinstance(treatment, list | tuple) and len(treatment) > 1:
        return Combined(names_of(treatment, "treatment"))
    if not isinstance(treatment, Assignment):
        raise InputError(
            "treatment must be the name of a column, names of several, or a kind of assignment (Given, Combined, "
            f"Offered); got {treatment!r}."
        )
    return treatment
