"""The main job: study in; tree, certificate and value out, on the terminal and in files."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import effective_n_jobs
from rich.console import Console

from policytree.cli.controls import chosen_control
from policytree.cli.files import check_folder, design_data, result_files, write_files
from policytree.cli.first_checks import repeats_of
from policytree.cli.interrupts import Interrupts, interrupts_remembered
from policytree.cli.limits import refuse_small_groups
from policytree.cli.printing import PRINTED, files_section, print_json, print_sections
from policytree.cli.questions import Fitted, Steps, answers, validation_options
from policytree.cli.reading import Reading
from policytree.cli.records import Job, Result
from policytree.cli.study import Origin, for_people, study_from_dataset, study_from_file, study_of_table
from policytree.cli.study_options import StudyOptions
from policytree.cli.tables import read_table, require_column
from policytree.cli.tree_options import budget_costs, leaf_size_notes, method_notes, n_people, tree_options
from policytree.common.option_words import typed_list
from policytree.common.progress import stage_progress
from policytree.common.validation import check_level
from policytree.constraints.checks import is_limited
from policytree.estimators.doubly_robust import DRPolicyTree
from policytree.estimators.policy import PolicyTree, without_limits
from policytree.evaluation.leaves.honest import honest_leaf_summary
from policytree.evaluation.leaves.summary import leaf_summary
from policytree.evaluation.policy_value.cross_val import cross_val_policy_value
from policytree.evaluation.policy_value.further import WITHOUT_LIMITS
from policytree.evaluation.policy_value.tables import PolicyValueTable
from policytree.evaluation.policy_value.validation import (
    SPLIT,
    fewest_rows,
    refuse_small_arms,
)
from policytree.exceptions import InputError
from policytree.problem.split_columns import GROUPS
from policytree.report.material import Described
from policytree.report.sections.credibility import gated
from policytree.report.sections.question import check_section, question_section
from policytree.report.study_report import StudyReport
from policytree.study.study import Study, columns_in
from policytree.study_check.columns import rare_levels
from policytree.study_check.events import event_options
from policytree.study_check.findings import CENSORED, KNOWS_EVENT, RARE_CATEGORIES, StudyCheck, by_severity
from policytree.study_check.names import is_time
from policytree.weighting.covariates import Covariates
from policytree.weighting.stacked import study_mask

Written = list[tuple[Path, str]]  # paths and purposes
Show = Callable[[Written], None]
FEWEST_EVENTS = 5  # of an arm: so few in one fold of many are improbable


def run(job: Job) -> None:
    """Do the whole job.

    Raises
    ------
    InputError
        If data, options or the output folder cannot be used; what can be seen beforehand, before the computation.
    KeyboardInterrupt
        On Ctrl-C at any time, also where a search would have kept its best tree; nothing is written then.
    """
    carry_out(job.output, partial(_done, job, Console(highlight=False)))


def carry_out(output: str, compute: Callable[[Interrupts], tuple[Path, dict[str, bytes], Show]]) -> None:
    """Compute, write all files or none, and show the result, whatever Ctrl-C meets.

    Parameters
    ----------
    output : str
        The folder, as the user calls it.
    compute : callable
        From the interrupts to the folder, the files, and a function that shows the result with the files written.
    """
    written: Written = []
    try:
        with interrupts_remembered() as interrupts:
            folder, files, show = compute(interrupts)
            with interrupts.held():
                try:
                    written = write_files(folder, files)
                except InputError:  # a full disk must not cost the result
                    show([])
                    raise
        show(written)  # after writing: a closed terminal must not cost the result
    except KeyboardInterrupt:
        if written:
            raise KeyboardInterrupt(f"the files in '{output}' are complete.") from None
        raise


def _done(job: Job, console: Console, interrupts: Interrupts) -> tuple[Path, dict[str, bytes], Show]:
    """The folder, the files and what shows them, of a job that was computed."""
    check_level(job.level)
    job = replace(job, repeats=repeats_of(job.validation, job.repeats, job.honest, job.value))
    folder = check_folder(job.output)
    job, study, origin, described = begun(job)
    refuse_findings(described, study)
    if job.black_box and (not job.value or study.budget_costs):
        raise InputError(
            "--black-box judges a forest by the held-out value, and it knows no budget; leave it out, or --no-value "
            "and --budget."
        )
    if not job.json:
        print_sections(console, question_section(described), check_section(described))
    interrupts.check()
    result = _compute(job, study, origin, described, interrupts)
    about = replace(described.about, warnings=result.warnings, further=result.further)
    report = StudyReport.of_study(replace(described, about=about), result.estimator, result.found)
    return folder, result_files(job, result, report), partial(_print, console, job, result, report)


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
    study, origin = _study(job)
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
    described = origin.described(study, job.command, chosen, job.labels)
    described = replace(described, check=_with_rare_levels(described.check, study, tree))
    described = replace(described, about=replace(described.about, **job.names))
    return job, study, origin, described


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


def _refuse_covariates(study: Study) -> None:
    """Refuse now covariates from which no model could learn."""
    try:
        Covariates.fit(study.X, study.W).matrix(study.X, study.W)
    except InputError as error:
        raise InputError(str(error).replace(" of X ", " ").replace(" of W ", " ")) from error


def _print(console: Console, job: Job, result: Result, report: StudyReport, written: Written) -> None:
    """Show the result, and the files if there are any."""
    if job.json:
        print_json(design_data(job, result, report, written))
        return
    shown = [section for section in report.content.sections if section.key in PRINTED]
    print_sections(console, *shown, *([files_section(written)] if written else []))


def _study(job: Job) -> tuple[Study, Origin]:
    if job.target_people is not None and job.study_column is not None:
        raise InputError("--target-people and --study-column both say whom the rule is for; give one of them.")
    if job.dataset is not None:
        if job.study_column is not None:
            raise InputError("--study-column is for a file of study and target; with --dataset give --target-people.")
        study, origin = study_from_dataset(job.dataset, job.data_dir, job.options)
    elif job.data is None:
        raise InputError("Give a data file or --dataset.")
    elif job.study_column is not None:
        return _divided(job.data, job.study_column, job.options, job.reading)
    else:
        study, origin = study_from_file(job.data, job.options, job.reading)
    if job.target_people is None:
        return study, origin
    people = read_table(job.target_people, replace(job.reading, sheet=None)).frame
    return for_people(study, origin, people, f"--target-people {job.target_people}")


def _divided(path: str, column: str, options: StudyOptions, reading: Reading) -> tuple[Study, Origin]:
    """A file of the study and of the people of the target, told apart by a column."""
    frame, notes = read_table(path, reading)
    require_column(column, "--study-column", frame)
    mask = study_mask(frame[column], len(frame))
    others = frame.drop(columns=column)
    found = study_of_table(path, others[mask].reset_index(drop=True).infer_objects(), options, reading, notes)
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


def _compute(job: Job, study: Study, origin: Origin, described: Described, interrupts: Interrupts) -> Result:
    estimator = DRPolicyTree(direction=study.direction, cv=job.cv, random_state=job.seed, verbose=1, **job.tree)
    honest = None
    rows = "all rows" if job.honest is None else f"about {1 - job.honest:.0%} of the rows"
    with stage_progress() as display:
        steps = Steps(display, interrupts.check)
        title = f"Outcome models, rewards and tree on {rows}"
        with steps.step(title, "fitting outcome and propensity models", counts_models=True):
            if job.honest is None:
                estimator.fit(study)
            else:
                split: dict = {"honest": job.honest, "level": job.level, "random_state": job.seed}
                honest = honest_leaf_summary(estimator, study, **split)
        start = time.perf_counter()
        values = _values(job, study, estimator, honest, steps) if job.value else None
        seconds = 0.0 if values is None else (time.perf_counter() - start) / len(values.trees)
        shown = estimator if honest is None else honest.estimator
        if values is not None:
            (values,) = gated(described, [values])
        found, further = answers(job, Fitted(study, origin, shown, honest, values, seconds), steps)
        found = gated(described, found)
    leaves = _training_leaves(study, estimator) if honest is None else honest.leaves
    return Result(study, origin, shown, leaves, honest, values, found, further, tuple(steps.warnings.values()))


def _training_leaves(study: Study, estimator: DRPolicyTree) -> pd.DataFrame:
    """The leaves, by the rows that chose the tree."""
    data, rewards = study.data, estimator.rewards_
    received, groups = data.T, data.labels
    if data.study is None:  # the people of the target are those of the study
        return leaf_summary(estimator, study.X, rewards, T=received, groups=groups, sample_weight=data.sample_weight)
    rewards, weight = estimator.reward_estimator_.per_person(rewards, data.learning_weight, data.study)
    return leaf_summary(
        estimator, data.X, rewards, T=received, groups=groups, sample_weight=weight, study=data.study
    )  # fmt: skip


def _values(job: Job, study: Study, estimator, honest, steps: Steps) -> PolicyValueTable:
    """Held-out values: of refits, or of the tree shown if some rows were kept to evaluate it."""
    options = validation_options(job, None if honest is None else honest.rows, study.n + n_people(study))
    title = "Held-out value: everything again, refit by refit"
    if honest is not None:
        title = "Held-out value: of the rows that judge"
    with steps.step(title, where="in the refits", at_once=effective_n_jobs(job.tree["n_jobs"])) as progress:
        return cross_val_policy_value(
            estimator, study, level=job.level, random_state=job.seed, n_jobs=job.tree["n_jobs"], progress=progress,
            rivals=_rivals(study, estimator), black_box=job.black_box, **options,
        )  # fmt: skip


def _rivals(study: Study, estimator: DRPolicyTree) -> dict[str, PolicyTree]:
    """The tree without limits on outcomes and groups: what the limits cost, held out.

    With a budget as well there is none: rivals know no spending.
    """
    if not is_limited(estimator) or study.budget_costs:
        return {}
    return {WITHOUT_LIMITS: without_limits(estimator)}
