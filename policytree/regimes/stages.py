"""What was observed at every decision, checked; histories that accumulate; long tables to stages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from policytree.common.row_labels import aligned, row_labels
from policytree.common.typing import Column, PerTreatment, Table
from policytree.common.validation import (
    as_series,
    group_codes,
    sorted_labels,
    stratum_codes,
    treatment_codes,
    weights,
)
from policytree.data.feature_encoder import as_pandas, collected
from policytree.exceptions import InputError, quoted
from policytree.weighting.by_label import by_label
from policytree.weighting.costs import treatment_costs
from policytree.weighting.observed import REFUSE
from policytree.weighting.propensities import is_constant

TREATMENT, OUTCOME = "treatment", "outcome"  # what histories take of earlier stages beside their columns
TINY = 1e-12  # chance of a treatment that a person may not get: nobody of them got it, so that nothing divides by it


@dataclass(frozen=True, eq=False)
class Stage:
    """One decision of a regime: what was known by then, what was given, what it brought.

    All tables and columns have one row per person, in the same order at every stage.

    Parameters
    ----------
    T : column of n labels
        Treatment that each person received; missing for people who were not eligible. None where a rule is asked for a
        recommendation (:meth:`TreatmentRegime.predict`).
    X : table of shape (n, p), optional
        What became known before this decision, and what its rule may look at. Earlier stages are added by themselves.
    W : table of shape (n, q), optional
        Further confounders, for adjustment only.
    Y : column of n numbers, optional
        What the time from this decision to the next one brought, in the outcome's unit; utilities of all stages are
        summed. None: nothing (the outcome comes at a later stage). A missing value says that a person was lost: neither
        this nor any later outcome is known. People who left for good, such as those who died, bring 0 from then on.
    eligible : column of n booleans (or 0 and 1), optional
        People for whom there was something to decide; by default all whose T is not missing.
    propensity : optional
        Known probabilities of treatment given the history, for all rows or for one: as
        :meth:`policytree.RewardEstimator.fit` takes them. A sequentially randomised trial gives them.
    allowed : table of shape (n, K), or mapping of treatment to column of n booleans, optional
        Who may get which treatment; a treatment that a mapping leaves out is open to all. Everybody may get every
        treatment by default.
    costs : mapping, array of shape (K,) or (n, K), optional
        What treatments cost, in the outcome's unit.
    name : str, optional
        What messages, columns of histories and reports call the stage; "stage 1", "stage 2", ... by default.

    Examples
    --------
    >>> from policytree.regimes import Stage
    >>> Stage(["A", "B", "A"], X=[[1.0], [2.0], [3.0]], Y=[0.0, 1.0, 2.0]).name is None
    True
    """

    T: Column | None = None
    _: KW_ONLY
    X: Table | None = None
    W: Table | None = None
    Y: Column | None = None
    eligible: Column | None = None
    propensity: PerTreatment | None = None
    allowed: Table | Mapping[Any, Column] | None = None
    costs: PerTreatment | None = None
    name: str | None = None


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
        What this stage brought; NaN where people were lost.
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
        """What the treatments that people got cost over all stages, (n,)."""
        return np.sum([self.spent_at(s) for s in range(len(self))], axis=0)

    def spent_at(self, s: int) -> np.ndarray:
        """What the treatments that people got cost at stage ``s``, (n,); zero for who was not eligible."""
        each = self.decisions[s]
        if each.costs is None:
            return np.zeros(self.n)
        return np.where(each.arm >= 0, each.costs[np.arange(self.n), each.arm], 0.0)

    def history(self, s: int, rows: np.ndarray) -> pd.DataFrame:
        """What was known at stage ``s`` (0, 1, ...) of these people: its own columns first, then earlier stages."""
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
    """What was given at an earlier stage, as text; "none" where nothing was to be decided."""
    labels = np.array([*map(str, decision.treatments), NOTHING_GIVEN], dtype=object)
    return pd.DataFrame({_named_after(TREATMENT, decision): labels[decision.arm[rows]]})


# --- checks ---


def check_stages(
    stages: Sequence[Stage],
    *,
    sample_weight: Column | None = None,
    groups: Column | None = None,
    strata: Column | Table | None = None,
    missing_outcome: str = REFUSE,
) -> Course:
    """Check all stages, and that they are about the same people.

    Raises
    ------
    InputError
        If a stage is none, lengths differ, treatments are missing or only one occurs, outcomes are missing and not
        expected to be, or known probabilities are zero; the message names stage and argument.
    """
    stages = _as_stages(stages)
    named = [each.name if each.name is not None else f"stage {s + 1}" for s, each in enumerate(stages)]
    _check_names(named)
    stages, rows = _aligned(stages, named, {"sample_weight": sample_weight, "groups": groups, "strata": strata})
    index = _index_of(stages, named[0])
    decisions = [_decision(each, name, index) for each, name in zip(stages, named, strict=True)]
    decisions = _lost_stay_lost(decisions, missing_outcome)
    n = len(index)
    return Course(
        tuple(decisions), index, weights(rows["sample_weight"], n, "the stages"), group_codes(rows["groups"], n),
        stratum_codes(rows["strata"], n),
    )  # fmt: skip


def course_like(stages: Sequence[Stage], like: Course) -> Course:
    """Stages of other people up to some decision, with names and treatments of a fitted course; T may be lacking."""
    stages = _as_stages(stages)
    if len(stages) > len(like):
        raise InputError(f"There are {len(stages)} stages, but the regime was fitted to {len(like)}.")
    stages, _ = _aligned(stages, [each.name for each in like.decisions], {})
    index = _index_of(stages, like.decisions[0].name)
    pairs = zip(stages, like.decisions, strict=False)
    found = tuple(_decision(each, known.name, index, known) for each, known in pairs)
    return Course(found, index, regime=like.decisions)


def _as_stages(stages: Any) -> list[Stage]:
    if isinstance(stages, Stage):
        stages = [stages]
    if not isinstance(stages, Sequence) or not stages or not all(isinstance(each, Stage) for each in stages):
        raise InputError(
            f"stages must be a list of Stage objects, one per decision; got {quoted(stages)}. A table with one row per "
            "person and stage becomes such a list by stages_from_long."
        )
    return list(stages)


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if not isinstance(name, str) or not name:
            raise InputError(f"The name of a stage must be text; got {quoted(name)}.")
        if names.count(name) > 1:
            raise InputError(f"Two stages are called {name!r}; give every stage its own name.")


BY_PERSON = ("X", "T", "Y", "W", "eligible", "propensity", "allowed", "costs")  # fields of a Stage


def _aligned(
    stages: Sequence[Stage], names: Sequence[str], rows: Mapping[str, Any]
) -> tuple[list[Stage], dict[str, Any]]:
    """All columns of all stages, and further ones, with the people in one order."""
    given = {
        (s, field): collected(getattr(each, field))
        for s, (each, _) in enumerate(zip(stages, names, strict=False))
        for field in BY_PERSON
    }
    texts = {f"{field} of {names[s]}": value for (s, field), value in given.items()}
    out = list(aligned({**texts, **rows}, stacklevel=4).values())
    fields = dict(zip(given, out, strict=False))
    found = [replace(each, **{name: fields[s, name] for name in BY_PERSON}) for s, each in enumerate(stages)]
    return found, dict(zip(rows, out[len(given) :], strict=True))


def _index_of(stages: Sequence[Stage], name: str) -> pd.Index:
    """The people's labels: those of the first table or column that has any."""
    labels = row_labels(*(getattr(each, field) for each in stages for field in BY_PERSON))
    for table in (stages[0].X, stages[0].T, stages[0].Y, stages[0].W):
        if table is not None:
            n = len(table)  # type: ignore[arg-type]
            return labels if labels is not None and len(labels) == n else pd.RangeIndex(n)
    raise InputError(f"{name} has neither X nor T; give at least one of them.")


def _decision(stage: Stage, name: str, index: pd.Index, known: Decision | None = None) -> Decision:
    """One stage, checked; by ``known``, that of the fit, treatments may be lacking."""
    n = len(index)
    X, W = (_table(each, f"{what} of {name}", index) for each, what in ((stage.X, "X"), (stage.W, "W")))
    arm, eligible, treatments = _treatments(stage, name, index, known)
    outcome = _outcomes(stage, name, index)
    allowed = _allowed(stage.allowed, name, index, eligible, treatments)
    if allowed is not None:
        _check_allowed(allowed, arm, treatments, name)
    propensity, per_row = _chances(stage, name, eligible, treatments, allowed)
    costs = None if stage.costs is None else _named(treatment_costs, f"costs of {name}", stage.costs, n, treatments)
    return Decision(
        name, treatments, arm, eligible, outcome, stage.Y is not None, X, W, propensity, per_row, allowed, costs
    )


def _named(check, what: str, *arguments):
    """A check whose message is to name the stage."""
    try:
        return check(*arguments)
    except InputError as error:
        raise InputError(f"{what}: {error}") from error


def _table(table: Table | None, argument: str, index: pd.Index) -> pd.DataFrame:
    """A stage's columns as a frame with text names; one without columns if there are none."""
    if table is None:
        return pd.DataFrame(index=index)
    frame = as_pandas(table)
    if frame is None:
        values = np.asarray(table)
        values = values[:, None] if values.ndim == 1 else values
        if values.ndim != 2:
            raise InputError(f"{argument} must be a table with one row per person; got shape {values.shape}.")
        frame = pd.DataFrame(values, columns=[f"x{j}" for j in range(values.shape[1])])
    _check_rows(len(frame), argument, len(index))
    return frame.set_axis([str(name) for name in frame.columns], axis=1).set_axis(index)


def _column(values: Column, argument: str, people: pd.Index) -> pd.Series:
    """A column with one value per person."""
    series = as_series(values, argument)
    _check_rows(len(series), argument, len(people))
    return series


def _as_numbers(column: pd.Series, what: str) -> np.ndarray:
    """A column as numbers, NaN where it has none.

    Raises
    ------
    InputError
        That begins with ``what``.
    """
    try:
        if column.dtype.kind == "c":
            raise TypeError("complex numbers have no order")
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} holds values that are not numbers; convert them to numbers.") from error


def _check_rows(rows: int, argument: str, n: int) -> None:
    if rows != n:
        raise InputError(
            f"{argument} has {rows} rows, but there are {n} people at the first stage; give every person a row at "
            "every stage (stages_from_long fills in those who left)."
        )


def _treatments(
    stage: Stage, name: str, people: pd.Index, known: Decision | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes of treatments, -1 where there are none; who is eligible; the labels."""
    n = len(people)
    if stage.T is None and known is not None:
        eligible = _flags(stage.eligible, f"eligible of {name}", people)
        return np.full(n, -1), np.ones(n, dtype=bool) if eligible is None else eligible, known.treatments
    if stage.T is None:
        raise InputError(f"{name} has no T; give the treatment that every person received.")
    series = _column(stage.T, f"T of {name}", people)
    present = series.notna().to_numpy()
    eligible = _flags(stage.eligible, f"eligible of {name}", people)
    eligible = present if eligible is None else eligible
    lacking = np.flatnonzero(eligible & ~present)
    if len(lacking):
        raise InputError(
            f"T of {name} is missing for {len(lacking)} eligible people, the first in row {lacking[0]}; mark them as "
            "not eligible, or fill in what they got."
        )
    if not eligible.any():
        raise InputError(f"Nobody is eligible at {name}; leave the stage out.")
    labels = None if known is None else known.treatments
    values = _plain(series[eligible])
    codes, treatments = _named(treatment_codes, name, values, None, labels)
    arm = np.full(n, -1, dtype=np.int64)
    arm[eligible] = codes
    return arm, eligible, treatments


def _plain(series: pd.Series) -> pd.Series:
    """Labels without the floats that missing values made of whole numbers."""
    values = series.infer_objects()
    if values.dtype.kind == "f" and (values == values.round()).all():
        values = values.astype(np.int64)
    return values.rename("T")


def _flags(column: Column | None, argument: str, people: pd.Index) -> np.ndarray | None:
    if column is None:
        return None
    series = _column(column, argument, people)
    values = series.to_numpy(dtype=object)
    if series.isna().any() or not all(value in (0, 1) for value in values):
        raise InputError(f"{argument} must be True or False (or 1 and 0) in every row.")
    return values.astype(bool)


def _outcomes(stage: Stage, name: str, people: pd.Index) -> np.ndarray:
    """Utilities, NaN where they are missing."""
    if stage.Y is None:
        return np.zeros(len(people))
    values = _as_numbers(_column(stage.Y, f"Y of {name}", people), f"Y of {name}")
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise InputError(f"Y of {name} has {len(infinite)} infinite values, the first in row {infinite[0]}.")
    return values


def _lost_stay_lost(decisions: list[Decision], missing_outcome: str) -> list[Decision]:
    """Outcomes after a missing one are missing as well; refuse missing ones where nobody said how to treat them."""
    if missing_outcome == REFUSE:
        for each in decisions:
            missing = np.flatnonzero(np.isnan(each.outcome))
            if len(missing):
                raise InputError(
                    f"Y of {each.name} has {len(missing)} missing value(s), the first in row {missing[0]}; write 0 for "
                    "people who had left for good by then, or pass missing_outcome='weight' if they were lost, which "
                    "weights for who is."
                )
    if not any(each.has_outcome for each in decisions):
        raise InputError("No stage has an outcome; give Y at the last stage at least.")
    lost = np.zeros(len(decisions[0].outcome), dtype=bool)
    out = []
    for each in decisions:
        lost |= np.isnan(each.outcome)
        out.append(replace(each, outcome=np.where(lost, np.nan, each.outcome)))
    return out


def _allowed(
    allowed: Any, name: str, people: pd.Index, eligible: np.ndarray, treatments: np.ndarray
) -> np.ndarray | None:
    """Who may get what, (n, K); everything for people for whom there is nothing to decide."""
    if allowed is None:
        return None
    n = len(eligible)
    if isinstance(allowed, Mapping):
        known = {str(label) for label in treatments}
        for label in allowed:
            if str(label) not in known:
                raise InputError(f"allowed of {name} names {label!r}, which is no treatment there.")
        given = {str(label): column for label, column in allowed.items()}
        columns = [_flags(given.get(str(label)), f"allowed[{str(label)!r}] of {name}", people) for label in treatments]
        values = np.column_stack([np.ones(n, dtype=bool) if each is None else each for each in columns])
    else:
        values = _named(_allowed_table, f"allowed of {name}", allowed, n, treatments)
    values = values | ~eligible[:, None]
    nobody = np.flatnonzero(~values.any(axis=1))
    if len(nobody):
        raise InputError(
            f"allowed of {name} leaves {len(nobody)} people without any treatment, the first in row {nobody[0]}; mark "
            "them as not eligible."
        )
    return values


def _allowed_table(allowed: Any, n: int, treatments: np.ndarray) -> np.ndarray:
    values = by_label(allowed, n, treatments, argument="allowed", what="column")
    if values.shape != (n, len(treatments)) or not np.isin(values, (0.0, 1.0)).all():
        raise InputError(f"give True or False for each of {n} people and {len(treatments)} treatments.")
    return values.astype(bool)


def _check_allowed(allowed: np.ndarray, arm: np.ndarray, treatments: np.ndarray, name: str) -> None:
    got = np.flatnonzero((arm >= 0) & ~allowed[np.arange(len(arm)), np.maximum(arm, 0)])
    if len(got):
        raise InputError(
            f"{len(got)} people got a treatment at {name} that allowed denies them, the first "
            f"{treatments[arm[got[0]]]!s} in row {got[0]}; mend allowed, or T."
        )


def _chances(
    stage: Stage, name: str, eligible: np.ndarray, treatments: np.ndarray, allowed: np.ndarray | None
) -> tuple[Any, bool]:
    """Known probabilities; zeros only where a treatment is not allowed."""
    given, n = stage.propensity, len(eligible)
    if given is None:
        return None, False
    if allowed is None and is_constant(given, n, len(treatments)):
        return given, False
    matrix = _named(_chance_matrix, f"propensity of {name}", given, eligible, treatments)
    if allowed is not None:
        over = np.argwhere(~allowed & (matrix > TINY))
        if len(over):
            row, k = over[0]
            raise InputError(
                f"propensity of {name} gives {treatments[k]!s} a chance of {matrix[row, k]:g} in row {row}, where "
                "allowed denies it; set one of them right."
            )
        matrix = np.where(allowed, matrix, TINY)
        matrix /= matrix.sum(axis=1, keepdims=True)
    known = np.ones((n, len(treatments)), dtype=bool) if allowed is None else allowed
    zero = np.argwhere(known & ~(matrix > TINY))
    if len(zero):
        row, k = zero[0]
        raise InputError(
            f"propensity of {name} is {matrix[row, k]:g} for {treatments[k]!s} in row {row}: nobody like that could "
            f"get it, so nothing is known of it. Say who may get it by allowed={{{str(treatments[k])!r}: ...}}."
        )
    return matrix, True


def _chance_matrix(given: Any, eligible: np.ndarray, treatments: np.ndarray) -> np.ndarray:
    """Probabilities as an (n, K) matrix, zeros and ones among them; equal ones for people who are not eligible."""
    n = len(eligible)
    values = by_label(given, n, treatments, argument="propensity", what="probability")
    if values.ndim == 0 or (values.shape == (n,) and len(treatments) == 2):
        second = np.broadcast_to(values, (n,))
        values = np.column_stack([1.0 - second, second])
    elif values.shape == (len(treatments),):
        values = np.tile(values, (n, 1))
    if values.shape != (n, len(treatments)):
        raise InputError(
            f"give one probability per treatment, for all people or for each of {n}; got shape {values.shape}."
        )
    values = np.where(eligible[:, None], values, 1.0 / len(treatments))
    bad = np.flatnonzero(~(np.abs(values.sum(axis=1) - 1.0) <= 1e-6) | (values < 0.0).any(axis=1))
    if len(bad):
        raise InputError(f"probabilities of a person must be at least 0 and sum to one; those of row {bad[0]} do not.")
    return values


# --- long tables ---


def stages_from_long(
    table: Table,
    *,
    id: Hashable,
    stage: Hashable,
    treatment: Hashable,
    outcome: Hashable,
    covariates: Sequence[Hashable] | None = None,
    adjust: Sequence[Hashable] = (),
    propensity: Hashable | None = None,
    lost: Hashable | None = None,
) -> list[Stage]:
    """Stages of a table with one row per person and decision.

    A person without a row at a later stage has left, and brings nothing from then on. Where the last outcome of a
    person is missing, or ``lost`` is 1 there, later ones are unknown instead (``missing_outcome="weight"``).

    Parameters
    ----------
    table : DataFrame
        pandas or polars.
    id, stage, treatment, outcome : column names
        Of the person, of the decision (numbers, dates, an ordered categorical, or text that sorts in the order of
        time), of what was given (missing where there was nothing to decide) and of what it brought until the next
        decision.
    covariates : list of column names, optional
        What rules may look at; by default all other columns. Those that are missing throughout a stage are left out
        there.
    adjust : list of column names, optional
        Further confounders, for adjustment only.
    propensity : column name, optional
        Known probability of the treatment that the person got. Each stage must have two treatments then.
    lost : column name, optional
        1 where a person was lost after this row, 0 elsewhere.

    Returns
    -------
    list of Stage
        Their rows are the people in the order of their first appearance, whose ids are the index of X.

    Raises
    ------
    InputError
        If a column is lacking, a person has two rows at a stage, or comes back after having left.

    Examples
    --------
    >>> import pandas as pd
    >>> from policytree.regimes import stages_from_long
    >>> visits = pd.DataFrame({
    ...     "patient": [1, 1, 2, 3, 3], "visit": [1, 2, 1, 1, 2], "drug": ["A", "B", "A", "B", "B"],
    ...     "response": [0.0, 3.0, 1.0, 0.5, 2.0], "severity": [5, 4, 6, 3, 3],
    ... })
    >>> first, second = stages_from_long(visits, id="patient", stage="visit", treatment="drug", outcome="response")
    >>> second.eligible.tolist()
    [True, False, True]
    """
    frame = as_pandas(table)
    if frame is None:
        raise InputError(f"table must be a DataFrame; got {type(table).__name__}.")
    used = [id, stage, treatment, outcome, *adjust, *(each for each in (propensity, lost) if each is not None)]
    if covariates is None:
        covariates = [name for name in frame.columns if name not in used]
    _refuse_two_roles({"id": id, "stage": stage, "treatment": treatment, "outcome": outcome, "propensity": propensity,
                       "lost": lost}, covariates, adjust)  # fmt: skip
    for name in (*used, *covariates):
        if name not in frame.columns:
            known = ", ".join(map(str, frame.columns))
            raise InputError(f"The table has no column {name!r}; it has {known}.")
    for name, what in ((id, "id"), (stage, "stage")):
        empty = np.flatnonzero(frame[name].isna())
        if len(empty):
            raise InputError(f"Column {name!r} ({what}) is missing in row {empty[0]}; every row needs one.")
    if not len(frame):
        raise InputError("The table has no rows; give it one for every person and decision.")
    numbers = {outcome: _numbers(frame[outcome], "outcome")}
    if propensity is not None:
        numbers[propensity] = _numbers(frame[propensity], "propensity")
    if lost is not None:
        flags = frame[lost].fillna(0)
        numbers[lost] = pd.Series(_flags(flags, f"Column {lost!r} (lost)", frame.index), frame.index, dtype=np.float64)
    frame = frame.copy(deep=False)
    for name, values in numbers.items():
        frame[name] = values
    for name, what in ((id, "id"), (stage, "stage")):
        if frame[name].map(lambda cell: isinstance(cell, list | dict | set | np.ndarray)).any():
            raise InputError(f"Column {name!r} ({what}) holds lists or tables; make numbers or texts of them.")
    twice = np.flatnonzero(frame.duplicated([id, stage]))
    if len(twice):
        row = frame.iloc[twice[0]]
        raise InputError(f"Person {row[id]!s} has two rows at stage {row[stage]!s}; keep one of them.")
    people = pd.Index(pd.unique(frame[id]), name=id)
    times = stage_times(frame[stage])
    parts = [frame[frame[stage] == time].set_index(id).reindex(people) for time in times]
    here = np.column_stack([people.isin(frame.loc[frame[stage] == time, id]) for time in times])
    _refuse_returns(here, people, times)
    gone_unknown = np.zeros(len(people), dtype=bool)
    early = np.zeros(len(people), dtype=bool)  # said to be lost where a later row follows
    stages = []
    for s, (time, part) in enumerate(zip(times, parts, strict=True)):
        present = here[:, s]
        values = part[outcome].to_numpy()
        y = np.where(present, values, np.where(gone_unknown, np.nan, 0.0))
        if lost is not None:
            last = present & ~(here[:, s + 1] if s + 1 < len(times) else np.zeros(len(people), dtype=bool))
            said = part[lost].to_numpy() == 1
            y = np.where(last & said, np.nan, y)
            early = early | (present & ~last & said)
            back = np.flatnonzero(early & last & ~said)
            if len(back):
                raise InputError(
                    f"Person {people[back[0]]!s} is lost after an earlier stage by column {lost!r}, but has a row at "
                    f"stage {time!s}; write 1 in the last row of a person only."
                )
        gone_unknown |= np.isnan(y)
        eligible = present & part[treatment].notna().to_numpy()
        kept = [name for name in covariates if part[name].notna().any()]
        more = [name for name in adjust if part[name].notna().any()]
        stages.append(
            Stage(
                part[treatment].where(eligible), X=part[kept], W=part[more] if more else None, Y=y, eligible=eligible,
                propensity=None if propensity is None else _of_second(part, treatment, propensity, eligible, time),
                name=f"{stage} {_time_text(time)}",
            )
        )  # fmt: skip
    return stages


def _refuse_two_roles(
    roles: Mapping[str, Hashable | None], covariates: Sequence[Hashable], adjust: Sequence[Hashable]
) -> None:
    """Refuse a column that has two roles, such as an outcome that rules may look at."""
    taken: dict[Hashable, str] = {}
    for role, name in roles.items():
        if name is not None and name in taken:
            raise InputError(f"Column {name!r} is both {taken[name]} and {role}; give each its own.")
        if name is not None:
            taken[name] = role
    for argument, names in (("covariates", covariates), ("adjust", adjust)):
        if isinstance(names, str):
            raise InputError(f"{argument} must be a list of names of columns; got {names!r}.")
        for name in names:
            if name in taken:
                raise InputError(f"{argument} names {name!r}, which is the {taken[name]}; leave it out.")


def _numbers(column: pd.Series, role: str) -> pd.Series:
    """A column of a long table as numbers, NaN where it has none."""
    return pd.Series(_as_numbers(column, f"Column {column.name!r} ({role})"), column.index)


def stage_times(column: pd.Series) -> list[Any]:
    """The stages of a long table, in order: that of an ordered categorical, of numbers, dates or texts.

    Raises
    ------
    InputError
        If texts and others stand side by side, or texts with numbers in them sort otherwise than the numbers.
    """
    found = column.drop_duplicates()
    if isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.ordered:
        present = set(found)
        return [time for time in column.dtype.categories if time in present]
    texts = [isinstance(time, str) for time in found]
    if any(texts) and not all(texts):
        raise InputError(
            f"Column {column.name!r} (stage) holds both texts and other values, which have no order; number the stages."
        )
    times = sorted_labels(np.array(list(found), dtype=object) if all(texts) else found.to_numpy()).tolist()
    if all(texts):
        natural = sorted(times, key=_natural)
        for here, there in zip(times, natural, strict=True):
            if here != there:
                raise InputError(
                    f"The stages of column {column.name!r} sort as text, {here} before {there}; number them 1, 2, ..., "
                    "or make the column an ordered categorical."
                )
    return [pd.Timestamp(time) for time in found.sort_values()] if column.dtype.kind == "M" else times


def _time_text(time: Any) -> str:
    """A stage in the name of a stage: of dates the day, if it is all."""
    if isinstance(time, pd.Timestamp) and time == time.normalize():
        return str(time.date())
    return str(time)


def _refuse_returns(here: np.ndarray, people: pd.Index, times: Sequence[Any]) -> None:
    """Refuse people who are absent at one stage and present at a later one."""
    for s in range(1, len(times)):
        back = np.flatnonzero(here[:, s] & ~here[:, s - 1])
        if len(back):
            raise InputError(
                f"Person {people[back[0]]!s} has a row at stage {times[s]!s}, but none at stage {times[s - 1]!s}: "
                "stages must follow each other. Give a row without a treatment where there was nothing to decide."
            )


def _of_second(
    part: pd.DataFrame, treatment: Hashable, propensity: Hashable, eligible: np.ndarray, time: Any
) -> np.ndarray:
    """Every person's probability of the second treatment, from that of the one they got."""
    labels = sorted_labels(part.loc[eligible, treatment].to_numpy())
    if len(labels) > 2:
        raise InputError(
            f"Stage {time!s} has {len(labels)} treatments, and a column of probabilities says only that of the one "
            "that was given; leave propensity out here and set it on the stages, with one column per treatment."
        )
    got_second = (part[treatment] == labels[-1]).to_numpy()
    chance = part[propensity].to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(eligible, np.where(got_second, chance, 1.0 - chance), 0.5)


def _natural(text: str) -> list:
    """A key that sorts the numbers in texts as numbers: by their length, then by their digits."""
    parts = re.split(r"([0-9]+)", text)
    return [(len(p.lstrip("0")), p.lstrip("0")) if k % 2 else p for k, p in enumerate(parts)]
