"""All decisions on the same people, and the histories that they accumulate."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

TREATMENT, OUTCOME = "treatment", "outcome"  # columns of earlier stages in histories, beside their own


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """A stage whose columns are checked.

    Attributes
    ----------
    name : str
    treatments : ndarray of shape (K,)
        The labels, sorted.
    arm : ndarray of shape (n,), int64
        Position of each person's treatment; -1 for people who were not eligible, or whose treatment is not known.
    eligible : ndarray of shape (n,), bool
    outcome : ndarray of shape (n,), float64
        Outcome of this stage; NaN where people were lost.
    has_outcome : bool
        Whether the user gave one.
    X, W : DataFrame of n rows
        The stage's own columns.
    propensity : optional
        As the user gave it.
    per_row : bool
        Whether it differs between rows.
    allowed : ndarray of shape (n, K), bool, or None
    costs : ndarray of shape (n, K), float64, or None
    """

    name: str
    treatments: np.ndarray
    arm: np.ndarray
    eligible: np.ndarray
    outcome: np.ndarray
    has_outcome: bool
    X: pd.DataFrame
    W: pd.DataFrame
    propensity: Any
    per_row: bool
    allowed: np.ndarray | None
    costs: np.ndarray | None

    @property
    def n_arms(self) -> int:
        """Number of treatments."""
        return len(self.treatments)

    def given(self, rows: np.ndarray) -> np.ndarray:
        """Labels of the treatments that these (eligible) people got."""
        return self.treatments[self.arm[rows]]

    def chances(self, rows: np.ndarray) -> Any:
        """Known probabilities of these people's treatments, as estimators take them."""
        return self.propensity[rows] if self.per_row else self.propensity

    def take(self, rows: np.ndarray) -> Decision:
        """The same of some people."""
        part = {name: getattr(self, name)[rows] for name in ("arm", "eligible", "outcome")}
        part |= {name: getattr(self, name).iloc[rows] for name in ("X", "W")}
        part |= {name: None if (each := getattr(self, name)) is None else each[rows] for name in ("allowed", "costs")}
        return replace(self, propensity=self.chances(rows), **part)


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """All decisions on the same people, in order.

    Attributes
    ----------
    decisions : tuple of Decision
    index : pandas.Index
        Row labels of the user's data.
    sample_weight : ndarray of shape (n,), float64, or None
    groups, strata : ndarray of shape (n,), int64, or None
        Clusters; blocks within which treatment was assigned.
    regime : tuple of Decision
        All decisions of the regime, where these are only the first of them: they tell which columns stand at several
        stages, by which the columns of histories are named.
    """

    decisions: tuple[Decision, ...]
    index: pd.Index
    sample_weight: np.ndarray | None = None
    groups: np.ndarray | None = None
    strata: np.ndarray | None = None
    regime: tuple[Decision, ...] = ()

    @property
    def n(self) -> int:
        """Number of people."""
        return len(self.index)

    @property
    def weight(self) -> np.ndarray:
        """Weights, ones without, (n,)."""
        return np.ones(self.n) if self.sample_weight is None else self.sample_weight

    def __len__(self) -> int:
        return len(self.decisions)

    def take(self, rows: np.ndarray) -> Course:
        """Some of the people."""
        parts = {name: getattr(self, name) for name in ("sample_weight", "groups", "strata")}
        parts = {name: None if each is None else each[rows] for name, each in parts.items()}
        return Course(tuple(each.take(rows) for each in self.decisions), self.index[rows], **parts, regime=self.regime)

    def total(self) -> np.ndarray:
        """The utilities of all stages less what the treatments cost, (n,); NaN for people who were lost."""
        return np.sum([each.outcome for each in self.decisions], axis=0) - self.spent()

    def spent(self) -> np.ndarray:
        """Sum the costs of the treatments that people got over all stages, (n,)."""
        return np.sum([self.spent_at(s) for s in range(len(self))], axis=0)

    def spent_at(self, s: int) -> np.ndarray:
        """Return the costs of the treatments that people got at stage ``s``, (n,); zero for who was not eligible."""
        each = self.decisions[s]
        if each.costs is None:
            return np.zeros(self.n)
        return np.where(each.arm >= 0, each.costs[np.arange(self.n), each.arm], 0.0)

    def history(self, s: int, rows: np.ndarray) -> pd.DataFrame:
        """Return the history of these people at stage ``s`` (0, 1, ...): its own columns first, then earlier stages."""
        return self._accumulated("X", s, rows, outcomes=True)

    def confounders(self, s: int, rows: np.ndarray) -> pd.DataFrame:
        """The columns W of stage ``s`` and of earlier ones; which treatments these people may get, where it differs."""
        table = self._accumulated("W", s, rows, outcomes=False)
        allowed = self.decisions[s].allowed
        if allowed is None:
            return table
        names = [f"may get {label}" for label in self.decisions[s].treatments]
        differing = np.flatnonzero(~allowed.all(axis=0))
        own = pd.DataFrame(allowed[rows][:, differing], columns=[names[k] for k in differing], index=table.index)
        return pd.concat([table, own], axis=1)

    def _accumulated(self, which: str, s: int, rows: np.ndarray, *, outcomes: bool) -> pd.DataFrame:
        parts = [getattr(self.decisions[s], which).iloc[rows].reset_index(drop=True)]
        for each in reversed(self.decisions[:s]):
            own = getattr(each, which).iloc[rows].reset_index(drop=True)
            own.columns = self._names(which, each)
            parts.append(own)
            if outcomes:
                parts.append(_treatment_column(each, rows))
                if each.has_outcome:
                    parts.append(pd.DataFrame({_named_after(OUTCOME, each): each.outcome[rows]}))
        return pd.concat(parts, axis=1)

    def _names(self, which: str, each: Decision) -> list[Any]:
        """Names of an earlier stage's columns: those that stand at several stages are told apart by their stage."""
        found = Counter(name for one in self.regime or self.decisions for name in getattr(one, which).columns)
        return [_named_after(name, each) if found[name] > 1 else name for name in getattr(each, which).columns]

    def sources(self, s: int) -> list[tuple[Any, int, Any]]:
        """Where the columns of :meth:`history` come from: (name, stage, column of that stage).

        The column is ``TREATMENT`` or ``OUTCOME``, as a tuple of one, for what was given and what it brought.
        """
        out = [(name, s, name) for name in self.decisions[s].X.columns]
        for r in reversed(range(s)):
            each = self.decisions[r]
            out += [(name, r, own) for name, own in zip(self._names("X", each), each.X.columns, strict=True)]
            out.append((_named_after(TREATMENT, each), r, (TREATMENT,)))
            if each.has_outcome:
                out.append((_named_after(OUTCOME, each), r, (OUTCOME,)))
        return out


def _named_after(name: Any, decision: Decision) -> str:
    """The name of a column of an earlier stage."""
    return f"{name} ({decision.name})"


NOTHING_GIVEN = "none"  # a treatment in histories, where nothing was to be decided


def _treatment_column(decision: Decision, rows: np.ndarray) -> pd.DataFrame:
    """Return the treatments of an earlier stage as text; "none" where nothing was to be decided."""
    labels = np.array([*map(str, decision.treatments), NOTHING_GIVEN], dtype=object)
    return pd.DataFrame({_named_after(TREATMENT, decision): labels[decision.arm[rows]]})


# --- checks ---
