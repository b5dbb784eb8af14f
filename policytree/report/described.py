"""The description of a study: names and units that a report states, and the checked data. No results."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pandas as pd

from policytree.common.calls import StudyLike
from policytree.data.feature_encoder import as_pandas
from policytree.evaluation.formatting import short_unit
from policytree.exceptions import InputError, quoted
from policytree.study.outcomes import Event, MayBeMissing, Number, Outcome
from policytree.study.study import Study, gain_text
from policytree.study_check import StudyCheck, check_study
from policytree.trees.labels import Label, as_labels, complete, labelled_table
from policytree.weighting.completion import unadjusted
from policytree.weighting.study_data import StudyData
from policytree.weighting.target_support import covariate_table
from policytree.weighting.time_to_event.outcome import TimeToEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Names, units, notes and warnings that a report states beside its numbers; all are optional.

    A study says most of them (:meth:`of_study`). They are fields nevertheless: reports are also made of columns, and of
    the stages of a regime, which have no study; and labels, or people, may call by other words what a study names.

    Attributes
    ----------
    source : str
        File or data set.
    treatment, outcome : str
        By default the names of the columns.
    unit : str
        Unit of the outcome.
    cluster, weights : str
        Names of their columns.
    strata : tuple of str
    instrument : str
        Name of the column of offers.
    propensity : str
        Where the propensities come from, such as "known: 0.5 for drug".
    notes : tuple of str
        Defaults that were chosen for the user.
    warnings : tuple of str
        Warnings of the computation.
    command : str
        The command that reproduces this report.
    costs : str
        Costs of treatments in the outcome's unit; values are net of them.
    control : str
        Comparison of treatments, and how it was chosen.
    title : str
        Of the report.
    further : mapping of str to str
        By the key of a section, how to get further results.
    labels : "humanize", path, mapping of str to str or Label, or None
        Labels of columns and of their values: a file with the columns ``name``, ``label``, ``unit`` and ``values``, or
        by column. Trees, tables of covariates and the questionnaire say them; saved trees keep the columns' names.

    Examples
    --------
    >>> from policytree.report.described import About
    >>> About.of({"treatment": "programme", "outcome": "earnings", "unit": "dollars"}).outcome
    'earnings'
    """

    source: str = ""
    treatment: str = ""
    outcome: str = ""
    unit: str = ""
    cluster: str = ""
    weights: str = ""
    strata: tuple[str, ...] = ()
    propensity: str = ""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    command: str = ""
    costs: str = ""
    control: str = ""
    title: str = ""
    further: Mapping[str, str] = field(default_factory=dict)
    labels: Any = None
    instrument: str = ""

    @classmethod
    def of(cls, said: Mapping[str, Any] | About | None) -> About:
        """Make one of a mapping with the names of its attributes.

        Raises
        ------
        InputError
            If a name is none of them.
        """
        if said is None or isinstance(said, About):
            return said or cls()
        known = [each.name for each in fields(cls)]
        unknown = [name for name in said if name not in known] if isinstance(said, Mapping) else [said]
        if unknown:
            raise InputError(f"about must be a mapping with names of {', '.join(known)}; got {quoted(unknown[0])}.")
        return cls(**said)

    def of_study(self, study: Study) -> About:
        """Return a copy in which a study's names and words stand where there are none."""
        kind = study.outcome.known if isinstance(study.outcome, MayBeMissing) else study.outcome
        met = f" = {kind.value}" if isinstance(kind, Event) else ""
        own = About(
            source=study.name, treatment=study.treatment.column, outcome=study.outcome.column + met, unit=study.unit,
            cluster=study.cluster or "", weights=study.weights or "", strata=study.strata,
            propensity=study.propensity_text, notes=study.notes, costs=study.costs_text,
            control="" if study.control is None else str(study.control),
            instrument="" if study.observed.instrument is None else study.treatment.assigned,
        )  # fmt: skip
        said = {each.name: getattr(self, each.name) for each in fields(self)}
        return replace(own, **{name: value for name, value in said.items() if value or name == "labels"})

    def named_after(self, data: StudyData, columns: Collection[str] = ()) -> About:
        """Return a copy that has the columns' names where names are missing; a structured array has none.

        Labels may name ``columns`` beside those of the data.
        """
        usual, treatment = "outcome" if data.times is None else "time", column_names(data.T)
        named = replace(
            self, outcome=self.outcome or str(data.name or usual), treatment=self.treatment or treatment or "treatment"
        )
        table = covariate_table((_frame(data.X), None if data.W is None else _frame(data.W)))
        return named.in_labels(table, (treatment,), (*columns, str(data.name)))

    def in_labels(self, table: pd.DataFrame, treatments: Sequence[str], others: Collection[str]) -> About:
        """Return a copy in the words of labels, which may be of a table's columns, of treatments and others.

        Raises
        ------
        InputError
            If labels are of no column, of values that are not shown, or of values of a treatment.
        """
        if self.labels is None:
            return self
        given = as_labels(self.labels)
        for treatment in (self.treatment, self.instrument, *treatments):
            if given.get(treatment, Label()).values:
                what = "offers" if treatment == self.instrument else "treatment"
                raise InputError(
                    f"labels name values of the {what} {quoted(treatment)}, but results call treatments as the data "
                    "did: write these words into the column before, as policytree design --labels does."
                )
        name, _, met = (self.outcome, "", "") if self.outcome in given else self.outcome.partition(" = ")
        own = {name, self.treatment, self.cluster, self.weights, self.instrument, *self.strata, *treatments}
        of_outcome = given.get(name, Label())

        def said(column: str) -> str:
            return given.get(column, Label()).text or column

        return replace(
            self,
            outcome=(of_outcome.text or name) + (f" = {of_outcome.of(met)}" if met else ""),
            unit=self.unit or of_outcome.unit,
            treatment=said(self.treatment),
            cluster=said(self.cluster),
            weights=said(self.weights),
            instrument=said(self.instrument),
            strata=tuple(map(said, self.strata)),
            labels=complete(given, table, {*own, *others}),
        )

    @property
    def units(self) -> dict[str, str]:
        """Units of columns that have one, by the labels that name it."""
        return {str(label): label.unit for label in (self.labels or {}).values() if label.unit}

    def called(self, column: str) -> str:
        """Return the label of a column, or of one of its values, such as "town=A"."""
        if self.labels is None:
            return column
        if column in self.labels:
            return str(self.labels[column])
        name, _, value = column.partition("=")
        return f"{self.labels[name]}={self.labels[name].of(value)}" if name in self.labels else column


def column_names(T: Any) -> str:
    """The name of a column of treatments, or of several; "" without any."""
    frame = as_pandas(T)
    return str(getattr(T, "name", None) or "") if frame is None else " and ".join(map(str, frame.columns))


@dataclass(frozen=True, slots=True, eq=False)
class Described:
    """A study as a report sees it: what was observed, with words for it, and what the data check found.

    Attributes
    ----------
    about : About
    observed : StudyData
        Data as given: times are times, missing outcomes are missing.
    seen : StudyData
        The same with outcomes that are known for everybody: means of arms are areas under their curves of Kaplan and
        Meier, or means of the outcomes that are not missing (:func:`policytree.weighting.completion.unadjusted`).
    X : DataFrame of shape (n, p)
    W : DataFrame of shape (n, q), or None
    direction : {"maximize", "minimize"}
    check : StudyCheck
    kind : Outcome
        It names the average outcome.
    by_lot : bool
        Whether nothing but chance decided about treatments, as far as somebody said so.
    """

    about: About
    observed: StudyData
    seen: StudyData
    X: pd.DataFrame
    W: pd.DataFrame | None
    direction: str
    check: StudyCheck
    kind: Outcome
    by_lot: bool = False

    @classmethod
    def of(
        cls, study: StudyLike, about: Mapping[str, Any] | About | None = None, direction: str | None = None
    ) -> Described:
        """A study, or columns in its place; what ``about`` leaves open is said by the study, if it has names.

        Raises
        ------
        InputError
            If they cannot be used.
        """
        told, data, columns = About.of(about), study.data, list[str]()
        kind: Outcome = Number(str(data.name or "outcome"))
        if isinstance(study, Study):
            kind = study.outcome
            told, direction, columns = told.of_study(study), study.ways.way, study.columns
            data = study.observed  # its own rows are described
        return cls(
            told.named_after(data, columns), data.arrays(), unadjusted(data.arrays()), _frame(data.X),
            None if data.W is None else _frame(data.W), direction or "maximize", check_study(data), kind,
            data.randomized is not False and (bool(data.randomized) or data.propensity is not None),
        )  # fmt: skip

    @property
    def covariates(self) -> pd.DataFrame:
        """Columns that the rule may use and those adjusted for beside them, each once, by its label."""
        table = covariate_table((self.X, self.W))
        return table if self.about.labels is None else labelled_table(table, self.about.labels)

    @property
    def better(self) -> str:
        """The word for better outcomes."""
        return "higher" if self.direction == "maximize" else "lower"

    @property
    def times(self) -> TimeToEvent | None:
        """Times to an event; None where outcomes are numbers."""
        return self.observed.times

    @property
    def missing(self) -> np.ndarray | None:
        """Rows whose outcome is missing, (n,) bool; None if no outcome is."""
        return None if self.observed.seen is None else ~self.observed.seen

    @property
    def by_offers(self) -> bool:
        """Whether people were offered what they could refuse: values are then gains over the first treatment."""
        return self.observed.instrument is not None

    @property
    def assigned(self) -> StudyData:
        """Outcomes as in ``seen`` by what was assigned: offers where there are some, else treatments."""
        return unadjusted(self.observed.by_offer()) if self.by_offers else self.seen

    @property
    def what(self) -> str:
        """The word for what was assigned: "treatment", or "offer"."""
        return "offer" if self.by_offers else "treatment"

    @property
    def limits(self) -> tuple[float, float]:
        """Between which every value lies: the least and the largest outcome, or gain."""
        low, high = self.observed.limits
        return (low - high, high - low) if self.by_offers else (low, high)

    @property
    def value(self) -> str:
        """The value of rules in words: ``mean_outcome``, or with an instrument the gain in it."""
        return gain_text(self.mean_outcome, self.observed) if self.by_offers else self.mean_outcome

    @property
    def counts_people(self) -> bool:
        """Whether outcomes are zeros and ones, so that their mean is a share of people."""
        y = self.observed.y
        return self.times is None and bool(np.isin(y[np.isfinite(y)], (0.0, 1.0)).all())

    @property
    def met(self) -> str:
        """The event that people are counted with: the outcome as somebody called it, or the value of its column."""
        if self.times is not None:
            return self.counted.outcome
        outcome = self.about.outcome
        return f"{outcome} = 1" if outcome == str(self.observed.name or "outcome") else outcome

    @property
    def mean_outcome(self) -> str:
        """The average outcome in words, such as "mean score" or "mean days up to 1,000 days"."""
        about = self.about
        if self.counts_people:
            return f"share of people with {self.met}"
        if self.times is not None:
            return self.times.described(about.outcome, about.unit)
        return self.kind.mean(self.observed, about.outcome)

    @property
    def aim(self) -> str:
        """The aim of a rule, such as "the highest mean score (points)"."""
        return f"the {'highest' if self.direction == 'maximize' else 'lowest'} {self.aim_value}"

    @property
    def aim_value(self) -> str:
        """The name of the value, with its unit."""
        counted = self.times is not None or self.counts_people  # in a unit of its own
        return f"{self.value} ({self.about.unit})" if self.about.unit and not counted else self.value

    @property
    def are_shares(self) -> bool:
        """Whether values are shares of people with or without an event up to the horizon, or less their costs."""
        return self.times is not None and not self.times.target.per_horizon

    @property
    def counted(self) -> About:
        """Names for a first screen, where the outcome of shares is what people are counted with."""
        if self.times is None or not self.are_shares or self.about.costs:
            return self.about
        event = "no event" if self.times.target.free else "the event"
        return replace(self.about, outcome=f"{event} up to {self.times.until(self.about.unit)}")

    @property
    def short_unit(self) -> str:
        """The unit of differences; shares of people have none, whatever that of the time is."""
        return "" if self.are_shares else short_unit(self.about.unit)

    @property
    def value_unit(self) -> str:
        """The unit of values, such as "points" or "days of 1,000"; "" if nobody said it."""
        unit = self.about.unit
        if self.times is None or (self.times.target.per_horizon and not unit):
            return unit
        return self.times.value_unit(unit)


def _frame(table: Any) -> pd.DataFrame:
    """A table as a frame with text names."""
    frame = as_pandas(table)
    if frame is None:
        array = np.asarray(table)
        frame = pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])])
    return frame.set_axis([str(name) for name in frame.columns], axis=1)
