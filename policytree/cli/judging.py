"""A saved tree on new rows: what it is worth, with intervals, against everything else one could do."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console

from policytree.checks import check_level
from policytree.cli.files import read_tree, rows_digest
from policytree.cli.predicting import actions_of, whole_table
from policytree.cli.printing import print_json, print_sections
from policytree.cli.study import Roles, Study, study_of_table
from policytree.cli.tables import read_table
from policytree.evaluation import POLICY, RuleValues, compare_rules
from policytree.evaluation.best_arm import WHY_WIDER
from policytree.evaluation.numbers import size_text
from policytree.exceptions import InputError, UnseenValueWarning
from policytree.progress import stage_progress
from policytree.report.content import Section, Words
from policytree.report.sections.question import check_section, question_section
from policytree.report.sections.values import rules_table
from policytree.tree import Tree
from policytree.unseen import sentence
from policytree.weighting import RewardEstimator, treatment_costs

ONE_COLUMN = ("treatment", "outcome", "cluster", "weights")


def judge(
    path: str, data: str, roles: Roles, against: tuple[str, ...], *, cv: int, level: float, seed: int, as_json: bool
) -> None:
    """Do it all, and print it.

    Raises
    ------
    InputError
        If a file or an option cannot be used, or the rows are those that chose the tree.
    """
    check_level(level)
    tree, saved = read_tree(path)
    design = saved.get("design")
    design = design if isinstance(design, dict) else {}
    others = {Path(name).name: read_tree(name)[0] for name in against}
    if len(others) < len(against):
        raise InputError("--against names two files of one name; rename one, so that they can be told apart.")
    frame = read_table(data)
    study = study_of_table(data, frame, _with_design(roles, design, set(frame.columns)))
    _refuse_own_rows(study, design, data)
    console, described = Console(highlight=False), study.described()
    if not as_json:
        print_sections(console, question_section(described), check_section(described))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)
        rules = {name: _labels(other, data, study, name) for name, other in {POLICY: tree, **others}.items()}
        with stage_progress(lines=False) as display, display.stage("Rewards of the new rows"):
            values = _values(study, rules, cv=cv, level=level, seed=seed)
    said = [" ".join(str(warning.message).split()) for warning in heard]
    words = _words(study, values, design, cv)
    if as_json:
        print_json(_data(study, values, words, said))
        return
    verdict = Section("verdict", "Verdict", (Words(str(values.verdict), "lead"),))
    table = Section("values", f"Value on the rows of {Path(data).name}", (rules_table(values), Words(words)))
    print_sections(console, verdict, table)
    for text in said:
        typer.echo(f"Warning: {text}", err=True)


def _with_design(roles: Roles, design: Mapping[str, Any], there: set[str]) -> Roles:
    """The roles that the user did not name, as the design had them, as far as the new table has such columns."""
    given: dict[str, Any] = {}
    for field in fields(Roles):
        if getattr(roles, field.name) not in (None, ()):
            continue
        value = design.get(field.name)
        if isinstance(value, str) and (field.name in ("event", "direction") or value in there):
            if field.name in (*ONE_COLUMN, "event", "direction"):
                given[field.name] = value
        elif field.name in ("covariates", "confounders") and isinstance(value, list):
            names = [name for name in value if isinstance(name, str) and name in there]
            given[field.name] = ",".join(f'"{name}"' for name in names) or None
    if roles.outcome is not None and roles.outcome != design.get("outcome"):
        given.pop("event", None)
    if not roles.arm_cost and isinstance(costs := design.get("arm_costs"), dict):
        given["arm_cost"] = tuple(f"{label}={cost}" for label, cost in costs.items())
    return replace(roles, **given)


def _refuse_own_rows(study: Study, design: Mapping[str, Any], data: str) -> None:
    """A value on the rows that chose the tree would flatter it."""
    covariates = design.get("covariates")
    if not isinstance(covariates, list) or not all(isinstance(name, str) for name in covariates):
        return
    own = rows_digest(study.frame, [study.outcome, study.treatment, *covariates])
    if own is not None and own == design.get("rows"):
        raise InputError(
            f"'{data}' holds the very rows that chose this tree, on which it flatters itself; give other rows, or read "
            "the held-out value in the report of `policytree design`."
        )


def _labels(tree: Tree, data: str, study: Study, name: str) -> np.ndarray:
    """The treatment that a tree gives every row, among those of the study."""
    actions, unseen = actions_of(tree, whole_table(tree, data))
    for part in unseen:
        warnings.warn(f"{name}: {sentence(tree, part)}", UnseenValueWarning, stacklevel=2)
    labels = {str(label): label for label in study.observed.treatments.tolist()}
    unknown = sorted({str(action) for action in actions} - set(labels))
    if unknown:
        raise InputError(
            f"The {name} gives {unknown[0]!r}, which nobody in column {study.treatment!r} of '{data}' got; rows with "
            f"that treatment are needed (there are {', '.join(labels)})."
        )
    return np.array([labels[str(action)] for action in actions], dtype=study.observed.treatments.dtype)


def _values(study: Study, rules: Mapping[str, np.ndarray], *, cv: int, level: float, seed: int) -> RuleValues:
    """Rewards by models cross-fitted on these rows, net of costs; then every rule on them."""
    arguments = study.fit_arguments()
    rewards = RewardEstimator(cv=cv, random_state=seed).fit_predict(**arguments)
    seen, sign = study.observed, 1.0 if study.direction == "maximize" else -1.0
    costs = treatment_costs(study.costs(study.arm_costs), seen.n, list(rewards.columns))
    net = rewards - sign * costs
    others = {name: labels for name, labels in rules.items() if name != POLICY}
    return compare_rules(
        rules[POLICY], net, seen.y - sign * costs[np.arange(seen.n), seen.arm], others=others,
        direction=study.direction, groups=arguments["groups"], sample_weight=arguments["sample_weight"], level=level,
    )  # fmt: skip


def _words(study: Study, values: RuleValues, design: Mapping[str, Any], cv: int) -> str:
    """What the numbers are of."""
    better, sign = ("higher", "above") if study.direction == "maximize" else ("lower", "below")
    rows = size_text(values.estimates[POLICY])
    text = (
        f"Mean {study.outcome} if everybody followed the rule; {better} is better, and a difference {sign} zero speaks "
        f"for the tree. Status quo: what people got. {values.against_best.statement(values.digits)} {WHY_WIDER} "
        f"By {rows} of {study.source}: doubly robust scores of {cv}-fold cross-fitted outcome models, propensities "
        f"{study.propensity_text}. The tree was not learnt again; values and intervals hold only if all rows are new. "
        "The whole table of the design is recognised and refused; a part of it is not, so make sure that no row had a "
        "part in choosing the tree."
    )
    known = design.get("propensity")
    if study.propensity is None and isinstance(known, str) and known.startswith("known"):
        how = known.removeprefix("known: ")
        text += f" In the design they were known ({how}); if that holds here too, give --propensity."
    return text


def _data(study: Study, values: RuleValues, words: str, said: list[str]) -> dict[str, Any]:
    policy = values.estimates[POLICY]
    return {
        "verdict": values.verdict.to_dict(),
        "values": values.to_frame().reset_index().to_dict("records"),
        "level": policy.level,
        "rows": policy.n,
        "clusters": policy.n_clusters,
        "outcome": study.outcome,
        "direction": study.direction,
        "about": words,
        "warnings": said,
    }
