"""The roles of the user's columns: from a table and options to the arguments of an estimator."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from policytree.cli.limits import Limits, limits_of, notes_of_limits
from policytree.cli.outcomes import (
    MOST_LABELS,
    check_outcome_options,
    event_outcome,
    notes_of_missing,
    notes_of_offers,
    notes_of_times,
    outcome_arguments,
    refuse_impossible_times,
    require_outcome_columns,
)
from policytree.cli.propensities import propensity_from, shares_text
from policytree.cli.reading import Reading
from policytree.cli.reading import remedy as reading_remedy
from policytree.cli.tables import AS_IT_IS, by_treatment, column_names, read_table, require_column
from policytree.common.number_texts import OTHER, UNITS, number_of, unread
from policytree.common.option_words import comma_list, typed_list
from policytree.data.combined_treatments import CombinedTreatments, combine_frame
from policytree.data.feature_encoder import object_numbers
from policytree.datasets import Dataset, load_dataset
from policytree.evaluation.estimates import DIRECTIONS
from policytree.evaluation.instruments.offer_rule import net_of_uptake
from policytree.exceptions import InputError, quoted
from policytree.report import material as report
from policytree.report.material import About, gain_text
from policytree.report.study_report import make_study
from policytree.serialization.labels import label_to_json
from policytree.study.columns import default_covariates, holds_tables
from policytree.study_check import Finding, findings_beside
from policytree.study_check.directions import direction_of
from policytree.study_check.findings import by_severity
from policytree.weighting.observed import WEIGHT, Observed, observe, too_many_treatments
from policytree.weighting.target_arguments import with_target

UNNAMED = (
    "Without --covariates, every column without another role is a covariate: they must be known before treatment is "
    "chosen."
)
# Options that say how outcomes and treatments were observed, beside --event; a saved tree keeps them by these names.
OUTCOME_OPTIONS = ("event_column", "horizon", "target", "cause", "entry_column", "missing_outcome", "instrument")


@dataclass(frozen=True, slots=True)
class Roles:
    """The options that give columns their roles; None where the user gave none."""

    treatment: str | None = None
    outcome: str | None = None
    covariates: str | None = None
    confounders: str | None = None
    propensity: str | None = None
    cluster: str | None = None
    weights: str | None = None
    direction: str | None = None
    strata: str | None = None
    exclude: str | None = None
    event: str | None = None
    arm_cost: tuple[str, ...] = ()
    event_column: str | None = None
    horizon: float | None = None
    target: str | None = None
    cause: str | None = None
    entry_column: str | None = None
    missing_outcome: str | None = None
    instrument: str | None = None
    offer_cost: tuple[str, ...] = ()
    taker_cost: float | None = None
    limit: tuple[str, ...] = ()
    at_least: tuple[str, ...] = ()
    also: str | None = None
    parity: tuple[str, ...] = ()
    value_parity: tuple[str, ...] = ()
    worst_group: str | None = None
    subgroups: str | None = None
    randomized: bool = False
    arms: tuple[str, ...] = ()  # labels of combined treatments, where a tree knows them

    @property
    def outcome_options(self) -> dict[str, Any]:
        """How outcomes and treatments were observed, by the names of ``OUTCOME_OPTIONS``."""
        return {name: getattr(self, name) for name in OUTCOME_OPTIONS}


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """A table whose columns have their roles.

    Attributes
    ----------
    source : str
        File or data set.
    frame : DataFrame
    treatment, outcome, unit, direction : str
        ``unit`` says what the outcome measures, "" if unknown.
    covariates, confounders : tuple of str
    cluster, weights : str or None
    strata : tuple of str
        Columns of the blocks within which treatment was assigned.
    arm_costs : mapping of label to float or str
        What treatments cost in the outcome's unit: numbers, or names of columns.
    offer_costs : mapping of label to float or str
        The same of offers, taken or not.
    taker_cost : float
        What everybody who takes the second treatment costs, where there is an instrument; outcomes that models are
        fitted to are net of it.
    event : str or None
        The label of a text outcome that ``frame`` has as 1; where outcomes are times, the value of the event column
        that stands for the event.
    stated_direction : str or None
        Which outcomes are better, where the user, or the built-in study, said it.
    propensity_option : str or None
        Known probabilities of treatment, as the command line takes them.
    propensity_columns : tuple of str
        Columns that it names.
    propensity : mapping, Series, DataFrame, float or None
        As ``DRPolicyTree.fit`` takes it.
    propensity_text : str
        Where it comes from.
    observed : Observed
        Outcome, arms, weights and clusters, checked.
    outcome_options : mapping
        By ``OUTCOME_OPTIONS``, how outcomes were observed; the horizon and the target of times are those that hold.
    people : DataFrame, or None
        Covariates and confounders of the people whom the rule is for (the target), if they are not those of the study.
    outcome_arguments : mapping
        The same as ``RewardEstimator.fit`` takes it, columns in place of their names; empty where all is known.
    notes : tuple of str
        What was decided without being asked.
    limits : Limits
        Further outcomes and columns of groups.
    combined : CombinedTreatments, or None
        Where --treatment names several columns; ``frame`` has their combination in place of them.
    randomized : bool
        Whether treatments (with an instrument: offers) were drawn by lot: chances are given, or it is a built-in trial.
    reading : Reading
        How the file was read.
    """

    source: str
    frame: pd.DataFrame
    treatment: str
    outcome: str
    unit: str
    direction: str
    covariates: tuple[str, ...]
    confounders: tuple[str, ...]
    cluster: str | None
    weights: str | None
    propensity: object
    propensity_text: str
    observed: Observed
    notes: tuple[str, ...] = field(default=())
    strata: tuple[str, ...] = ()
    arm_costs: Mapping[Any, float | str] = field(default_factory=dict)
    event: str | None = None
    stated_direction: str | None = None
    propensity_option: str | None = None
    propensity_columns: tuple[str, ...] = ()
    outcome_options: Mapping[str, Any] = field(default_factory=dict)
    outcome_arguments: Mapping[str, Any] = field(default_factory=dict)
    offer_costs: Mapping[Any, float | str] = field(default_factory=dict)
    taker_cost: float = 0.0
    people: pd.DataFrame | None = None
    limits: Limits = field(default_factory=Limits)
    combined: CombinedTreatments | None = None
    randomized: bool = False
    reading: Reading = AS_IT_IS

    @property
    def mean_outcome(self) -> str:
        """What values are, in words: "mean y", or what becomes of times to an event, such as "mean days up to 90".

        With an instrument they are gains over the first treatment.
        """
        times = self.observed.times
        mean = f"mean {self.outcome}" if times is None else times.described(self.outcome)
        return mean if self.instrument is None else gain_text(mean, self.observed)

    @property
    def instrument(self) -> str | None:
        """The column of offers; None if treatments are taken to be as good as given by chance."""
        return self.outcome_options.get("instrument")

    @property
    def assigned(self) -> Observed:
        """What was observed, by what was assigned: offers where there are some, else treatments."""
        return self.observed if self.observed.instrument is None else self.observed.by_offer()

    @property
    def X(self) -> pd.DataFrame:
        """What the tree may split on, (n, p)."""
        return self.frame[list(self.covariates)]

    @property
    def T(self) -> pd.Series | pd.DataFrame:
        """What every row got: a column, or one for each of the treatments that were combined."""
        labels = self.frame[self.treatment]
        return labels if self.combined is None else self.combined.cells.loc[labels].set_axis(labels.index)

    def described(self, command: str = "", control: str = "") -> report.Study:
        """The study as a report sees it, its data checked; ``command`` and ``control`` as in :class:`About`."""
        data = self.fit_arguments()
        about = About(
            source=self.source, treatment=self.treatment, outcome=self.outcome, unit=self.unit,
            cluster=self.cluster or "", weights=self.weights or "", strata=self.strata,
            propensity=self.propensity_text, notes=self.notes, command=command,
            control=control,
            costs=self._costs_text(), instrument=self.instrument or "",
        )  # fmt: skip
        names = ("X", "W", "groups", "strata", "sample_weight")
        described = make_study(
            data["Y"],
            data["T"],
            **{name: data[name] for name in names},
            about=about,
            direction=self.direction,
            known_propensity=self.propensity is not None,
            **self.outcome_arguments,
        )
        check = described.check
        findings = by_severity([*check.findings, *self._findings_beside()])
        return replace(described, check=replace(check, findings=findings))

    def _costs_text(self) -> str:
        """What treatments, offers and takers cost, in words."""
        of_offers = (f"offer {label} {cost}" for label, cost in self.offer_costs.items())
        takers = [f"{self.taker_cost:g} per taker of {self.observed.treatments[1]}"] if self.taker_cost else []
        return ", ".join([*(f"{label} {cost}" for label, cost in self.arm_costs.items()), *takers, *of_offers])

    def _findings_beside(self) -> list[Finding]:
        """What the check cannot see in covariates: the columns left out."""
        taken = {self.treatment, self.outcome, self.cluster, self.weights, *self.covariates, *self.confounders}
        taken |= {self.outcome_options[name] for name in ("event_column", "entry_column", "instrument")}
        taken |= {*self.limits.outcomes, *self.limits.subgroups}
        others = [name for name in self.frame.columns if name not in taken and not holds_tables(self.frame[name])]
        seen = self.observed
        event = None if seen.times is None else seen.times.code
        how: dict[str, Any] = {"clustered": self.cluster is not None, "event": event}
        return [*findings_beside(self.frame[others], seen.y, self.outcome, **how)]

    def fit_arguments(self) -> dict:
        """Arguments of nuisance models: ``Y, T, *, X, W, propensity, sample_weight, groups, strata, event, ...``."""
        frame = self.frame
        return {
            "Y": net_of_uptake(frame[self.outcome], self.observed, self.taker_cost, self.direction),
            "T": self.T,
            "X": self.X,
            "W": frame[list(self.confounders)] if self.confounders else None,
            "propensity": self.propensity,
            "sample_weight": None if self.weights is None else frame[self.weights],
            "groups": None if self.cluster is None else frame[self.cluster],
            "strata": frame[list(self.strata)] if self.strata else None,
            **self.outcome_arguments,
            **self.target_arguments(),
        }

    def target_arguments(self) -> dict[str, pd.DataFrame]:
        """``target_X`` and ``target_W`` as fits take them; nothing if the rule is for people like the study's."""
        if self.people is None:
            return {}
        tables = {"target_X": self.people[list(self.covariates)]}
        return tables | ({"target_W": self.people[list(self.confounders)]} if self.confounders else {})

    def for_people(self, people: pd.DataFrame, option: str) -> Study:
        """The same study, and a rule for other people.

        Raises
        ------
        InputError
            If their table lacks a column, has no rows, or holds values that the study does not know.
        """
        if not len(people):
            raise InputError(f"{option} leaves nobody of the target; give a row for every person whom the rule is for.")
        lacking = [name for name in (*self.covariates, *self.confounders) if name not in people.columns]
        if lacking:
            raise InputError(
                f"The people of the target ({option}) have no column {lacking[0]!r}, which is a covariate; add it, or "
                f"leave it out with --exclude {typed_list(lacking[:1])}."
            )
        note = (
            f"The rule is for the {len(people):,} people of the target ({option}): values are theirs, and effects are "
            f"learnt from the {self.observed.n:,} rows of the study."
        )
        both = replace(self, people=people, notes=(*self.notes, note))
        try:
            with_target(both.fit_arguments())
        except InputError as error:
            raise InputError(str(error).replace("target_X", option).replace("target_W", option)) from error
        return both

    def learner_arguments(self, budget_costs: Mapping[str, float | str] | None = None) -> dict:
        """The same for what learns a tree: with what treatments cost, and what limits are about, if there are some."""
        costs = {"sample_treatment_costs": self.costs(self.arm_costs), "budget_costs": self.costs(budget_costs or {})}
        given = {name: values for name, values in costs.items() if values}
        return given | self.fit_arguments() | self.limits.fit_arguments(self.frame)

    def costs(self, named: Mapping[Any, float | str]) -> dict:
        """Costs by treatment, the columns in place of their names."""
        return {label: self.frame[cost] if isinstance(cost, str) else cost for label, cost in named.items()}


def study_from_file(path: str, roles: Roles, reading: Reading = AS_IT_IS) -> Study:
    """Read a file and give its columns their roles.

    Raises
    ------
    InputError
        If something is missing or cannot be used.
    """
    frame, notes = read_table(path, reading)
    try:
        reading.refuse_unknown_columns(frame.columns)
        return study_of_table(path, frame, roles, reading, notes)
    except InputError as error:
        of_sheets = [note for note in notes if "--sheet" in note]  # perhaps another sheet was meant
        raise InputError(" ".join([str(error), *of_sheets])) from error


def study_of_table(
    path: str,
    frame: pd.DataFrame,
    roles: Roles,
    reading: Reading = AS_IT_IS,
    notes: tuple[str, ...] = (),
    combined: CombinedTreatments | None = None,
) -> Study:
    """Give the columns of a file that was read their roles; see :func:`study_from_file`.

    ``combined``: of several treatments that :func:`combined_in` has put together before.
    """
    asked = {"--treatment": roles.treatment, "--outcome": roles.outcome}
    missing = [option for option, name in asked.items() if name is None]
    if missing:
        what = "is missing; name the column, one" if len(missing) == 1 else "are missing; name the columns, two"
        raise InputError(f"{' and '.join(missing)} {what} of {', '.join(frame.columns[:20])}.")
    if combined is None:
        frame, roles, combined = combined_in(frame, roles)
    frame, more = percentages(frame, roles, reading)
    study = _build(path, frame, roles, combined=combined)
    return replace(study, notes=(*notes, *more, *study.notes), reading=reading)


def combined_in(frame: pd.DataFrame, roles: Roles) -> tuple[pd.DataFrame, Roles, CombinedTreatments | None]:
    """The table with one column in place of several that --treatment names, roles that name it, and what it combines.

    Raises
    ------
    InputError
        If one of the columns is not there, has gaps, or has another role as well.
    """
    if roles.treatment is None or roles.treatment in frame.columns:
        return frame, roles, None
    names = column_names(roles.treatment, "--treatment", frame)
    if len(names) < 2:
        return frame, replace(roles, treatment=names[0]), None
    _refuse_other_roles(names, roles)
    for name in names:
        refuse_gaps(name, "--treatment", frame)
    found = combine_frame(frame[names], roles.arms or None)
    title = " and ".join(names)
    while title in frame.columns:
        title += " (combined)"
    return frame.drop(columns=names).assign(**{title: found.labels}), replace(roles, treatment=title), found


def _refuse_other_roles(names: list[str], roles: Roles) -> None:
    """Refuse options that name one of several treatments: its column is not among the others any more."""
    single = ("outcome", "cluster", "weights", "event_column", "entry_column", "instrument")
    listed = ("covariates", "confounders", "strata", "exclude", "also", "subgroups")
    texts = {name: [text] for name in single if (text := getattr(roles, name)) is not None}
    texts |= {name: next(csv.reader([text], skipinitialspace=True), []) for name in listed
              if (text := getattr(roles, name)) is not None}  # fmt: skip
    for option, found in texts.items():
        for name in names:
            _refuse_taken([text.strip() for text in found], f"--{option.replace('_', '-')}", {"treatment": name})


def percentages(frame: pd.DataFrame, roles: Roles, reading: Reading) -> tuple[pd.DataFrame, list[str]]:
    """Columns of texts such as 5.1 % as numbers, 5.1, but for those whose values are labels; and what was done."""
    groups = [text.rpartition("=")[0] for text in (*roles.parity, *roles.value_parity)]
    labels = {roles.treatment, roles.instrument, roles.event_column, roles.cluster, roles.worst_group, *groups}
    labels |= {*(roles.strata or "").split(","), *(roles.subgroups or "").split(",")}
    if roles.event is not None:
        labels.add(roles.outcome)
    found: dict[str, pd.Series] = {}
    for name, column in frame.items():
        texts = column.dtype == object or isinstance(column.dtype, pd.StringDtype)
        if texts and name not in labels and (numbers := reading.percents(column)) is not None:
            found[str(name)] = numbers
    notes = [
        f"Column {name!r} holds percentages, which were read as numbers: {frame[name].dropna().iloc[0]!r} is "
        f"{column.dropna().iloc[0]:g}."
        for name, column in found.items()
    ]
    return frame.assign(**found) if found else frame, notes


def study_from_dataset(name: str, data_dir: str | None, roles: Roles) -> Study:
    """Load a built-in study; what the user's options say comes first.

    Raises
    ------
    InputError
        If there is no such study, or a column is missing, has two roles or cannot be used.
    """
    dataset = load_dataset(name, data_dir=data_dir)
    frame, roles, combined = combined_in(dataset.frame, roles)
    if combined is not None:
        covariates, confounders = (
            tuple(name for name in names if name in frame) for names in (dataset.covariates, dataset.confounders)
        )
        dataset = replace(dataset, frame=frame, covariates=covariates, confounders=confounders)
    own_treatment = roles.treatment in (None, dataset.treatment)
    outcome = roles.outcome or dataset.outcome
    options = roles.outcome_options
    if options["event_column"] is None and roles.event is None and outcome in dataset.event:
        own = {"event_column": dataset.event, "horizon": dataset.horizon, "entry_column": dataset.entry}
        options |= {name: named.get(outcome) for name, named in own.items() if options[name] is None}
    if options["instrument"] is None and own_treatment:
        options |= {"instrument": dataset.instrument}
    own_direction = roles.event is None and roles.event_column is None and roles.cause is None
    named = replace(roles, treatment=roles.treatment or dataset.treatment, outcome=outcome)
    covariates, confounders = _own_covariates(dataset, named)
    merged = Roles(
        treatment=named.treatment,
        outcome=outcome,
        covariates=roles.covariates or _joined(covariates),
        confounders=roles.confounders or _joined(dataset.confounders if roles.covariates else confounders),
        propensity=roles.propensity,
        cluster=roles.cluster or dataset.groups,
        weights=roles.weights,
        strata=roles.strata,
        direction=roles.direction or (dataset.direction if own_direction else None),
        exclude=roles.exclude,
        event=roles.event,
        randomized=roles.randomized,
        arm_cost=roles.arm_cost,
        offer_cost=roles.offer_cost,
        taker_cost=roles.taker_cost,
        limit=roles.limit,
        at_least=roles.at_least,
        also=roles.also,
        parity=roles.parity,
        value_parity=roles.value_parity,
        worst_group=roles.worst_group,
        subgroups=roles.subgroups,
        **options,
    )
    known = dataset.propensity if own_treatment and roles.propensity is None else None
    if roles.covariates is None:
        merged = replace(merged, exclude=None)  # done
    return _build(name, dataset.frame, merged, dataset, known, combined)


def _own_covariates(dataset: Dataset, roles: Roles) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Covariates of a built-in study but for what has another role, or none; and its confounders.

    Covariates whose groups are compared become confounders.
    """
    limits = limits_of(roles, dataset.frame)
    names = _without(dataset.covariates, roles.exclude, dataset.frame)
    taken = {roles.instrument, roles.treatment, *limits.outcomes}
    known = tuple(name for name in names if name not in taken)
    confounders = tuple(name for name in dataset.confounders if name not in limits.outcomes)
    moved = tuple(name for name in limits.unseen if name in known)
    return tuple(name for name in known if name not in moved), (*confounders, *moved)


def _joined(names: tuple[str, ...]) -> str | None:
    return ",".join(names) or None


def _build(
    source, frame, roles: Roles, dataset: Dataset | None = None, known=None, combined: CombinedTreatments | None = None
) -> Study:
    if roles.direction not in (*DIRECTIONS, None):
        raise InputError(f"--direction must be maximize or minimize; got {quoted(roles.direction)}.")
    for role in ("treatment", "outcome", "cluster", "weights"):
        if getattr(roles, role) is not None:
            require_column(getattr(roles, role), f"--{role}", frame)
    assert roles.treatment is not None and roles.outcome is not None, "asked for by both callers"
    _refuse_taken([roles.outcome], "--outcome", {"treatment": roles.treatment})
    options = roles.outcome_options
    check_outcome_options(outcome=roles.outcome, event=roles.event, direction=roles.direction, **options)
    of_times = require_outcome_columns(options, frame)
    for option, name in of_times.items():
        taken = {"treatment": roles.treatment, "outcome": roles.outcome, "cluster": None, "weights": None}
        if option == "--instrument":
            taken |= {"cluster": roles.cluster, "weights": roles.weights, "event": roles.event_column}
        _refuse_taken([name], option, {role: column for role, column in taken.items() if column is not None})
    _refuse_without_offers(roles)
    gapless = {f"--{role}": getattr(roles, role) for role in ("treatment", "outcome", "cluster", "weights")} | of_times
    for option, name in gapless.items():
        if option != "--outcome" or roles.missing_outcome != WEIGHT:
            refuse_gaps(name, option, frame, may_weight=option == "--outcome" and roles.event_column is None)
    refuse_too_many_labels(roles.treatment, "--treatment", frame)
    for option, name in gapless.items():
        if option in ("--weights", "--entry-column") or (option == "--outcome" and roles.event is None):
            refuse_no_numbers(name, option, frame)
    meaning = ""
    if roles.event_column is None:
        _refuse_constant(frame[roles.outcome])
        outcome, meaning = event_outcome(frame[roles.outcome], roles.event, roles.direction)
        frame = frame.assign(**{roles.outcome: outcome})
    else:
        refuse_impossible_times(frame, roles.outcome, roles.entry_column)
    ways = direction_of(roles.direction, roles.outcome, times=roles.event_column is not None)
    direction = ways.way
    how = outcome_arguments(frame, options, roles.event)
    strata = tuple(column_names(roles.strata, "--strata", frame))
    observed = observe(
        frame[roles.outcome],
        frame[roles.treatment],
        strata=frame[list(strata)] if strata else None,
        sample_weight=None if roles.weights is None else frame[roles.weights],
        groups=None if roles.cluster is None else frame[roles.cluster],
        **how,
    )
    told: list[str] = []
    if observed.times is not None:
        told = notes_of_times(observed.times, roles.outcome, options, roles.event, roles.direction)
        how["horizon"], how["target"] = observed.times.horizon, observed.times.target.name  # for other rows as well
        options |= {"horizon": how["horizon"], "target": how["target"]}
    elif observed.seen is not None:
        told = notes_of_missing(observed.seen, observed.arm, observed.treatments, roles.outcome)
    if observed.instrument is not None:
        told += notes_of_offers(observed, str(roles.instrument), roles.outcome, roles.taker_cost or 0.0)
    assigned = observed.treatments if observed.instrument is None else observed.instrument.offers
    what = "treatment" if observed.instrument is None else "offer"
    given = observed.arm if observed.instrument is None else observed.instrument.code
    shares = np.bincount(given, minlength=len(assigned)) / len(given)
    propensity, text, columns = propensity_from(roles.propensity, frame, assigned, what, combined, shares)
    if combined is not None and isinstance(propensity, dict):
        known = propensity  # by label, whether they were given so or for each treatment
    if known is not None:
        propensity, text = known, "known: " + shares_text(known)
    _refuse_unsaved(roles.treatment, frame)
    chances = tuple(columns)
    arm_costs = _costs_by_label(roles.arm_cost, "arm_cost", frame, observed.treatments, "treatment")
    offer_costs = _costs_by_label(roles.offer_cost, "offer_cost", frame, assigned, "offer")
    taker_cost = roles.taker_cost or 0.0
    _refuse_costs_of_times(taker_cost, observed)
    columns += [cost for cost in (*arm_costs.values(), *offer_costs.values()) if isinstance(cost, str)]
    limits = limits_of(roles, frame)
    columns += list(limits.outcomes)
    covariates, confounders, notes = features_of(frame, roles, columns, limits)
    notes = [*told, *notes]
    for name in covariates:
        _refuse_unsaved(name, frame)
    for name in (*covariates, *confounders):
        if pd.api.types.is_float_dtype(frame[name]):
            refuse_infinite(frame[name], "a covariate")
    text = text or "estimated from the covariates" + (" and confounders" if confounders else "")
    unit = meaning or ("" if dataset is None else dataset.outcomes.get(roles.outcome, ""))
    if observed.times is not None and dataset is not None:
        unit = unit.split(" ")[0]  # "years from registration to death"
    in_trial = dataset is not None and dataset.randomized and roles.treatment == dataset.treatment
    return Study(
        str(source), frame, roles.treatment, roles.outcome, unit, direction, tuple(covariates), tuple(confounders),
        roles.cluster, roles.weights, propensity, text, observed, tuple(notes), strata, arm_costs, roles.event,
        roles.direction, _option_of(roles.propensity, known), chances, options, how, offer_costs,
        taker_cost, limits=limits, combined=combined, randomized=propensity is not None or in_trial or roles.randomized,
    )  # fmt: skip


def _refuse_without_offers(roles: Roles) -> None:
    """Costs that go with offers, and those that do not."""
    if roles.instrument is None:
        for option, given in (("--offer-cost", roles.offer_cost), ("--taker-cost", roles.taker_cost)):
            if given not in (None, ()):
                raise InputError(
                    f"{option} is about offers that people may refuse; name the column of what each row was offered by "
                    f"--instrument, or leave {option} out."
                )
    elif roles.arm_cost:
        raise InputError(
            "--arm-cost would be paid for everybody, but with --instrument only those who take the treatment cost "
            "something; give --taker-cost, and --offer-cost for what the offers cost."
        )


def _refuse_costs_of_times(taker_cost: float, observed: Observed) -> None:
    if not np.isfinite(taker_cost):
        raise InputError(f"--taker-cost must be a finite number; got {taker_cost}.")
    if taker_cost and observed.times is not None:
        raise InputError(
            "--taker-cost cannot be subtracted from times to an event, which may be censored; leave it out, or give "
            "--offer-cost."
        )


def _option_of(asked: str | None, known: Mapping[Any, float] | None) -> str | None:
    """What --propensity would say of the probabilities of a built-in study."""
    return asked if known is None else comma_list(f"{label}={share!r}" for label, share in known.items())


def refuse_gaps(name: str | None, option: str, frame: pd.DataFrame, *, may_weight: bool = False) -> None:
    """Refuse a column with gaps.

    Rows are counted as the file has them, where the first error would name a place in memory.
    """
    gaps = np.empty(0, dtype=int) if name is None else np.flatnonzero(frame[name].isna())
    if len(gaps) == len(frame):
        raise InputError(f"Column {name!r} ({option}) has no value in any row; name another column.")
    if len(gaps):
        weigh = ", or weight for who is missing, --missing-outcome weight" if may_weight else ""
        raise InputError(
            f"Column {name!r} ({option}) has no value in {len(gaps):,} of {len(frame):,} rows, the first of them row "
            f"{gaps[0] + 1:,} below the header; leave these rows out{weigh}.{_no_row(frame, gaps)}"
        )


def _no_row(frame: pd.DataFrame, gaps: np.ndarray) -> str:
    """A sentence where the rows with gaps look like none: a line of units, or notes below the table.

    Notes are the last rows and hold next to nothing; units are the first, and the only text among numbers.
    """
    first = frame.iloc[0].dropna()
    texts = [cell for cell in first if isinstance(cell, str) and number_of(cell) is None]
    if len(gaps) == 1 and gaps[0] == 0 and len(first) == len(texts) > 0:
        return f" It may be a line of units, or a second header ({quoted(texts[0])}): delete it."
    last = gaps[0] == len(frame) - len(gaps)
    filled = frame.iloc[gaps].notna().sum(axis=1)
    if not last or frame.shape[1] < 3 or (filled > frame.shape[1] / 3).any():
        return ""
    return " They stand at the end and hold next to nothing, as notes below a table do: delete these lines."


def _refuse_constant(outcome: pd.Series) -> None:
    values = outcome.dropna().unique().tolist()
    if len(values) == 1:
        raise InputError(
            f"Column {outcome.name!r} (--outcome) is {quoted(values[0])} in all rows, so that no treatment is better "
            "by it; name another column."
        )


def refuse_too_many_labels(name: str, option: str, frame: pd.DataFrame) -> None:
    """Refuse a treatment with so many labels that it is a dose, a covariate or an id."""
    labels = frame[name].dropna().unique()
    if (why := too_many_treatments(labels, len(frame))) is not None:
        raise InputError(f"Column {name!r} ({option}) {why}; name another column, or group its values into a few.")


def refuse_no_numbers(name: str | None, option: str, frame: pd.DataFrame) -> None:
    """Refuse a column of numbers in which other texts stand, or infinite ones, with the option that reads it."""
    if name is None:
        return
    column = frame[name]
    if pd.api.types.is_numeric_dtype(column):
        refuse_infinite(column, option)
        return
    found = None if pd.api.types.is_datetime64_any_dtype(column) else unread(column)
    if found is not None and found.words == (name,):
        found = replace(found, cause=UNITS)
    few_labels = column.nunique() <= MOST_LABELS and (found is None or found.cause in (OTHER, UNITS))
    if found is None or (option == "--outcome" and few_labels):
        return  # an outcome in words, of which --event may name one
    raise InputError(
        f"Column {name!r} ({option}) holds texts, not numbers, in {found.count:,} of {found.n:,} rows, the first "
        f"{quoted(found.value)} in row {found.row + 1:,} below the header ({found.looks}); "
        f"{reading_remedy(found, name, option)}"
    )


def refuse_infinite(column: pd.Series, option: str) -> None:
    """Refuse infinite values; rows are counted as the file has them."""
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        texts = ",".join(text for text, sign in (("inf", np.inf), ("-inf", -np.inf)) if (values == sign).any())
        without = "" if option.startswith("--") else "leave the column out by --exclude, "
        raise InputError(
            f"Column {column.name!r} ({option}) is infinite in {len(infinite):,} of {len(values):,} rows, the first of "
            f"them row {infinite[0] + 1:,} below the header; {without}leave these rows out, or make missing values of "
            f"them by --na-values {texts}."
        )


def _refuse_unsaved(name: str, frame: pd.DataFrame) -> None:
    """Refuse now what no tree file could hold once the tree is found."""
    column = frame[name]
    values = column.dropna().unique().tolist() if column.dtype == object else []
    if object_numbers(values) is not None:
        return
    for value in values:
        try:
            label_to_json(value)
        except InputError as error:
            raise InputError(
                f"Column {name!r} holds values of type {type(value).__name__}, which no tree can be saved with; make "
                "numbers or texts of them, or leave the column out."
            ) from error


def features_of(
    frame: pd.DataFrame, roles: Roles, columns: list[str], limits: Limits
) -> tuple[list[str], list[str], list[str]]:
    """Covariates, confounders, and what to tell the user; ``columns`` have other roles.

    Columns whose groups are compared are confounders by default: the tree does not see them.
    """
    assert roles.treatment is not None and roles.outcome is not None, "asked for by both callers"
    taken = {"treatment": roles.treatment, "outcome": roles.outcome}
    for option, name in (("--weights", roles.weights), ("--cluster", roles.cluster)):
        _refuse_taken([name] if name else [], option, taken)
    confounders = column_names(roles.confounders, "--confounders", frame)
    excluded = column_names(roles.exclude, "--exclude", frame)
    _refuse_taken(confounders, "--confounders", taken)
    _refuse_taken(column_names(roles.strata, "--strata", frame), "--strata", taken)
    for role, column in (("event", roles.event_column), ("instrument", roles.instrument)):
        if column is not None:
            taken[role] = column
    _refuse_taken(confounders, "--confounders", taken)
    for name in limits.outcomes:
        _refuse_taken(confounders, "--confounders", {"further outcome": name})
        _refuse_taken(column_names(roles.covariates, "--covariates", frame), "--covariates", {"further outcome": name})
    if roles.covariates is None:
        used = {*taken.values(), roles.cluster, roles.weights, roles.entry_column, *columns, *excluded, *confounders}
        moved = [name for name in limits.unseen if name not in used]
        covariates, notes = default_covariates(frame, {*used, *moved}, exclude="--exclude", covariates="--covariates")
        notes.insert(0, UNNAMED)
        confounders = [*confounders, *moved]
        return covariates, confounders, [*notes, *notes_of_limits(limits, covariates, confounders)]
    if excluded:
        raise InputError("--covariates names all covariates; leave out --exclude, or let it alone say what they are.")
    covariates = column_names(roles.covariates, "--covariates", frame)
    _refuse_taken(covariates, "--covariates", taken)
    named = [name for name in confounders if name not in covariates]
    return covariates, named, notes_of_limits(limits, covariates, named)


def _without(names: tuple[str, ...], excluded: str | None, frame: pd.DataFrame) -> tuple[str, ...]:
    left_out = column_names(excluded, "--exclude", frame)
    return tuple(name for name in names if name not in left_out)


def _costs_by_label(
    texts: tuple[str, ...], argument: str, frame: pd.DataFrame, known: np.ndarray, what: str
) -> dict[Any, float | str]:
    """What treatments, or offers, cost in the outcome's unit, by label; ``what`` says which of them."""
    labels, costs, option = {str(label): label for label in known.tolist()}, {}, f"--{argument.replace('_', '-')}"
    for name, cost in by_treatment(list(texts), argument, frame).items():
        if isinstance(cost, str):
            _refuse_no_cost(frame[cost], f"{option} {name}={cost}")
        if name not in labels:
            raise InputError(f"{option} names the {what} {name!r}; the {what}s are {', '.join(labels)}.")
        costs[labels[name]] = cost
    return costs


def _refuse_no_cost(column: pd.Series, option: str) -> None:
    """A column of costs that does not hold a number in every row."""
    if not pd.api.types.is_numeric_dtype(column):
        raise InputError(f"Column {column.name!r} ({option}) holds no numbers; a cost is one in every row.")
    lacking = int((~np.isfinite(column.to_numpy(dtype=float, na_value=np.nan))).sum())
    if lacking:
        raise InputError(
            f"Column {column.name!r} ({option}) has no cost in {lacking:,} of {len(column):,} rows; fill them in, or "
            "leave these rows out."
        )


def _refuse_taken(names: list[str], option: str, taken: dict[str, str]) -> None:
    for role, name in taken.items():
        if name in names:
            raise InputError(f"{option} names {name!r}, which is the {role}; leave it out.")
