"""From options to a :class:`policytree.Study`, and what the command line alone knows beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pandas as pd

from policytree.cli.limits import Limits, limits_of, notes_of_limits
from policytree.cli.outcomes import (
    MOST_LABELS,
    check_outcome_options,
    event_meaning,
    kind_of_outcome,
    notes_of_missing,
    notes_of_offers,
    notes_of_times,
    refuse_impossible_times,
)
from policytree.cli.propensities import propensity_of
from policytree.cli.reading import Reading
from policytree.cli.reading import remedy as reading_remedy
from policytree.cli.study_options import COLUMN, KINDS, StudyOptions, option, refuse_unnamed
from policytree.cli.tables import AS_IT_IS, by_treatment, column_names, read_table, require_column
from policytree.common.number_texts import OTHER, UNITS, number_of, unread
from policytree.common.option_words import comma_list, typed_list
from policytree.data.combined_treatments import CombinedTreatments, combine_frame
from policytree.data.feature_encoder import object_numbers
from policytree.datasets import Dataset, load_dataset
from policytree.exceptions import InputError, quoted
from policytree.report.described import About, Described
from policytree.serialization.labels import label_to_json
from policytree.study import MayBeMissing, Offered, Population
from policytree.study.assignments import Assignment, Combined, Given
from policytree.study.columns import default_covariates, holds_tables
from policytree.study.outcomes import Number
from policytree.study.study import Study, columns_in
from policytree.study_check import Finding, findings_beside
from policytree.study_check.directions import direction_of
from policytree.study_check.findings import by_severity
from policytree.trees.labels import Label, named_values
from policytree.weighting.study_data import WEIGHT, too_many_treatments

UNNAMED = (
    "Without --covariates, every column without another role is a covariate: they must be known before treatment is "
    "chosen."
)
# Options that say how outcomes and treatments were observed, beside --event; a saved tree keeps them by these names.
_ELSEWHERE = ("event", "treatment", "target_people")
OUTCOME_OPTIONS = tuple(
    dict.fromkeys(each for named in KINDS.values() for each in named.values() if each not in _ELSEWHERE)
)
# Options that name one column each, which has a value in every row and is no covariate.
_OF_ONE_COLUMN = {each.name for each in fields(StudyOptions) if each.metadata["metavar"] == COLUMN}
GAPLESS = (
    "treatment", "outcome", "cluster", "weights", *(each for each in OUTCOME_OPTIONS if each in _OF_ONE_COLUMN),
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """Facts of a study that only the command line knows.

    Attributes
    ----------
    notes : tuple of str
        Decisions made without being asked.
    limits : Limits
        On further outcomes and groups of people.
    offer_costs : mapping of label to float or str
        Costs of offers, taken or not: numbers, or names of columns.
    taker_cost : float
        Cost of everybody who takes the second treatment, of offers; the study's outcomes are net of it.
    gross : Study or None
        The study with outcomes before that, where there is such a cost.
    reading : Reading
        How the file was read.
    """

    notes: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    offer_costs: Mapping[Any, float | str] = field(default_factory=dict)
    taker_cost: float = 0.0
    gross: Study | None = None
    reading: Reading = AS_IT_IS

    def noting(self, *notes: str) -> Origin:
        """The same with further notes."""
        return replace(self, notes=(*self.notes, *notes))

    def described(
        self, study: Study, command: str = "", control: str = "", labels: Mapping[str, Label] | None = None
    ) -> Described:
        """The study as a report sees it, its data checked; other arguments as in :class:`About`.

        Values of treatments have the names of ``labels`` in the study itself.
        """
        if labels is not None:
            own = {*study.treatment.columns().values()}
            labels = {name: replace(each, values={}) if name in own else each for name, each in labels.items()}
        takers = [f"{self.taker_cost:g} per taker of {study.treatments[1]}"] if self.taker_cost else []
        costs = [study.costs_text, *takers, *(f"offer {label} {cost}" for label, cost in self.offer_costs.items())]
        said = ", ".join(filter(None, costs))
        about = About(notes=self.notes, command=command, control=control, costs=said, labels=labels)
        described = Described.of(study, about)
        findings = by_severity([*described.check.findings, *_findings_beside(study)])
        return replace(described, check=replace(described.check, findings=findings))


def _findings_beside(study: Study) -> list[Finding]:
    """Check the columns left out, which the check of covariates cannot see."""
    taken = {study.cluster, study.weights, *study.covariates, *study.confounders, *study.subgroups}
    taken |= {*study.further_outcomes, *study.outcome.columns().values(), *study.treatment.columns().values()}
    others = [name for name in study.table if name not in taken and not holds_tables(study.table[name])]
    event = None if study.observed.times is None else study.observed.times.code
    beside = findings_beside(
        study.table[others], study.observed.y, study.outcome.column, clustered=study.cluster is not None, event=event
    )
    return [*beside]


def options_of(study: Study) -> StudyOptions:
    """The options that say what a study is, but for those on further outcomes and groups."""
    known = study.outcome.of if isinstance(study.outcome, MayBeMissing) else study.outcome
    said: dict[str, Any] = {}
    for kind in (known, study.treatment):
        for name, asked in KINDS.get(type(kind).__name__, {}).items():
            if (value := getattr(kind, name)) is not None and asked != "treatment":
                said[asked] = value if isinstance(value, float) else str(value)
    return StudyOptions(
        treatment=comma_list(study.treatment.columns().values())
        if isinstance(study.treatment, Combined)
        else study.treatment.column,
        outcome=study.outcome.column,
        covariates=_joined(study.covariates),
        confounders=_joined(study.confounders),
        propensity=_propensity_option(study.propensity),
        cluster=study.cluster,
        weights=study.weights,
        direction=study.direction,
        strata=_joined(study.strata),
        missing_outcome=WEIGHT if isinstance(study.outcome, MayBeMissing) else None,
        arm_cost=tuple(f"{label}={cost}" for label, cost in study.arm_costs.items()),
        randomized=bool(study.randomized),
        **said,
    )


def _propensity_option(propensity: Any) -> str | None:
    if isinstance(propensity, Mapping):
        return comma_list(f"{label}={each}" for label, each in propensity.items())
    return None if propensity is None else str(propensity)


def study_from_file(
    path: str, options: StudyOptions, reading: Reading = AS_IT_IS, labels: Mapping[str, Label] | None = None
) -> tuple[Study, Origin]:
    """Read a file and give its columns their roles; ``labels`` may name values of treatments.

    Raises
    ------
    InputError
        If something is missing or cannot be used.
    """
    frame, notes = read_table(path, reading)
    try:
        reading.refuse_unknown_columns(frame.columns)
        return study_of_table(path, frame, options, reading, notes, labels=labels)
    except InputError as error:
        of_sheets = [note for note in notes if "--sheet" in note]  # perhaps another sheet was meant
        raise InputError(" ".join([str(error), *of_sheets])) from error


def study_of_table(
    path: str,
    frame: pd.DataFrame,
    options: StudyOptions,
    reading: Reading = AS_IT_IS,
    notes: tuple[str, ...] = (),
    combined: CombinedTreatments | None = None,
    labels: Mapping[str, Label] | None = None,
) -> tuple[Study, Origin]:
    """Give the columns of a file that was read their roles; see :func:`study_from_file`.

    ``combined``: of several treatments that :func:`with_known_arms` has put together before.
    """
    refuse_unnamed(options, list(frame.columns))
    frame, more = percentages(frame, options, reading)
    study, origin = _made(path, frame, options, combined=combined, labels=labels)
    return study, replace(origin, notes=(*notes, *more, *origin.notes), reading=reading)


def with_known_arms(
    frame: pd.DataFrame, options: StudyOptions, arms: Sequence[str]
) -> tuple[pd.DataFrame, StudyOptions, CombinedTreatments | None]:
    """The table with one column in place of several that --treatment names, labelled as a tree labels them.

    Raises
    ------
    InputError
        If one of the columns is not there, or has gaps.
    """
    names = treatment_columns(options.treatment, frame)
    if len(names) < 2:
        return frame, options, None
    refuse_gaps(names, "--treatment", frame)
    found = combine_frame(frame[names], arms)
    title = Combined(tuple(names)).column
    return frame.drop(columns=names).assign(**{title: found.labels}), replace(options, treatment=title), found


def treatment_columns(text: str | None, frame: pd.DataFrame) -> list[str]:
    """The column, or columns, that --treatment names."""
    if text is None or text in frame.columns:
        return [] if text is None else [text]
    return column_names(text, "--treatment", frame)


def percentages(frame: pd.DataFrame, options: StudyOptions, reading: Reading) -> tuple[pd.DataFrame, list[str]]:
    """Columns of texts such as 5.1 % as numbers, 5.1, but for those whose values are labels; and what was done."""
    groups = [text.rpartition("=")[0] for text in (*options.parity, *options.value_parity)]
    labels = {options.instrument, options.event_column, options.cluster, options.worst_group, *groups}
    labels |= {*treatment_columns(options.treatment, frame)}
    labels |= {*(options.strata or "").split(","), *(options.subgroups or "").split(",")}
    if options.event is not None:
        labels.add(options.outcome)
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


def study_from_dataset(
    name: str, data_dir: str | None, options: StudyOptions, labels: Mapping[str, Label] | None = None
) -> tuple[Study, Origin]:
    """Load a built-in study; what the user's options say comes first.

    Raises
    ------
    InputError
        If there is no such study, or a column is missing, has two roles or cannot be used.
    """
    dataset = load_dataset(name, data_dir=data_dir)
    outcome = options.outcome or dataset.outcome
    given = {each.name: getattr(options, each.name) for each in fields(options)}
    given = {name: value for name, value in given.items() if value is not None and value is not False and value != ()}
    own: dict[str, Any] = {"treatment": dataset.treatment, "outcome": outcome, "cluster": dataset.groups}
    if options.treatment in (None, dataset.treatment):
        own |= {"instrument": dataset.instrument, "randomized": dataset.randomized}
        if dataset.propensity is not None:
            named = (labels or {}).get(dataset.instrument or dataset.treatment, Label())
            shares = dataset.propensity.items()
            own["propensity"] = comma_list(f"{named.of(label)}={share!r}" for label, share in shares)
    if options.event is None and options.event_column is None:
        times = {"event_column": dataset.event, "horizon": dataset.horizon, "entry_column": dataset.entry}
        own |= {option: named.get(outcome) for option, named in times.items() if outcome in dataset.event}
        own["direction"] = dataset.direction if options.cause is None else None
    merged = StudyOptions(**{**own, **given})
    covariates, confounders = _own_covariates(dataset, merged)
    merged = replace(
        merged, covariates=options.covariates or _joined(covariates), exclude=options.covariates and options.exclude,
        confounders=options.confounders or _joined(dataset.confounders if options.covariates else confounders),
    )  # fmt: skip
    unit = dataset.outcomes.get(outcome, "")
    return _made(name, dataset.frame, merged, unit.split(" ")[0] if merged.event_column else unit, labels=labels)


def _own_covariates(dataset: Dataset, options: StudyOptions) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Covariates of a built-in study but for what has another role, or none; and its confounders.

    Covariates whose groups are compared become confounders.
    """
    limits = limits_of(options, dataset.frame)
    taken = {options.instrument, *treatment_columns(options.treatment, dataset.frame), *limits.outcomes}
    taken |= {*column_names(options.exclude, "--exclude", dataset.frame)}
    known = tuple(name for name in dataset.covariates if name not in taken)
    confounders = tuple(name for name in dataset.confounders if name not in limits.outcomes)
    moved = tuple(name for name in limits.unseen if name in known)
    return tuple(name for name in known if name not in moved), (*confounders, *moved)


def _joined(names: Sequence[str]) -> str | None:
    return comma_list(names) if names else None


def _made(
    source: str,
    frame: pd.DataFrame,
    options: StudyOptions,
    unit: str = "",
    combined: CombinedTreatments | None = None,
    labels: Mapping[str, Label] | None = None,
) -> tuple[Study, Origin]:
    """The study that options ask for, once the file has been looked at; and what only the options say."""
    assert options.treatment is not None and options.outcome is not None, "asked for by both callers"
    treatments = treatment_columns(options.treatment, frame)
    for role in GAPLESS:
        names = treatments if role == "treatment" else [getattr(options, role)]
        for name in names:
            if name is not None:
                require_column(name, option(role), frame)
    frame = named_values(frame, labels or {}, [*treatments, *filter(None, [options.instrument])])
    if options.outcome in treatments:  # before its many values are
        raise InputError(f"--outcome names {options.outcome!r}, which is the treatment; name another column.")
    check_outcome_options(options)
    _refuse_without_offers(options)
    for role in GAPLESS:
        names = treatments if role == "treatment" else [getattr(options, role)]
        if role != "outcome" or options.missing_outcome != WEIGHT:
            may_weight = role == "outcome" and options.event_column is None
            refuse_gaps(names, option(role), frame, may_weight=may_weight)
    for name in treatments:
        refuse_too_many_labels(name, "--treatment", frame)
    for role in ("weights", "entry_column", *(("outcome",) if options.event is None else ())):
        refuse_no_numbers(getattr(options, role), option(role), frame)
    if options.event_column is None:
        _refuse_constant(frame[options.outcome])
        unit = event_meaning(frame[options.outcome], options.event, options.direction) or unit
    else:
        refuse_impossible_times(frame, options.outcome, options.entry_column)
    direction_of(options.direction, options.outcome, times=options.event_column is not None)
    if len(treatments) > 1:
        combined = combine_frame(frame[treatments])
    drawn = treatments[0] if options.instrument is None else options.instrument
    propensity = propensity_of(options.propensity, frame, combined, {*map(str, frame[drawn].dropna().unique())})
    arm_costs = _costs(options.arm_cost, "arm_cost", frame)
    offer_costs = _costs(options.offer_cost, "offer_cost", frame)
    limits = limits_of(options, frame)
    columns = [*columns_in(propensity), *columns_in(arm_costs), *columns_in(offer_costs), *limits.outcomes]
    covariates, confounders, notes = features_of(frame, options, columns, limits)
    for name in (*treatments, *covariates):
        _refuse_unsaved(name, frame)
    for name in (*covariates, *confounders):
        if pd.api.types.is_float_dtype(frame[name]):
            refuse_infinite(frame[name], "a covariate")
    study = Study(
        frame,
        treatment=_assignment(treatments, options.instrument),
        outcome=kind_of_outcome(options),
        direction=options.direction,
        covariates=covariates,
        confounders=confounders,
        propensity=propensity,
        randomized=propensity is not None or options.randomized or None,
        cluster=options.cluster,
        strata=column_names(options.strata, "--strata", frame),
        weights=options.weights,
        arm_costs=arm_costs,
        further_outcomes=limits.outcomes,
        subgroups=limits.subgroups,
        unit=unit,
        name=source,
    )
    offer_costs = _costs_of_offers(study, offer_costs, options.taker_cost)
    origin = Origin((*_notes(study, options), *notes), limits, offer_costs, options.taker_cost or 0.0)
    if not options.taker_cost:
        return study, origin
    from policytree.evaluation.instruments.offer_rule import net_of_uptake

    net = net_of_uptake(study.Y, study.observed, options.taker_cost, study.ways.way)
    known = Number(options.outcome)
    return study.replace(
        table=frame.assign(**{options.outcome: net}),
        outcome=known if study.observed.seen is None else MayBeMissing(known),
    ), replace(origin, gross=study)  # fmt: skip


def _assignment(treatments: Sequence[str], instrument: str | None) -> Assignment:
    """The treatment, or several at once, as given or as offered."""
    if len(treatments) > 1:
        if instrument is not None:
            raise InputError("--instrument goes with one treatment; name one by --treatment.")
        return Combined(tuple(treatments))
    return Given(treatments[0]) if instrument is None else Offered(treatments[0], by=instrument)


def _notes(study: Study, options: StudyOptions) -> list[str]:
    """State the assumptions about outcomes and offers, a sentence each."""
    seen, told = study.observed, list[str]()
    if seen.times is not None:
        told = notes_of_times(seen.times, options)
    elif seen.seen is not None:
        told = notes_of_missing(seen.seen, seen.arm, seen.treatments, study.outcome.column)
    if seen.instrument is not None:
        told += notes_of_offers(seen, study.treatment.assigned, study.outcome.column, options.taker_cost or 0.0)
    return told


def for_people(study: Study, origin: Origin, people: pd.DataFrame, asked: str) -> tuple[Study, Origin]:
    """The same study, and a rule for other people; ``asked``: the option that says who they are.

    Raises
    ------
    InputError
        If their table lacks a column, has no rows, or holds values that the study does not know.
    """
    lacking = [name for name in (*study.covariates, *study.confounders) if name not in people.columns]
    if lacking:
        raise InputError(
            f"The people of the target ({asked}) have no column {lacking[0]!r}, which is a covariate; add it, or leave "
            f"it out with --exclude {typed_list(lacking[:1])}."
        )
    try:
        for_them = study.replace(population=Population(people))
    except InputError as error:
        text = str(error).replace("Population has no rows", f"{asked} leaves nobody of the target")
        raise InputError(text.replace("target_X", asked).replace("target_W", asked)) from error
    note = (
        f"The rule is for the {len(people):,} people of the target ({asked}): values are theirs, and effects are "
        f"learnt from the {study.n:,} rows of the study."
    )
    return for_them, origin.noting(note)


def _refuse_without_offers(options: StudyOptions) -> None:
    """Costs that go with offers, and those that do not."""
    if options.instrument is None:
        for asked, given in (("--offer-cost", options.offer_cost), ("--taker-cost", options.taker_cost)):
            if given not in (None, ()):
                raise InputError(
                    f"{asked} is about offers that people may refuse; name the column of what each row was offered by "
                    f"--instrument, or leave {asked} out."
                )
    elif options.arm_cost:
        raise InputError(
            "--arm-cost would be paid for everybody, but with --instrument only those who take the treatment cost "
            "something; give --taker-cost, and --offer-cost for what the offers cost."
        )


def _costs_of_offers(
    study: Study, costs: Mapping[str, float | str], taker_cost: float | None
) -> dict[Any, float | str]:
    """Costs by the offers' labels; refuses those of offers that nobody got, and what cannot be subtracted."""
    known = {str(label): label for label in study.assigned.treatments.tolist()}
    for label in costs:
        if label not in known:
            raise InputError(f"--offer-cost names the offer {label!r}; the offers are {', '.join(known)}.")
    if taker_cost is not None and not np.isfinite(taker_cost):
        raise InputError(f"--taker-cost must be a finite number; got {taker_cost}.")
    if taker_cost and study.observed.times is not None:
        raise InputError(
            "--taker-cost cannot be subtracted from times to an event, which may be censored; leave it out, or give "
            "--offer-cost."
        )
    return {known[label]: cost for label, cost in costs.items()}


def refuse_gaps(names: Sequence[str | None], asked: str, frame: pd.DataFrame, *, may_weight: bool = False) -> None:
    """Refuse columns with gaps.

    Rows are counted as the file has them, where the first error would name a place in memory.
    """
    for name in names:
        gaps = np.empty(0, dtype=int) if name is None else np.flatnonzero(frame[name].isna())
        if len(gaps) == len(frame):
            raise InputError(f"Column {name!r} ({asked}) has no value in any row; name another column.")
        if len(gaps):
            weigh = ", or weight for who is missing, --missing-outcome weight" if may_weight else ""
            raise InputError(
                f"Column {name!r} ({asked}) has no value in {len(gaps):,} of {len(frame):,} rows, the first of them "
                f"row {gaps[0] + 1:,} below the header; leave these rows out{weigh}.{_no_row(frame, gaps)}"
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
    frame: pd.DataFrame, options: StudyOptions, columns: Sequence[str], limits: Limits
) -> tuple[list[str], list[str], list[str]]:
    """Covariates, confounders, and what to tell the user; ``columns`` have other roles.

    Columns whose groups are compared are confounders by default: the tree does not see them.
    """
    confounders = column_names(options.confounders, "--confounders", frame)
    excluded = column_names(options.exclude, "--exclude", frame)
    if options.covariates is not None:
        if excluded:
            raise InputError(
                "--covariates names all covariates; leave out --exclude, or let it alone say what they are."
            )
        covariates = column_names(options.covariates, "--covariates", frame)
        named = [name for name in confounders if name not in covariates]
        return covariates, named, notes_of_limits(limits, covariates, named)
    used = {getattr(options, role) for role in GAPLESS} | {*treatment_columns(options.treatment, frame)}
    used |= {*columns, *excluded, *confounders}
    moved = [name for name in limits.unseen if name not in used]
    covariates, notes = default_covariates(frame, {*used, *moved}, exclude="--exclude", covariates="--covariates")
    confounders = [*confounders, *moved]
    return covariates, confounders, [UNNAMED, *notes, *notes_of_limits(limits, covariates, confounders)]


def _costs(texts: tuple[str, ...], argument: str, frame: pd.DataFrame) -> dict[str, float | str]:
    """Parse costs of treatments, or offers, in the outcome's unit, by label; columns hold a number in every row."""
    costs = by_treatment(list(texts), argument, frame)
    for label, cost in costs.items():
        if isinstance(cost, str):
            _refuse_no_cost(frame[cost], f"{option(argument)} {label}={cost}")
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
