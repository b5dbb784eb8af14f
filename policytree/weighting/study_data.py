"""StudyData: the columns of a study by their roles, checked once, as arrays that everything downstream takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from policytree.common.calls import StudyLike
from policytree.common.row_labels import aligned_rows
from policytree.common.typing import Column, Table
from policytree.common.validation import (
    arm_column,
    as_series,
    check_choice,
    factors_of,
    group_codes,
    numbers,
    refuse_nonfinite,
    refuse_weightless,
    stratum_codes,
    treatment_codes,
    weights,
)
from policytree.data.feature_encoder import as_pandas
from policytree.exceptions import InputError
from policytree.model_selection.folds import FoldPlan, make_folds
from policytree.weighting.by_label import by_label
from policytree.weighting.stacked import averaging_weight, expanded, study_mask
from policytree.weighting.target_arguments import with_target
from policytree.weighting.time_to_event.outcome import (
    Asked,
    TimeToEvent,
    is_structured,
    split_structured,
    time_to_event,
)

REFUSE, WEIGHT = "refuse", "weight"
_REMEDY = (
    "leave these rows out if nothing they depend on matters for the outcome, or weight for who is missing: "
    "outcome=MayBeMissing(...) of a study, missing_outcome='weight' of a regime."
)
TARGET_ROWS = "(a person of the target)"  # name of the rows beside the study in messages on folds
FEWEST_SEEN = 5  # outcomes of a treatment, where some are missing
LARGEST_OUTCOME = 1e151  # squares can still be added up over a million rows
TABLES = (  # fields of StudyData that stay as they were given
    "X", "W", "T", "propensity", "regression", "sample_treatment_costs", "budget_costs", "outcomes", "subgroups",
)  # fmt: skip
OF_TARGET = ("target_X", "target_W", "target_weights")
R = TypeVar("R")
FEW_TREATMENTS = 20  # so many may be rare; more, if numbers or with fewer rows each, are doses or names of persons


@dataclass(frozen=True, slots=True)
class Instrument:
    """Instrument that affects outcomes through treatment only: offers, lotteries, distances.

    Attributes
    ----------
    code : ndarray of shape (n,), int64
        Position of each row's offer in ``offers``.
    offers : ndarray of shape (M,)
        The user's labels, sorted.
    """

    code: np.ndarray
    offers: np.ndarray

    def rows(self, rows: np.ndarray) -> Instrument:
        """Some of the rows, by their positions; offers stay all."""
        return Instrument(self.code[rows], self.offers)


@dataclass(frozen=True, slots=True, eq=False)
class StudyData(StudyLike):
    """A study's columns by their roles: what was observed as checked arrays, tables as they were given.

    :class:`policytree.Study` makes one of its table, and calls with Y, T and X make one of these (:meth:`read`).

    Attributes
    ----------
    y : ndarray of shape (n,), float64
        Outcome, in its unit; larger is better unless said otherwise downstream.
    arm : ndarray of shape (n,), int64
        Position of each row's treatment in ``treatments``.
    treatments : ndarray of shape (K,)
        The user's labels, sorted.
    sample_weight : ndarray of shape (n,), float64, or None
    groups : ndarray of shape (n,), int64, or None
        Cluster codes.
    index : pandas.Index
        Row labels of the user's data, kept for the frames that come out.
    strata : ndarray of shape (n,), int64, or None
        Codes of the blocks within which treatment was assigned.
    times : TimeToEvent, or None
        Where outcomes are times, some of them censored; ``y`` are then the times.
    seen : ndarray of shape (n,), bool, or None
        Rows whose outcome is not missing; ``y`` of the others is zero. None if no outcome is missing.
    instrument : Instrument, or None
    took : ndarray of shape (n,), float64, or None
        Where arms are offers (:meth:`by_offer`): 1 for rows that got the second treatment, 0 for the others.
    study : ndarray of shape (n,), bool, or None
        Rows of the study, where rewards are about another population: the other rows are people of that target, and
        their ``y`` and ``arm`` are zeros without a meaning. None if the study is what rewards are about.
    sampling_weight : ndarray of shape (n,), float64, or None
        Where there is a target: the weights that models learn with. ``sample_weight`` is then that of averages over
        the target (:mod:`policytree.weighting.target_population`).
    factors : DataFrame of shape (C, p), or None
        Where treatments are combinations of several: the level of each, by the combination's label
        (:class:`policytree.data.combined_treatments.CombinedTreatments`).
    labels : ndarray of shape (n,), or None
        The user's labels of clusters.
    name : str, or None
        Of the column of outcomes.
    missing_outcome : {"refuse", "weight"}
        Whether rows without an outcome are weighted for, here and among new rows.
    T, X, W : column and tables of n rows, or None
        Treatments, covariates that a rule may split on, and further confounders, as they were given.
    propensity, regression : optional
        Known probabilities of treatment (of offers), and expected outcomes from elsewhere.
    sample_treatment_costs, budget_costs : mapping or array of shape (K,) or (n, K), or None
        Costs of treatments in the outcome's unit, and what they take of a budget.
    outcomes : mapping of name to column, or to (column, direction), or None
        Further outcomes.
    subgroups : table of shape (n, q), or None
        Columns of groups of people.
    direction, control, randomized, known_propensity, unit : optional
        The study's question, as it states it.
    """

    y: np.ndarray
    arm: np.ndarray
    treatments: np.ndarray
    sample_weight: np.ndarray | None
    groups: np.ndarray | None
    index: pd.Index
    strata: np.ndarray | None = None
    times: TimeToEvent | None = None
    seen: np.ndarray | None = None
    instrument: Instrument | None = None
    took: np.ndarray | None = None
    study: np.ndarray | None = None
    sampling_weight: np.ndarray | None = None
    factors: pd.DataFrame | None = None
    labels: np.ndarray | None = None
    name: Any = None
    missing_outcome: str = REFUSE
    T: Any = None
    X: Any = None
    W: Any = None
    propensity: Any = None
    regression: Any = None
    sample_treatment_costs: Any = None
    budget_costs: Any = None
    outcomes: Mapping[str, Any] | None = None
    subgroups: Any = None
    direction: str | None = None
    control: Any = None
    randomized: bool | None = None
    known_propensity: bool = False
    unit: str = ""

    @classmethod
    def of(
        cls,
        Y: Column,
        T: Column | None,
        *,
        event: Column | None = None,
        horizon: float | None = None,
        target: str | None = None,
        entry: Column | None = None,
        cause: Any = None,
        missing_outcome: str = REFUSE,
        instrument: Column | None = None,
        study: Column | None = None,
        target_X: Table | None = None,
        target_W: Table | None = None,
        target_weights: Column | None = None,
        sample_weight: Column | None = None,
        groups: Column | None = None,
        strata: Column | Table | None = None,
        treatments: np.ndarray | None = None,
        offers: np.ndarray | None = None,
        **rest: Any,
    ) -> StudyData:
        """Check columns, and put them into one order.

        Parameters
        ----------
        Y : column of shape (n,)
            Outcomes; times to an event where there is ``event``, or where they are a structured array.
        T : column of shape (n,), or table of several treatments
        event, horizon, target, entry, cause : optional
            How times ended and what they count for (:class:`policytree.study.TimeToEvent`).
        instrument : column of shape (n,), optional
            Offers (:class:`policytree.study.Offered`).
        study : column of shape (n,) of bool, optional
            False for rows that are people whom the rule is for, and of no study.
        target_X, target_W : table of shape (m, p), optional
            In place of ``study``: these people's covariates and confounders (:class:`policytree.study.Population`).
        target_weights : column of shape (n,), optional
            In place of both: how many of these people every row stands for.
        sample_weight, groups, strata : columns of shape (n,), optional
            Sampling weights, clusters, and blocks within which treatment was assigned.
        treatments, offers : ndarray of shape (K,) and (M,), optional
            Labels that are known from a fit; others are refused, and nothing is asked of how many rows have each.
        **rest
            Attributes that stand as they are given, such as ``X`` and ``propensity``.

        Raises
        ------
        InputError
            For empty data, missing or infinite values, unequal lengths, a single treatment, or unknown treatments.
        """
        if Y is None:
            raise InputError("fit requires y to be passed, but the target y is None: give the outcomes Y.")
        if T is None:
            raise InputError("T is missing: give the treatment of every row, or a Study in the place of Y and T.")
        given: dict[str, Any] = {
            "Y": Y, "T": T, "event": event, "entry": entry, "instrument": instrument, "study": study,
            "target_X": target_X, "target_W": target_W, "target_weights": target_weights,
            "sample_weight": sample_weight, "groups": groups, "strata": strata, **rest,
        }  # fmt: skip
        given = aligned_rows({role: each for role, each in given.items() if each is not None})
        if not given.keys().isdisjoint(OF_TARGET):
            given = with_target(given)
        rest = {role: given.pop(role) for role in [*given] if role in rest}
        asked = {"horizon": horizon, "target": target, "cause": cause, "missing_outcome": missing_outcome}
        data = _observe(**given, **asked, treatments=treatments, offers=offers)
        labels = None if groups is None else as_series(given["groups"], "groups").to_numpy()
        return replace(
            data, labels=labels, name=getattr(given["Y"], "name", None), missing_outcome=missing_outcome, T=given["T"],
            **rest,
        )  # fmt: skip

    @classmethod
    def read(cls, call: str, Y: Column | StudyLike, *, T: Column | None, X: Table | None, **columns: Any) -> StudyData:
        """Read a call's arguments: a study instead of Y, or columns that one call may have without a study.

        Raises
        ------
        InputError
            If columns stand beside a study, or cannot be used.
        """
        if not isinstance(Y, StudyLike):
            return cls.of(Y, T, X=X, **columns)
        for role, column in {"T": T, "X": X, **columns}.items():
            if column is not None and role != "regression":
                raise InputError(
                    f"{call} is given a study, which says {role} already; leave {role} out, or make another study."
                )
        regression = columns.get("regression")
        return Y.data if regression is None else replace(Y.data, regression=regression)

    def with_covariates(self) -> StudyData:
        """The same, of which the call needs covariates.

        Raises
        ------
        InputError
            If it has none.
        """
        if self.X is None:
            raise InputError("X is missing: give the covariates, or a Study in the place of Y, T and X.")
        return self

    @property
    def data(self) -> StudyData:
        """The same: calls take it in the place of a study."""
        return self

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.y)

    @property
    def n_arms(self) -> int:
        """Number of treatments."""
        return len(self.treatments)

    @property
    def what(self) -> str:
        """Name of an arm: "treatment", or "offer" (:meth:`by_offer`)."""
        return "treatment" if self.took is None else "offer"

    @property
    def assigned(self) -> str:
        """Target of models of treatment: "treatment", or "the offer" where people may refuse what is assigned."""
        return "treatment" if self.took is None and self.instrument is None else "the offer"

    @property
    def weight(self) -> np.ndarray:
        """Sampling weights, ones without, shape (n,)."""
        return np.ones(self.n) if self.sample_weight is None else self.sample_weight

    @property
    def clusters(self) -> np.ndarray:
        """Cluster of every row, its own without clusters, shape (n,)."""
        return np.arange(self.n) if self.groups is None else self.groups

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the largest outcome that is seen; of times to an event, that the target can be."""
        if self.study is not None:
            return self.of_study().limits
        if self.times is not None:
            return self.times.limits
        y = self.y if self.seen is None else self.y[self.seen]
        return float(y.min()), float(y.max())

    def received(self, rows: np.ndarray | None = None) -> Any:
        """Return ``T`` of rows (default: all): labels, or where several treatments were combined their columns."""
        labels = self.treatments[self.arm if rows is None else self.arm[rows]]
        if self.factors is None:
            return labels
        return self.factors.loc[labels].set_axis(self.index if rows is None else self.index[rows])

    def arguments(self, rows: np.ndarray) -> dict[str, Any]:
        """``Y`` of some rows, missing where it was, and what ``fit`` takes beside it to say how it was observed."""
        y, whose = self.y[rows], self.offered(rows)
        if self.study is not None:
            whose["study"] = self.study[rows]
        if self.times is not None:
            return {"Y": y, **self.times.arguments(rows), **whose}
        if self.seen is None:
            return {"Y": y, **whose}
        return {"Y": np.where(self.seen[rows], y, np.nan), "missing_outcome": WEIGHT, **whose}

    def offered(self, rows: np.ndarray) -> dict[str, Any]:
        """``instrument`` of some rows, as an argument; empty without one."""
        return {} if self.instrument is None else {"instrument": self.instrument.offers[self.instrument.code[rows]]}

    def by_offer(self) -> StudyData:
        """The same with offers in place of treatments, and who took the second treatment."""
        assert self.instrument is not None, "there are offers"
        offers, took = self.instrument, (self.arm == 1).astype(np.float64)
        return replace(self, arm=offers.code, treatments=offers.offers, instrument=None, took=took, factors=None)

    def folds(self, cv, random_state, argument: str = "cv", whose: str = "") -> FoldPlan:
        """Folds balanced over treatments within strata that split no cluster (``model_selection.folds.make_folds``).

        With an instrument: over offers, within treatments within strata. The people of a target are balanced over the
        folds as one more treatment.
        """
        arm, labels, design, target = self.arm, self.treatments.tolist(), self.strata, None
        what = self.what.capitalize()
        if self.instrument is not None:
            blocks = np.zeros_like(arm) if design is None else design
            design = np.unique(blocks * self.n_arms + arm, return_inverse=True)[1]
            arm, labels, what = self.instrument.code, self.instrument.offers.tolist(), "Offer"
        if self.study is not None:
            arm, labels, target = np.where(self.study, arm, self.n_arms), [*labels, TARGET_ROWS], TARGET_ROWS
        return make_folds(
            self.n,
            cv,
            strata=arm,
            stratum_names=labels,
            what=what,
            design=design,
            groups=self.groups,
            random_state=random_state,
            argument=argument,
            whose=whose,
            target=target,
        )

    def as_at_fit(self, treatments: np.ndarray, offers: np.ndarray | None, asked: Asked | None) -> StudyData:
        """The same by the labels of a fit, and what it asked of times.

        Raises
        ------
        InputError
            If a label is not among those of the fit.
        """
        arm, code = treatment_codes(self.treatments[self.arm], self.n, treatments)[0], self.instrument
        if code is not None and offers is not None:
            again = treatment_codes(code.offers[code.code], self.n, offers, argument="instrument", what="offer")
            code = Instrument(*again)
        times = self.times if self.times is None or asked is None else asked.of(self.times)
        return replace(self, arm=arm, treatments=treatments, instrument=code, times=times)

    def with_outcome(self, Y: Column) -> StudyData:
        """The same of another outcome of the same rows, a number.

        Raises
        ------
        InputError
            If it cannot be used.
        """
        own = {role: getattr(self, role) for role in ("X", "W", "propensity", "sample_weight", "strata")}
        return StudyData.of(Y, self.T, groups=self.labels, missing_outcome=self.missing_outcome, **own)

    def arrays(self) -> StudyData:
        """The same without tables and what was given with them: what models and schemes compute with."""
        dropped: dict[str, Any] = dict.fromkeys(TABLES)
        return replace(self, **dropped)

    def rows(self, rows: np.ndarray) -> StudyData:
        """The arrays of some of the rows, by their positions; treatments stay all."""
        parts = (
            self.sample_weight, self.groups, self.strata, self.seen, self.took, self.study, self.sampling_weight,
        )  # fmt: skip
        weight, groups, strata, seen, took, study, sampling = (None if part is None else part[rows] for part in parts)
        times = None if self.times is None else self.times.rows(rows)
        offers = None if self.instrument is None else self.instrument.rows(rows)
        return StudyData(
            self.y[rows], self.arm[rows], self.treatments, weight, groups, self.index[rows], strata, times, seen,
            offers, took, study, sampling, self.factors,
        )  # fmt: skip

    @property
    def learning_weight(self) -> np.ndarray | None:
        """The sampling weights that models learn with, shape (n,), or None."""
        return self.sample_weight if self.study is None else self.sampling_weight

    def without_times(self) -> StudyData:
        """The same where outcomes do not matter: nothing is censored or missing."""
        return replace(self, times=None, seen=None)

    def of_study(self) -> StudyData:
        """The rows of the study alone, with the weights that models learn with."""
        if self.study is None:
            return self
        own = self.rows(np.flatnonzero(self.study))
        return replace(own, study=None, sample_weight=own.sampling_weight, sampling_weight=None)

    def frame(self, values: np.ndarray) -> pd.DataFrame:
        """(n, K) values with the user's rows and one column per treatment."""
        return pd.DataFrame(values, index=self.index, columns=self.treatments)


def _observe(
    Y, T, *, sample_weight=None, groups=None, strata=None, treatments=None, event=None, horizon=None, target=None,
    entry=None, cause=None, missing_outcome=REFUSE, instrument=None, offers=None, study=None,
) -> StudyData:  # fmt: skip
    """Check and encode what was observed; arguments as :meth:`StudyData.of` takes them."""
    if study is not None:
        if instrument is not None:
            raise InputError("An instrument and another population do not go together yet; leave one of them out.")
        asked = {"horizon": horizon, "target": target, "cause": cause, "missing_outcome": missing_outcome}
        own = {"sample_weight": sample_weight, "event": event, "entry": entry}
        return _observe_stacked(Y, T, study, own, groups, strata, treatments, asked)
    if is_structured(Y):
        if event is not None:
            raise InputError("Y is a structured array, which says the times and the events; leave event out.")
        Y, event = split_structured(Y)
    check_outcome_arguments(event, missing_outcome, horizon=horizon, target=target, entry=entry, cause=cause)
    seen = None
    if missing_outcome == WEIGHT:
        Y, seen = _without_missing(Y)
    y = numbers(Y, "Y", remedy=_REMEDY if event is None else "leave these rows out.")
    if not len(y):
        raise InputError("Y has no rows; pass data with at least a few rows per treatment.")
    if np.abs(y.to_numpy()).max() > LARGEST_OUTCOME:
        raise InputError(f"Y holds values beyond {LARGEST_OUTCOME:g}, too large to compute with; rescale it.")
    factors = factors_of(T, treatments)
    arm, labels = treatment_codes(T if factors is None else factors.labels, len(y), treatments)
    if treatments is None and (why := too_many_treatments(labels, len(y))) is not None:
        raise InputError(f"T {why}; group doses or rare treatments into a few, or see DoseRewards.")
    w = weights(sample_weight, len(y))
    if treatments is None:
        refuse_weightless(arm, labels, w)
    clusters = group_codes(groups, len(y))
    offered = None if instrument is None else _instrument(instrument, len(y), offers, labels, w)
    times = None
    if event is not None:
        of_times: dict[str, Any] = {"horizon": horizon, "target": target, "cause": cause, "entry": entry}
        seen_before = treatments is not None
        times = time_to_event(y, event, arm=arm, treatments=labels, weight=w, new_rows=seen_before, **of_times)
    if seen is not None and treatments is None:
        _refuse_hardly_seen(arm, labels, seen)
        refuse_unseen_arms(np.bincount(arm[seen], minlength=len(labels)), labels)
        if offered is not None:
            _refuse_hardly_seen(offered.code, offered.offers, seen, "offer")
            counts = np.bincount(offered.code[seen], minlength=len(offered.offers))
            refuse_unseen_arms(counts, offered.offers, "offer")
    blocks = stratum_codes(strata, len(y))
    cells = None if factors is None else factors.cells
    return StudyData(y.to_numpy(), arm, labels, w, clusters, y.index, blocks, times, seen, offered, factors=cells)


def by_columns(function: Callable[..., R], *before: Any, **arguments: Any) -> R:
    """Call what takes a study with one of these columns, and an estimator of another package with columns.

    Parameters
    ----------
    function : callable
        Such as a bound ``fit``, of this package's estimators or of others.
    *before
        Arguments that stand before the study.
    **arguments
        Columns by their roles, as :meth:`StudyData.of` takes them, and settings.
    """
    if inspect.ismethod(function) and not getattr(function, "takes_study", False):
        return function(*before, **arguments)
    columns = {name: value for name, value in arguments.items() if name in ROLES and value is not None}
    settings = {name: value for name, value in arguments.items() if name not in ROLES}
    return function(*before, StudyData.of(**{"Y": None, "T": None} | columns), **settings)


ROLES = frozenset(inspect.signature(StudyData.of).parameters) - {"rest"} | {each.name for each in fields(StudyData)}


def too_many_treatments(labels: np.ndarray, n: int) -> str | None:
    """Why so many labels in n rows are no treatments to choose from; None if they may be."""
    if len(labels) <= FEW_TREATMENTS:
        return None
    if np.asarray(labels).dtype.kind in "iuf":
        return f"holds {len(labels):,} different numbers, as doses or a covariate do"
    if len(labels) > n / FEW_TREATMENTS:
        return f"holds {len(labels):,} different treatments in {n:,} rows, too few of each to learn from"
    return None


def _instrument(instrument, n: int, offers: np.ndarray | None, treatments: np.ndarray, weight) -> Instrument:
    """Offers as codes; checked against what a score of offers and treatments needs."""
    if len(treatments) != 2:
        raise InputError(
            f"An instrument tells apart two treatments, and T holds {len(treatments)}; join the others, or judge the "
            "offers themselves by passing them as T."
        )
    code, labels = treatment_codes(instrument, n, offers, argument="instrument", what="offer")
    if offers is None:
        if len(labels) > max(FEW_TREATMENTS, n / 2):
            raise InputError(f"instrument holds {len(labels)} different values in {n} rows; group them into a few.")
        refuse_weightless(code, labels, weight, "offer")
    return Instrument(code, labels)


def _observe_stacked(Y, T, study, own: dict[str, Any], groups, strata, treatments, asked: dict[str, Any]) -> StudyData:
    """As :func:`_observe`, of a study and the people of a target in one table.

    ``own`` are columns of which the study's rows alone are read; of ``sample_weight`` all are.
    """
    index = pd.RangeIndex(len(Y)) if is_structured(Y) else as_series(Y, "Y").index
    n = len(index)
    mask = study_mask(study, n, both=treatments is None)
    weight = weights(own["sample_weight"], n)
    part = _observe(
        np.asarray(Y)[mask] if is_structured(Y) else _of_rows(Y, "Y", mask, n),
        _of_rows(T, "T", mask, n),
        sample_weight=None if weight is None else weight[mask],
        treatments=treatments,
        event=_of_rows(own["event"], "event", mask, n),
        entry=_of_rows(own["entry"], "entry", mask, n),
        **asked,
    )
    times = part.times
    if times is not None:
        entry = None if times.entry is None else expanded(times.entry, mask, 0.0)
        time = expanded(times.time, mask, times.horizon)
        times = replace(times, time=time, code=expanded(times.code, mask, 0), entry=entry)
    return StudyData(
        expanded(part.y, mask, 0.0), expanded(part.arm, mask, 0), part.treatments, averaging_weight(mask, weight),
        group_codes(groups, n), index, stratum_codes(strata, n), times,
        None if part.seen is None else expanded(part.seen, mask, True), study=mask, sampling_weight=weight,
        factors=part.factors,
    )  # fmt: skip


def _of_rows(values, argument: str, mask: np.ndarray, n: int) -> pd.Series | pd.DataFrame | None:
    """The study's rows of a column (of several treatments, their frame); gaps of the others have changed no type."""
    if values is None:
        return None
    several = as_pandas(values) if argument == "T" else None
    series = as_series(values, argument) if several is None or several.shape[1] < 2 else arm_column(several)
    if len(series) != n:
        raise InputError(f"{series.name} has {len(series)} rows, but Y has {n}; give one value per row.")
    if several is not None and several.shape[1] > 1:
        return several[mask]
    part = series[mask].infer_objects().rename(getattr(values, "name", None))  # the name that messages add to
    whole = part.dtype.kind == "f" and series.isna().any() and part.notna().all() and (part % 1 == 0).all()
    return part.astype(np.int64) if whole and argument == "T" else part


def check_outcome_arguments(event: Any, missing_outcome: Any, **of_times: Any) -> None:
    """Refuse arguments that have no meaning together; ``of_times``: those that need an event, by name."""
    check_choice(missing_outcome, "missing_outcome", (REFUSE, WEIGHT))
    if event is not None and missing_outcome == WEIGHT:
        raise InputError(
            "missing_outcome='weight' is for outcomes that are numbers; a time that is not known to the end is "
            "censored at the last time at which the row was seen."
        )
    for name, value in of_times.items() if event is None else ():
        if value is not None:
            raise InputError(
                f"{name} is about times to an event; give a study with outcome=TimeToEvent(...), or leave {name} out."
            )


def _without_missing(Y) -> tuple[pd.Series, np.ndarray | None]:
    """Outcomes with zeros in place of missing ones, and which are seen; None if all are."""
    series = as_series(Y, "Y")
    seen = series.notna().to_numpy()
    if seen.all():
        return series, None
    if not seen.any():
        raise InputError(f"{series.name} is missing in all rows; there is nothing to learn from.")
    return series.astype(object).where(seen, 0), seen


def _refuse_hardly_seen(arm: np.ndarray, labels: np.ndarray, seen: np.ndarray, what: str = "treatment") -> None:
    """Treatments that miss outcomes, and have too few others to learn from."""
    known, rows = (np.bincount(codes, minlength=len(labels)) for codes in (arm[seen], arm))
    few = np.flatnonzero((known > 0) & (known < FEWEST_SEEN) & (known < rows))
    if len(few):
        raise InputError(
            f"Only {known[few[0]]} of {rows[few[0]]} outcomes of {what} {labels[few[0]]!s} are seen, too few to "
            f"learn from; leave the {what} out."
        )


def refuse_unseen_arms(n_seen: np.ndarray, labels: np.ndarray, what: str = "treatment") -> None:
    """Treatments without any outcome; ``n_seen`` (K,) has how many outcomes of each are known."""
    unseen = np.flatnonzero(n_seen == 0)
    if len(unseen):
        raise InputError(f"All outcomes of {what} {labels[unseen[0]]!s} are missing; leave the {what} out.")


def outcome_matrix(regression, n: int, treatments: np.ndarray, arm: str = "treatment") -> np.ndarray:
    """Expected outcomes from elsewhere, shape (n, K), in the order of ``treatments``, each of which is an ``arm``.

    Parameters
    ----------
    regression : array, frame or mapping
        Of shape (n, K) with columns in sorted order of the labels; or with labels, as columns or keys, in any order.

    Raises
    ------
    InputError
        If the shape differs, a label is unknown or lacking, or a value is missing or infinite.
    """
    values = by_label(regression, n, treatments, argument="regression", what="expected outcome", arm=arm)
    if values.shape != (n, len(treatments)):
        raise InputError(
            f"regression has shape {values.shape}; it must be ({n}, {len(treatments)}): a row per "
            f"person, a column per {arm}."
        )
    refuse_nonfinite(values, "regression", "give finite numbers.")
    return np.array(values)
