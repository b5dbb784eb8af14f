"""Rules for several decisions: table in; trees, certificates and value out, on the terminal and in files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from policytree.cli.files import check_folder
from policytree.cli.first_checks import repeats_of
from policytree.cli.interrupts import Interrupts
from policytree.cli.job import Show, Written, carry_out
from policytree.cli.printing import PRINTED, files_section, print_json, print_sections
from policytree.cli.questions import Steps, validation_options
from policytree.cli.records import Job
from policytree.cli.regimes.files import regime_data, regime_files
from policytree.cli.regimes.visits import Visits, refuse_single, visits_of
from policytree.cli.tree_options import tree_size
from policytree.common.progress import stage_progress
from policytree.common.validation import check_level
from policytree.estimators.doubly_robust import DRPolicyTree
from policytree.estimators.leaf_sizes import default_leaf_sizes
from policytree.evaluation.policy_value.validation import ADAPTIVE
from policytree.evaluation.regimes.cross_val import cross_val_regime_value
from policytree.evaluation.regimes.tables import RegimeValueTable
from policytree.exceptions import InputError
from policytree.regimes.course import Course
from policytree.regimes.treatment_regime import TreatmentRegime
from policytree.report.described import About
from policytree.report.regime_report import RegimeReport

SHOWN = (*PRINTED, "rule", "support")


@dataclass(frozen=True, slots=True, eq=False)
class Learnt:
    """Results of a job.

    Attributes
    ----------
    regime : TreatmentRegime
        Fitted to everybody.
    values : RegimeValueTable or None
    warnings : tuple of str
    """

    regime: TreatmentRegime
    values: RegimeValueTable | None
    warnings: tuple[str, ...]


def run(job: Job) -> None:
    """Do the whole job.

    Raises
    ------
    InputError
        If data, options or the output folder cannot be used; what can be seen beforehand, before the computation.
    KeyboardInterrupt
        On Ctrl-C at any time; nothing is written then.
    """
    carry_out(job.output, partial(_done, job, Console(highlight=False)))


def _done(job: Job, console: Console, interrupts: Interrupts) -> tuple[Path, dict[str, bytes], Show]:
    """The folder, the files and what shows them, of a job that was computed."""
    check_level(job.level)
    refuse_single(job)
    job = replace(job, repeats=repeats_of(job.validation, job.repeats, job.honest, job.value))
    if job.repeats == ADAPTIVE:
        raise InputError("--repeats adaptive is about a single decision; with --id give a number.")
    folder = check_folder(job.output)
    visits = visits_of(job)
    control = _control(job, visits.course)
    estimators, notes = _estimators(job, visits)
    visits = replace(visits, notes=(*visits.notes, *notes))
    learnt = _learn(job, visits, estimators, control, interrupts)
    report = RegimeReport(
        learnt.regime, visits.stages, learnt.values, about=_about(job, visits, learnt.warnings, control),
        **{name: visits.fit_arguments[name] for name in ("sample_weight", "groups", "strata")},
    )  # fmt: skip
    learnt = replace(learnt, values=report.values)
    files = regime_files(job, visits, learnt.regime, learnt.values, report)
    return folder, files, partial(_print, console, job, learnt, report)


def _print(console: Console, job: Job, learnt: Learnt, report: RegimeReport, written: Written) -> None:
    """Show the result, and the files if there are any."""
    if job.json:
        print_json(regime_data(learnt.regime, learnt.values, report, learnt.warnings, written))
        return
    shown = [section for section in report.content.sections if section.key in SHOWN]
    print_sections(console, *shown, *([files_section(written)] if written else []))


def _control(job: Job, course: Course) -> tuple[str, ...] | None:
    """The fixed sequence of --control; what people got is the control if nobody names one."""
    if job.control is None:
        return None
    sequence = tuple(part.strip() for part in job.control.split(","))
    if len(sequence) != len(course):
        raise InputError(
            f"--control must be a sequence of {len(course)} treatments separated by commas, one for each decision; got "
            f"{job.control!r}."
        )
    return sequence


def _estimators(job: Job, visits: Visits) -> tuple[list[DRPolicyTree], list[str]]:
    """An unfitted tree for every decision, with the smallest leaves that its people can fill; and words for these."""
    tree, out, notes = job.tree, [], []
    size = tree_size(tree)
    plain: dict[str, Any] = {name: tree[name] for name in ("time_limit", "n_jobs")}
    asked = {name: tree[name] for name in ("min_samples_leaf", "min_samples_per_treatment")}
    for s, each in enumerate(visits.course.decisions):
        rows = np.flatnonzero(each.eligible)
        to_go = np.sum([one.outcome[rows] for one in visits.course.decisions[s:]], axis=0)
        known = ~np.isnan(to_go)
        if not known.any():
            raise InputError(f"Everybody was lost after {each.name}: nothing is known of what it brought.")
        leaf, per_arm = default_leaf_sizes(to_go[known], each.arm[rows][known], each.n_arms)
        usual = {"min_samples_leaf": 1 if asked["min_samples_per_treatment"] == 0 else leaf,
                 "min_samples_per_treatment": per_arm}  # fmt: skip
        sizes: dict[str, Any] = {name: usual[name] if value is None else value for name, value in asked.items()}
        out.append(
            DRPolicyTree(
                direction=visits.direction, cv=job.cv, random_state=job.seed, verbose=1, **size, **plain, **sizes
            )
        )
        notes.append(
            f"At {each.name} every leaf holds at least {sizes['min_samples_leaf']:,} people, and "
            f"{sizes['min_samples_per_treatment']:,} of every treatment (--min-samples-leaf, "
            "--min-samples-per-treatment)."
        )
    return out, notes if None in asked.values() else []


def _learn(
    job: Job, visits: Visits, estimators: list[DRPolicyTree], control: tuple[str, ...] | None, interrupts: Interrupts
) -> Learnt:
    """The regime of everybody, and what such regimes are worth to people who had no part in them."""
    regime = TreatmentRegime(estimators, history=job.history or "all", random_state=job.seed)
    how, values = visits.fit_arguments, None
    with stage_progress() as display:
        steps = Steps(display, interrupts.check)
        with steps.step("Models, scores and trees of all decisions", "the last decision first"):
            regime.fit(visits.stages, **how)
        if job.value:
            with steps.step("Held-out value: everything again, refit by refit", where="in the refits") as progress:
                values = cross_val_regime_value(
                    regime, visits.stages, **how, control=control, level=job.level, random_state=job.seed,
                    n_jobs=job.tree["n_jobs"], progress=progress, **validation_options(job, None, visits.course.n),
                )  # fmt: skip
    return Learnt(regime, values, tuple(steps.warnings.values()))


def _about(job: Job, visits: Visits, heard: tuple[str, ...], control: tuple[str, ...] | None) -> About:
    """Collect the report's statements beside its numbers."""
    options = job.options
    named: dict[str, Any] = {"outcome": f"total {visits.outcome}", "treatment": visits.treatment, **job.names}
    return About(
        source=visits.source, cluster=options.cluster or "", weights=options.weights or "", strata=visits.strata,
        propensity=visits.propensity_text, notes=visits.notes, warnings=heard, command=job.command,
        costs=visits.costs_text, control="what people got" if control is None else " then ".join(control), **named,
    )  # fmt: skip
