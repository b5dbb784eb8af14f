"""A table with one row per person and decision: its columns get their roles, and it becomes stages."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from policytree.cli.limits import Limits
from policytree.cli.option_fields import spelt
from policytree.cli.outcomes import event_meaning, kind_of_outcome
from policytree.cli.propensities import ESTIMATED, propensity_of
from policytree.cli.records import Job
from policytree.cli.study import OUTCOME_OPTIONS, features_of, percentages, refuse_gaps, refuse_no_numbers
from policytree.cli.study_options import StudyOptions, option, refuse_unnamed
from policytree.cli.tables import by_treatment, column_names, number_in, read_table, require_column
from policytree.cli.tree_fields import TreeOptions
from policytree.cli.wording import in_options
from policytree.evaluation.estimates import DIRECTIONS
from policytree.exceptions import InputError, quoted
from policytree.regimes.checking import check_stages
from policytree.regimes.course import Course
from policytree.regimes.long_tables import stage_times, stages_from_long
from policytree.regimes.stages import Stage
from policytree.study.columns import refuse_two_roles
from policytree.study.study import probabilities
from policytree.study_check.directions import direction_of
from policytree.weighting.propensities import propensity_matrix
from policytree.weighting.study_data import REFUSE, WEIGHT

# Options of the tree that hold at every decision; all others are about a single one.
OF_EVERY_STAGE = (
    "max_depth", "regularization", "min_samples_leaf", "min_samples_per_treatment", "max_leaf_nodes", "time_limit",
)  # fmt: skip
OF_ONE_DECISION = [name for name in asdict(TreeOptions()) if name not in OF_EVERY_STAGE]
BOTH = "--id and --stage go together: the columns that say whose row it is, and which decision it is about"


@dataclass(frozen=True, slots=True, eq=False)
class Visits:
    """A table of several decisions whose columns have their roles.

    Attributes
    ----------
    source : str
        The file.
    frame : DataFrame
    person, stage, treatment, outcome : str
        Names of columns.
    times : list
        Values of the column of the decision, in order.
    stages : list of Stage
    course : Course
        The same, checked.
    covariates, confounders : tuple of str
    fit_arguments : dict
        Weights, clusters, strata and the treatment of missing outcomes, as ``TreatmentRegime.fit`` takes them.
    direction : str
    propensity_text, costs_text : str
        Where probabilities come from, and what treatments cost, in words.
    strata : tuple of str
    notes : tuple of str
        Decisions made without being asked.
    """

    source: str
    frame: pd.DataFrame
    person: str
    stage: str
    treatment: str
    outcome: str
    times: list[Any]
    stages: list[Stage]
    course: Course
    covariates: tuple[str, ...]
    confounders: tuple[str, ...]
    fit_arguments: dict[str, Any]
    direction: str
    propensity_text: str
    costs_text: str
    strata: tuple[str, ...]
    notes: tuple[str, ...]


def visits_of(job: Job) -> Visits:
    """Read the file and give its columns their roles.

    Raises
    ------
    InputError
        If an option or a column is lacking, is about a single decision, or cannot be used.
    """
    if job.data is None:
        raise InputError(f"{BOTH}; give the file.")
    if job.person is None or job.stage is None:
        lacking = "--id" if job.person is None else "--stage"
        raise InputError(f"{BOTH}; add {lacking}.")
    options = job.options
    frame, read = read_table(job.data, job.reading)
    frame, converted = percentages(frame, options, job.reading)
    refuse_unnamed(options, list(frame.columns))
    assert options.treatment is not None and options.outcome is not None, "just checked"
    _check_columns(job, options, frame)
    if options.direction not in (*DIRECTIONS, None):
        raise InputError(f"--direction must be maximize or minimize; got {quoted(options.direction)}.")
    direction = direction_of(options.direction, options.outcome).way
    if options.event is None:
        refuse_no_numbers(options.outcome, "--outcome", frame)
    event_meaning(frame[options.outcome], options.event, options.direction)
    frame = frame.assign(**{options.outcome: kind_of_outcome(options).arguments(frame)["Y"]})
    strata = tuple(column_names(options.strata, "--strata", frame))
    chances, costs = _chance_columns(options.propensity, frame), by_treatment(list(options.arm_cost), "arm_cost", frame)
    others = [job.person, job.stage, *chances, *strata, *(cost for cost in costs.values() if isinstance(cost, str))]
    if job.lost is not None:
        others.append(job.lost)
    covariates, confounders, notes = features_of(frame, options, others, Limits())
    for role, names in (("covariates", covariates), ("confounders", confounders), ("strata", strata)):
        refuse_two_roles(
            [("treatment", options.treatment), ("outcome", options.outcome), *((role, name) for name in names)]
        )
    notes = [*read, *converted, *notes]
    stages = stages_from_long(
        frame, id=job.person, stage=job.stage, treatment=options.treatment, outcome=options.outcome,
        covariates=covariates, adjust=confounders, lost=job.lost,
    )  # fmt: skip
    rows = _Rows(frame, job.person, job.stage, stages[0].X.index)  # type: ignore[union-attr]
    how: dict[str, Any] = {
        "sample_weight": rows.of_person(options.weights, "--weights"),
        "groups": rows.of_person(options.cluster, "--cluster"),
        "strata": rows.of_people(strata, "--strata"),
        "missing_outcome": options.missing_outcome or REFUSE,
    }
    labels = [[str(label) for label in each.treatments] for each in _checked(stages, how).decisions]
    stages, said = _with_chances(stages, labels, options.propensity, rows)
    stages = _with_costs(stages, labels, costs, rows)
    given = ", ".join(f"{label} {cost}" for label, cost in costs.items())
    return Visits(
        job.data, frame, job.person, job.stage, options.treatment, options.outcome, rows.times, stages,
        _checked(stages, how), tuple(covariates), tuple(confounders), how, direction, said, given, strata,
        tuple(notes),
    )  # fmt: skip


def _checked(stages: list[Stage], how: dict[str, Any]) -> Course:
    """The stages, checked; options of the command line in place of arguments."""
    try:
        return check_stages(stages, **how)
    except InputError as error:
        text = str(error).replace("missing_outcome='weight'", "--missing-outcome weight")
        raise InputError(text) from error


def refuse_single(job: Job) -> None:
    """Refuse options that have no meaning where there are several decisions.

    Raises
    ------
    InputError
        Naming the first of them.
    """
    options, tree = job.options, job.tree
    given: dict[str, Any] = {
        "--dataset": job.dataset, "--data-dir": job.data_dir,
        **{option(name): getattr(options, name) for name in OUTCOME_OPTIONS if name != "missing_outcome"},
        "--offer-cost": options.offer_cost,
        "--taker-cost": options.taker_cost, "--target-people": job.target_people, "--study-column": job.study_column,
        "--honest": job.honest, "--stability": job.stability, "--labels": job.labels,
        **{spelt(TreeOptions)[name]: tree[name] for name in OF_ONE_DECISION},
        "--limit": options.limit, "--at-least": options.at_least, "--also": options.also, "--parity": options.parity,
        "--value-parity": options.value_parity, "--worst-group": options.worst_group, "--subgroups": options.subgroups,
        "--randomized": options.randomized or None, "--black-box": job.black_box or None,
    }  # fmt: skip
    for asked, value in given.items():
        if value not in (None, (), []):
            raise InputError(
                f"{asked} is about a single decision; with --id and --stage leave it out. In Python every stage has "
                "an estimator of its own (TreatmentRegime)."
            )


def _check_columns(job: Job, options: StudyOptions, frame: pd.DataFrame) -> None:
    """Columns that are there, each in one role; ids, decisions, weights and clusters without gaps."""
    taken: dict[str, str] = {}
    for asked, name in (
        ("--id", job.person), ("--stage", job.stage), ("--treatment", options.treatment),
        ("--outcome", options.outcome), ("--lost-column", job.lost), ("--weights", options.weights),
        ("--cluster", options.cluster),
    ):  # fmt: skip
        if name is None:
            continue
        require_column(name, asked, frame)
        if name in taken and not (asked == "--cluster" and taken[name] == "--id"):
            raise InputError(f"{asked} names {name!r}, which {taken[name]} names too; give each its own column.")
        taken.setdefault(name, asked)
        if asked in ("--id", "--stage", "--weights", "--cluster"):
            refuse_gaps([name], asked, frame)
    if options.missing_outcome not in (None, REFUSE, WEIGHT):
        raise InputError(f"--missing-outcome must be {REFUSE} or {WEIGHT}; got {quoted(options.missing_outcome)}.")
    if job.history not in (None, "all", "current"):
        raise InputError(f"--history must be all or current; got {quoted(job.history)}.")


class _Rows:
    """Rows of a long table by decision, and what they say of every person.

    Attributes
    ----------
    times : list
        Values of the column of the decision, in order.
    """

    def __init__(self, frame: pd.DataFrame, person: str, stage: str, people: pd.Index):
        self.frame, self.person, self.stage, self.people = frame, person, stage, people
        self.times = stage_times(frame[stage])

    def at(self, s: int, eligible: np.ndarray) -> pd.DataFrame:
        """The rows of the eligible people at a decision, by person."""
        rows = self.frame[self.frame[self.stage] == self.times[s]].set_index(self.person)
        return rows.loc[self.people[eligible]]

    def of_person(self, name: str | None, option: str) -> pd.Series | None:
        """A column that says the same in all rows of a person, by person.

        Raises
        ------
        InputError
            If it does not.
        """
        if name is None:
            return None
        if name == self.person:
            return pd.Series(self.people, index=self.people, name=name)
        by_person = self.frame.groupby(self.person, sort=False)[name]
        differing = by_person.nunique(dropna=False) > 1
        if differing.any():
            raise InputError(
                f"Column {name!r} ({option}) differs between the rows of person {differing.idxmax()!s}; give it one "
                "value for a person."
            )
        return by_person.first().loc[self.people]

    def of_people(self, names: tuple[str, ...], option: str) -> pd.DataFrame | None:
        """Several such columns."""
        if not names:
            return None
        return pd.DataFrame({name: self.of_person(name, option) for name in names})


def _eligible(stage: Stage) -> np.ndarray:
    return np.asarray(stage.eligible, dtype=bool)


def _chance_columns(text: str | None, frame: pd.DataFrame) -> list[str]:
    """Columns that --propensity names."""
    if text is None:
        return []
    if text in frame.columns:
        return [text]
    named = [part.rpartition("=")[2].strip() for part in text.split(",") if "=" in part]
    return [name for name in named if number_in(name) is None and name in frame.columns]


def _with_chances(
    stages: list[Stage], known: list[list[str]], text: str | None, rows: _Rows
) -> tuple[list[Stage], str]:
    """Stages with known probabilities of treatment, and words for where these come from.

    ``known``: names of the treatments of every stage, in sorted order.
    """
    if text is None or (text == ESTIMATED and text not in rows.frame.columns):
        return stages, "estimated from the histories"
    by_label = "=" in text and text not in rows.frame.columns
    parts = dict((piece.rpartition("=")[0].strip(), piece) for piece in text.split(",")) if by_label else {}
    unknown = [name for name in parts if not any(name in labels for labels in known)]
    if unknown:
        everywhere = ", ".join(dict.fromkeys(label for labels in known for label in labels))
        raise InputError(f"--propensity names the treatment {unknown[0]!r}; the treatments are {everywhere}.")
    out = []
    for s, (stage, labels) in enumerate(zip(stages, known, strict=True)):
        own = ",".join(piece for name, piece in parts.items() if name in labels) if by_label else text
        eligible = _eligible(stage)
        treatments = np.array(labels, dtype=object)
        try:
            if by_label and not own:
                raise InputError(f"--propensity has no probability for its treatments ({', '.join(labels)}); add them.")
            here = rows.at(s, eligible)
            given = probabilities(propensity_of(own, here, labels=labels), here)
            propensity_matrix(given, len(here), treatments)
        except InputError as error:
            raise InputError(f"{stage.name}: {in_options(str(error))}") from error
        if isinstance(given, pd.Series):
            given = pd.DataFrame({labels[0]: 1.0 - given, labels[1]: given})
        if isinstance(given, pd.DataFrame):
            whole = np.full((len(eligible), len(labels)), 1.0 / len(labels))
            whole[eligible] = given[labels].to_numpy(dtype=np.float64)
            given = whole
        out.append(replace(stage, propensity=given))
    return out, f"known: {text}"


def _with_costs(
    stages: list[Stage], known: list[list[str]], costs: dict[str, float | str], rows: _Rows
) -> list[Stage]:  # fmt: skip
    """Stages with what their treatments cost; ``known`` as in :func:`_with_chances`."""
    unknown = [name for name in costs if not any(name in labels for labels in known)]
    if unknown:
        everywhere = ", ".join(dict.fromkeys(label for labels in known for label in labels))
        raise InputError(f"--arm-cost names the treatment {unknown[0]!r}; the treatments are {everywhere}.")
    out = []
    for s, (stage, labels) in enumerate(zip(stages, known, strict=True)):
        own = {name: cost for name, cost in costs.items() if name in labels}
        if own:
            eligible = _eligible(stage)
            here, whole = rows.at(s, eligible), np.zeros((len(eligible), len(labels)))
            for name, cost in own.items():
                whole[eligible, labels.index(name)] = here[cost] if isinstance(cost, str) else cost
            stage = replace(stage, costs=whole)
        out.append(stage)
    return out
