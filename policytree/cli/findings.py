"""What stands in the report before the tree: the check of the data, and whether effects differ at all."""

from __future__ import annotations

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from policytree.cli.records import Result
from policytree.cli.report import INDENT
from policytree.cli.study import Study
from policytree.estimators import DRPolicyTree
from policytree.evaluation.heterogeneity import HeterogeneityTest, heterogeneity_test
from policytree.progress import stage_progress
from policytree.study_check import StudyCheck, check_rewards, check_study


def check_section(study: Study) -> list[RenderableType]:
    """The data check in words, before anything is fitted."""
    data = study.fit_arguments()
    names = ("X", "T", "Y", "W", "groups", "sample_weight")
    return [Text(), Text("Data check", style="bold"), *_sentences(check_study(**{name: data[name] for name in names}))]


def _sentences(check: StudyCheck) -> list[RenderableType]:
    return [Padding(Text(line), INDENT, expand=False) for line in str(check).splitlines()]


def effects_section(result: Result) -> list[RenderableType]:
    """Treatments whose mean moves by adjustment, and the test of whether effects differ between people."""
    study, data = result.study, result.study.fit_arguments()
    rows = {name: data[name] for name in ("Y", "T", "groups", "sample_weight")}
    moved: list[RenderableType] = []
    if len(result.estimator.rewards_) == study.observed.n:
        check = check_rewards(rewards=result.estimator.rewards_, **rows)
        moved = _sentences(check) if check.findings else []
    with stage_progress() as display, display.stage("Do effects differ between people?"):
        display.detail("sequential outcome models")
        found = _tested(result.estimator, data, study)
    heading = [Text(), Text("Do effects differ between people?", style="bold")]
    return [*heading, Padding(Text(str(found)), INDENT, expand=False), *moved]


def _tested(estimator: DRPolicyTree, data: dict, study: Study) -> HeterogeneityTest:
    """With the fitted nuisances if they are of all rows, with new ones otherwise."""
    fitted = estimator.reward_estimator_
    known = {"fitted": fitted} if len(fitted.rewards_) == study.observed.n else {"estimator": fitted}
    return heterogeneity_test(**data, **known, random_state=estimator.random_state)
