"""How `policytree check` and `design` begin: options read, the study made, and what data do not suffice for refused."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from policytree.cli.controls import chosen_control
from policytree.cli.limits import refuse_small_groups
from policytree.cli.reading import Reading
from policytree.cli.records import Job
from policytree.cli.study import Origin, for_people, study_from_dataset, study_from_file, study_of_table
from policytree.cli.study_options import StudyOptions
from policytree.cli.tables import read_table, require_column
from policytree.cli.tree_options import budget_costs, leaf_size_notes, method_notes, n_people, tree_options
from policytree.common.option_words import typed_list
from policytree.evaluation.policy_value.validation import SPLIT, fewest_rows, refuse_small_arms
from policytree.exceptions import InputError
from policytree.problem.split_columns import GROUPS
from policytree.report.described import Described
from policytree.study.study import Study, columns_in
from policytree.study_check.columns import rare_levels
from policytree.study_check.events import event_options
from policytree.study_check.findings import CENSORED, KNOWS_EVENT, RARE_CATEGORIES, StudyCheck, by_severity
from policytree.study_check.names import is_time
from policytree.trees.labels import Label, as_labels
from policytree.weighting.covariates import Covariates
from policytree.weighting.stacked import study_mask

FEWEST_EVENTS = 5  # of an arm: so few in one fold of many are improbable


def begun(job: Job) -> tuple[Job, Study, Origin, Described]:
    """The job with its options about the data read, the study, its origin, and what a report says of it; fits nothing.

    `policytree check` and `design` both begin so, and go on to :func:`refuse_findings`: what the data do not suffice
    for, both refuse in the same words; `check` shows first what it found.

    Raises
    ------
    InputError
    """
    if job.data is not None and job.dataset is not None:
        raise InputError("Give either a data file or --dataset, not both.")
    if job.data_dir is not None and job.dataset is None:
        raise InputError("--data-dir goes with --dataset; leave it out.")
    labels = None if job.labels is None else as_labels(job.labels)
    study, origin = _study(job, labels)
    _check_target(job, study)
    tree = tree_options(job.tree, study, origin.limits, job.honest or 0.0)
    of_leaves = leaf_size_notes(tree, job.tree, study.population is not None)
    origin = origin.noting(*of_leaves, *method_notes(tree["method"]))
    control, chosen, named = chosen_control(job.control, study)
    job = replace(job, tree=tree, control=control)
    study = study.replace(
        control=next(label for label in study.treatments if str(label) == control) if named else None,
        budget_costs=budget_costs(tree.pop("budget_costs"), study),
    )
    folds, where = f"--cv {job.cv} needs", f" of column {study.treatment.assigned!r}"
    refuse_small_arms(study.assigned, _fewest_rows(job), folds, "--cv", where)
    _refuse_small_target(job, study)
    _refuse_few_events(job, study)
    if job.value:
        refuse_small_groups(origin.limits, study.table, study.observed.sample_weight)
    _refuse_covariates(study)
    described = origin.described(study, job.command, chosen, labels)
    described = replace(described, check=_with_rare_levels(described.check, study, tree))
    described = replace(described, about=replace(described.about, **job.names))
    return job, study, origin, described


def refuse_findings(described: Described, study: Study) -> None:
    """Refuse times to an event that would be taken as numbers, with the event, which knows them, as a covariate.

    Raises
    ------
    InputError
        With the option that says it right.
    """
    serious = described.check.of("serious")
    censored = next((finding for finding in serious if finding.kind == CENSORED), None)
    knowing = [finding.column for finding in serious if finding.kind == KNOWS_EVENT]
    if censored is None or not knowing:
        return
    other = study.table[knowing[0]]
    if is_time(other.name):
        options = f"--outcome {shlex.quote(str(other.name))} {event_options(study.table[study.outcome.column])}"
    else:
        options = event_options(other)
    raise InputError(
        f"{censored.column} {censored.found}; say {options}, or leave out {' and '.join(knowing)} by --exclude "
        f"{typed_list(knowing)} if that is not so."
    )


def _study(job: Job, labels: Mapping[str, Label] | None) -> tuple[Study, Origin]:
    if job.target_people is not None and job.study_column is not None:
        raise InputError("--target-people and --study-column both say whom the rule is for; give one of them.")
    if job.dataset is not None:
        if job.study_column is not None:
            raise InputError("--study-column is for a file of study and target; with --dataset give --target-people.")
        study, origin = study_from_dataset(job.dataset, job.data_dir, job.options, labels)
    elif job.data is None:
        raise InputError("Give a data file or --dataset.")
    elif job.study_column is not None:
        return _divided(job.data, job.study_column, job.options, job.reading, labels)
    else:
        study, origin = study_from_file(job.data, job.options, job.reading, labels)
    if job.target_people is None:
        return study, origin
    people = read_table(job.target_people, replace(job.reading, sheet=None)).frame
    return for_people(study, origin, people, f"--target-people {job.target_people}")


def _divided(
    path: str, column: str, options: StudyOptions, reading: Reading, labels: Mapping[str, Label] | None
) -> tuple[Study, Origin]:
    """A file of the study and of the people of the target, told apart by a column."""
    frame, notes = read_table(path, reading)
    require_column(column, "--study-column", frame)
    mask = study_mask(frame[column], len(frame))
    others = frame.drop(columns=column)
    own = others[mask].reset_index(drop=True).infer_objects()
    found = study_of_table(path, own, options, reading, notes, labels=labels)
    return for_people(*found, others[~mask].reset_index(drop=True), f"--study-column {column}")


def _check_target(job: Job, study: Study) -> None:
    """Refuse options that have no meaning for people beside those of the study."""
    if study.population is None:
        return
    if study.observed.instrument is not None:
        raise InputError(
            "--instrument and a target (--target-people, --study-column) do not go together yet; leave one of them out."
        )
    given = {
        "--min-samples-per-treatment": job.tree["min_samples_per_treatment"],
        "--budget-cost": job.tree["budget_costs"],
        "--arm-cost of a column": columns_in(study.arm_costs),
        "A limit, another outcome or a column of groups": study.further_outcomes or study.subgroups,
    }
    for option, value in given.items():
        if value:
            raise InputError(f"{option} is about the study's people, but the rule is for the target; leave it out.")


def _fewest_rows(job: Job) -> int:
    """So many rows of every kind (an arm, the target) the nested folds need."""
    if not job.value:
        return job.cv
    return fewest_rows(job.validation if job.honest is None else SPLIT, job.cv, job.cv)


def _refuse_small_target(job: Job, study: Study) -> None:
    """Refuse targets of too few people for nested folds."""
    needed, n = _fewest_rows(job), n_people(study)
    if study.population is not None and n < needed:
        raise InputError(
            f"The target has {n} people, but --cv {job.cv} needs {needed}; lower --cv or add people "
            "(policytree predict says what a single person gets)."
        )


def _refuse_few_events(job: Job, study: Study) -> None:
    """Refuse now arms of which parts of the rows may have no event."""
    seen, times = study.assigned, study.observed.times
    if times is None or not job.value:
        return
    what = seen.what
    counts = np.bincount(seen.arm[times.known & ~times.free], minlength=seen.n_arms)
    k = int(counts.argmin())
    if counts[k] < FEWEST_EVENTS:
        raise InputError(
            f"{what.capitalize()} {seen.treatments[k]!s} has {counts[k]} events up to {times.said}, but "
            f"parts of the rows need some, for which {FEWEST_EVENTS} in all are enough; choose a later --horizon, "
            f"merge it with another {what}, leave its rows out, or do without a held-out value, --no-value."
        )


def _refuse_covariates(study: Study) -> None:
    """Refuse now covariates from which no model could learn."""
    try:
        Covariates.fit(study.X, study.W).matrix(study.X, study.W)
    except InputError as error:
        raise InputError(str(error).replace(" of X ", " ").replace(" of W ", " ")) from error


def _with_rare_levels(check: StudyCheck, study: Study, tree: dict[str, Any]) -> StudyCheck:
    """The check of the data with what groups of levels ask of it, in place of what it says of rare categories."""
    if tree["categories"] != GROUPS:
        return check
    sizes = (tree["min_samples_leaf"], tree["min_samples_per_treatment"])
    names = tree["split_features"] or study.covariates
    rare = [finding for name in names for finding in rare_levels(study.table[name], study.assigned, *sizes)]
    about = {finding.column for finding in rare}
    others = [each for each in check.findings if each.kind != RARE_CATEGORIES or each.column not in about]
    return replace(check, findings=by_severity([*rare, *others]))
