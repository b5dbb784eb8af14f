"""The value of a saved tree on new rows, with intervals, beside the alternatives."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer
from rich.console import Console

from policytree.cli.controls import chosen_control
from policytree.cli.files import read_tree, rows_digest
from policytree.cli.predicting import actions_of, whole_table
from policytree.cli.printing import print_json, print_sections
from policytree.cli.study import OUTCOME_OPTIONS, Roles, Study, study_of_table
from policytree.cli.tables import read_table
from policytree.common.progress import stage_progress
from policytree.common.validation import check_level
from policytree.evaluation import POLICY, RuleValues, SecondOpinion, Verdict, compare_rules
from policytree.evaluation.formatting import size_text
from policytree.evaluation.inference.best_arm import WHY_WIDER
from policytree.exceptions import InputError, UnseenValueWarning
from policytree.report.content import Section, Words
from policytree.report.sections.credibility import doubts, make_means_section, rewards_check
from policytree.report.sections.question import check_section, question_section
from policytree.report.sections.values import rules_table
from policytree.trees.tree import Tree
from policytree.trees.unseen_values import sentence
from policytree.weighting import RewardEstimator, treatment_costs
from policytree.weighting.instrument import COMPLIERS
from policytree.weighting.reward_arguments import INSTRUMENT
from policytree.weighting.stacking import PROPENSITY_LEARNERS

ONE_COLUMN = ("treatment", "outcome", "cluster", "weights")


def judge(
    path: str,
    data: str,
    roles: Roles,
    against: tuple[str, ...],
    *,
    control: str | None = None,
    cv: int,
    level: float,
    seed: int,
    as_json: bool,
) -> None:
    """Evaluate the tree, and print the result.

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
    study = study_of_table(data, frame, _with_design(roles, design, frame))
    _refuse_own_rows(study, design, data)
    asked = control or _design_control(design, study)
    label, chosen, named = chosen_control(asked, study)
    console, described = Console(highlight=False), study.described(control=chosen)
    if not as_json:
        print_sections(console, question_section(described), check_section(described))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)
        rules = {name: _labels(other, data, study, name) for name, other in {POLICY: tree, **others}.items()}
        with stage_progress(lines=False) as display, display.stage("Rewards of the new rows"):
            against_which = label if named else None
            values, fitted = _values(study, rules, against_which, "auto", cv=cv, level=level, seed=seed)
            second = _second_opinion(study, rules, against_which, fitted, cv=cv, level=level, seed=seed)
    check = rewards_check(described, fitted)
    verdict = values.verdict.doubted(doubts(described, check))
    said = [" ".join(str(warning.message).split()) for warning in heard]
    words = _words(study, values, design, cv)
    if as_json:
        print_json(_data(study, values, verdict, second, words, said))
        return
    other = (
        ()
        if second is None
        else (Words(second.compared_with(verdict, "treatment" if study.instrument is None else "offers")),)
    )
    table = Section("values", f"Value on the rows of {Path(data).name}", (rules_table(values), Words(words)))
    means = () if check is None else (make_means_section(described, check, fitted),)
    print_sections(console, Section("verdict", "Verdict", (Words(str(verdict), "lead"), *other)), table, *means)
    for text in said:
        typer.echo(f"Warning: {text}", err=True)


def _with_design(roles: Roles, design: Mapping[str, Any], frame: pd.DataFrame) -> Roles:
    """The roles that the user did not name, as the design had them, as far as the new table has such columns."""
    given: dict[str, Any] = {}
    there = set(frame.columns)
    for field in fields(Roles):
        if getattr(roles, field.name) not in (None, ()):
            continue
        value = design.get(field.name)
        if isinstance(value, str) and field.name in (*ONE_COLUMN, "direction"):
            if field.name == "direction" or value in there:
                given[field.name] = value
        elif field.name in ("covariates", "confounders") and isinstance(value, list):
            names = [name for name in value if isinstance(name, str) and name in there]
            given[field.name] = ",".join(f'"{name}"' for name in names) or None
    given |= _outcome_as_in(design, roles, frame)
    given |= _offers_as_in(design, roles, frame)
    assigned = roles.instrument or given.get("instrument") or roles.treatment or design.get("treatment")
    if roles.propensity is None and _has_same_arms(frame, assigned, design):
        given["propensity"] = design.get("propensity_option")
    if not roles.arm_cost and isinstance(costs := design.get("arm_costs"), dict):
        given["arm_cost"] = tuple(f"{label}={cost}" for label, cost in costs.items())
    return replace(roles, **given)


def _outcome_as_in(design: Mapping[str, Any], roles: Roles, frame: pd.DataFrame) -> dict[str, Any]:
    """How the design's outcome was observed, as far as the user did not say it; nothing of another outcome.

    Raises
    ------
    InputError
        If times, as outcomes, lack the column that says how they ended, or that of their entry.
    """
    names = [name for name in ("event", *OUTCOME_OPTIONS) if name != "instrument"]
    saved = {name: design[name] for name in names if isinstance(design.get(name), str)}
    if isinstance(horizon := design.get("horizon"), int | float) and not isinstance(horizon, bool):
        saved["horizon"] = horizon
    if roles.outcome not in (None, design.get("outcome")):
        return {}
    if roles.event_column not in (None, saved.get("event_column")):
        for name in ("event", "cause"):  # values of the other column
            saved.pop(name, None)
    if roles.event is not None:
        saved.pop("cause", None)
    if roles.cause is not None:
        saved.pop("event", None)
    given = {name: value for name, value in saved.items() if getattr(roles, name) is None}
    for name in ("event_column", "entry_column"):
        if name in given and given[name] not in frame.columns:
            option = f"--{name.replace('_', '-')}"
            raise InputError(
                f"In the design, outcomes were times with {option} {given[name]}, a column that these rows do not "
                f"have; name it by {option}."
            )
    return given


def _offers_as_in(design: Mapping[str, Any], roles: Roles, frame: pd.DataFrame) -> dict[str, Any]:
    """The design's column of offers and the cost of takers, as far as the user did not name them.

    Raises
    ------
    InputError
        If the rows lack the column.
    """
    instrument, cost = design.get("instrument"), design.get("taker_cost")
    if not isinstance(instrument, str) or roles.treatment not in (None, design.get("treatment")):
        return {}
    given: dict[str, Any] = {} if roles.instrument is not None else {"instrument": instrument}
    if given and instrument not in frame.columns:
        raise InputError(
            f"In the design, people could refuse what they were offered (--instrument {instrument}), in a column that "
            "these rows do not have; name it by --instrument."
        )
    if roles.taker_cost is None and isinstance(cost, int | float) and not isinstance(cost, bool) and cost:
        given["taker_cost"] = float(cost)
    return given


def _has_same_arms(frame: pd.DataFrame, treatment: Any, design: Mapping[str, Any]) -> bool:
    """Whether the probabilities of treatment (of offers: its column) of a design can be those of these rows."""
    option, columns, arms = (design.get(f"propensity_{what}") for what in ("option", "columns", "arms"))
    if not (isinstance(option, str) and isinstance(columns, list) and isinstance(arms, list)):
        return False
    if treatment not in frame.columns or not set(columns) <= set(frame.columns):
        return False
    return {str(label) for label in frame[treatment].dropna().unique().tolist()} == set(arms)


def _refuse_own_rows(study: Study, design: Mapping[str, Any], data: str) -> None:
    """Refuse the rows that chose the tree: a value on them would be too optimistic."""
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


def _design_control(design: Mapping[str, Any], study: Study) -> str | None:
    """The control that the design named, if these rows have it."""
    options = design.get("options")
    control = options.get("control") if isinstance(options, dict) else None
    return control if control in {str(label) for label in study.observed.treatments.tolist()} else None


def _values(
    study: Study, rules: Mapping[str, np.ndarray], control: str | None, models: str, *, cv: int, level: float, seed: int
) -> tuple[RuleValues, RewardEstimator]:
    """Rewards by models cross-fitted on these rows, net of costs; then every rule on them."""
    arguments = study.fit_arguments()
    of_offers: dict[str, Any] = {} if study.instrument is None else {"method": INSTRUMENT, "estimand": COMPLIERS}
    fitted = RewardEstimator(model_propensity=models, cv=cv, random_state=seed, **of_offers).fit(**arguments)
    rewards, seen, sign = fitted.rewards_, study.observed, 1.0 if study.direction == "maximize" else -1.0
    costs = treatment_costs(study.costs(study.arm_costs), seen.n, list(rewards.columns))
    net, brought = rewards - sign * costs, fitted.outcome_.to_numpy()
    others = {name: labels for name, labels in rules.items() if name != POLICY}
    values = compare_rules(
        rules[POLICY], net, brought - sign * costs[np.arange(seen.n), seen.arm], others=others,
        control=next((label for label in seen.treatments.tolist() if str(label) == control), None),
        before_costs=(rewards, brought) if study.arm_costs else None,
        direction=study.direction, groups=arguments["groups"], sample_weight=arguments["sample_weight"], level=level,
    )  # fmt: skip
    return values, fitted


def _second_opinion(
    study: Study, rules: Mapping[str, np.ndarray], control: str | None, fitted: RewardEstimator, **how: Any
) -> SecondOpinion | None:
    """The verdict by the models of treatment of second least error; None where nothing was estimated."""
    second = fitted.second_best_learner_
    if second is None:
        return None
    return SecondOpinion(PROPENSITY_LEARNERS[second], _values(study, rules, control, second, **how)[0].verdict)


def _words(study: Study, values: RuleValues, design: Mapping[str, Any], cv: int) -> str:
    """The sentence that says which rows and rules the numbers belong to."""
    better, sign = ("higher", "above") if study.direction == "maximize" else ("lower", "below")
    rows = size_text(values.estimates[POLICY])
    mean = study.mean_outcome
    text = (
        f"{mean[0].upper()}{mean[1:]} if everybody followed the rule; {better} is better, and a difference {sign} zero "
        f"speaks for the tree. Status quo: what people got. {values.against_best.statement(values.digits)} {WHY_WIDER} "
        f"By {rows} of {study.source}: doubly robust scores of {cv}-fold cross-fitted outcome models, propensities "
        f"{study.propensity_text}. The tree was not learnt again; values and intervals hold only if all rows are new. "
        "The whole table of the design is recognised and refused; a part of it is not, so make sure that no row had a "
        "part in choosing the tree."
    )
    if study.instrument is not None:
        text += " Values are per person of all: those who do not follow the offers count as zero."
    known = design.get("propensity")
    if isinstance(known, str) and known.startswith("known"):
        how = known.removeprefix("known: ")
        if study.propensity is None:
            text += f" In the design they were known ({how}); if that holds here too, give --propensity."
        elif study.propensity_option == design.get("propensity_option"):
            text += (
                " They are those of the design; if these rows had others, give --propensity, or --propensity estimated."
            )
    return text


def _data(
    study: Study, values: RuleValues, verdict: Verdict, second: SecondOpinion | None, words: str, said: list[str]
) -> dict[str, Any]:
    policy = values.estimates[POLICY]
    return {
        "verdict": verdict.to_dict(),
        "second_opinion": None if second is None else {"model": second.model, "verdict": second.verdict.to_dict()},
        "values": values.to_frame().reset_index().to_dict("records"),
        "level": policy.level,
        "rows": policy.n,
        "clusters": policy.n_clusters,
        "outcome": study.outcome,
        "direction": study.direction,
        "about": words,
        "warnings": said,
    }
