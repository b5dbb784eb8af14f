"""The main job: study in; tree, certificate and value out, on the terminal and in files."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd
from joblib import effective_n_jobs
from rich.console import Console

from policytree.cli.beginning import begun, refuse_findings
from policytree.cli.files import check_folder, design_data, result_files, write_files
from policytree.cli.first_checks import repeats_of
from policytree.cli.interrupts import Interrupts, interrupts_remembered
from policytree.cli.printing import PRINTED, files_section, print_json, print_sections
from policytree.cli.questions import Fitted, Steps, answers, validation_options
from policytree.cli.records import Job, Result
from policytree.cli.study import Origin
from policytree.cli.tree_options import n_people
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
from policytree.exceptions import InputError
from policytree.report.described import Described
from policytree.report.sections.credibility import gated
from policytree.report.sections.question import check_section, question_section
from policytree.report.study_report import StudyReport
from policytree.study.study import Study

Written = list[tuple[Path, str]]  # paths and purposes
Show = Callable[[Written], None]


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


def _print(console: Console, job: Job, result: Result, report: StudyReport, written: Written) -> None:
    """Show the result, and the files if there are any."""
    if job.json:
        print_json(design_data(job, result, report, written))
        return
    shown = [section for section in report.content.sections if section.key in PRINTED]
    print_sections(console, *shown, *([files_section(written)] if written else []))


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
