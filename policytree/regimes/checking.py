"""Stages as the user gives them, checked and aligned: one course of decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from policytree.common.row_labels import aligned, row_labels
from policytree.common.typing import Column, Table
from policytree.common.validation import as_series, group_codes, stratum_codes, treatment_codes, weights
from policytree.data.feature_encoder import as_pandas, collected
from policytree.exceptions import InputError, quoted
from policytree.regimes.course import Course, Decision
from policytree.regimes.stages import Stage
from policytree.weighting.by_label import by_label
from policytree.weighting.costs import treatment_costs
from policytree.weighting.propensities import is_constant
from policytree.weighting.study_data import REFUSE

TINY = 1e-12  # chance of a treatment that a person may not get: nobody of them got it, so that nothing divides by it


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
    out = list(aligned({**texts, **rows}).values())
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
        With a message that begins with ``what``.
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
