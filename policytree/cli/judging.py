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
from sklearn.base import clone

from policytree.cli.controls import chosen_control
from policytree.cli.files import read_tree, rows_digest
from policytree.cli.limits import BY_COLUMN, LISTED
from policytree.cli.predicting import actions_of, whole_table
from policytree.cli.printing import print_json, print_sections
from policytree.cli.reading import Reading
from policytree.cli.study import OUTCOME_OPTIONS, Roles, Study, combined_in, study_of_table
from policytree.cli.tables import AS_IT_IS, read_table
from policytree.common.option_words import comma_list
from policytree.common.progress import stage_progress
from policytree.common.study_columns import by_columns
from policytree.common.validation import check_level
from policytree.constraints.people import subgroup_columns
from policytree.evaluation.estimates import Estimate, mean_estimate
from policytree.evaluation.formatting import size_text
from policytree.evaluation.inference.best_arm import WHY_WIDER
from policytree.evaluation.policy_value.confounding import MOST_BENCHMARKS, Hidden, codes_of, hidden
from policytree.evaluation.policy_value.fixed_rules import RuleValues, compare_rules
from policytree.evaluation.policy_value.further import (
    JudgedGroups,
    broken_limits,
    gap_statement,
    gaps_by_limit,
    kept_probability,
)
from policytree.evaluation.policy_value.gates import Evidence, gates_of, given_chances
from policytree.evaluation.policy_value.rule_names import POLICY
from policytree.evaluation.policy_value.verdict import SecondOpinion, Verdict
from policytree.exceptions import InputError, UnseenValueWarning
from policytree.report.content import Section, Words
from policytree.report.material import Study as Described
from policytree.report.sections.answer import gates_table
from policytree.report.sections.credibility import make_means_section, rewards_check
from policytree.report.sections.further import further_section, groups_section
from policytree.report.sections.question import check_section, question_section
from policytree.report.sections.values import other_interval, rules_table, status_quo_words
from policytree.study_check import StudyCheck
from policytree.study_check.directions import direction_of
from policytree.trees.tree import Tree
from policytree.trees.unseen_values import sentence
from policytree.weighting.costs import treatment_costs
from policytree.weighting.instrument import COMPLIERS
from policytree.weighting.observed import WEIGHT
from policytree.weighting.reward_arguments import INSTRUMENT
from policytree.weighting.reward_estimator import MIXTURES, RewardEstimator
from policytree.weighting.stacking import LEARNERS_OF

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
    reading: Reading = AS_IT_IS,
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
    reading = reading.otherwise(design)
    frame, notes = read_table(data, reading)
    frame, roles, combined = combined_in(frame, _with_factors(roles, design, frame, tree))
    study = study_of_table(data, frame, _with_design(roles, design, frame), reading, notes, combined)
    _refuse_own_rows(study, design, data)
    asked = control or _design_control(design, study)
    label, chosen, named = chosen_control(asked, study)
    study = replace(study, combined=None)  # arms have the labels of the tree, whatever levels these rows have
    console, described = Console(highlight=False), study.described(control=chosen)
    if not as_json:
        print_sections(console, question_section(described), check_section(described))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)
        rules = {name: _labels(other, data, study, name) for name, other in {POLICY: tree, **others}.items()}
        with stage_progress(lines=False) as display, display.stage("Rewards of the new rows"):
            against_which = label if named else None
            of_offers: dict[str, Any] = (
                {} if study.instrument is None else {"method": INSTRUMENT, "estimand": COMPLIERS}
            )
            nuisances = RewardEstimator(cv=cv, random_state=seed, **of_offers)
            values, fitted = _values(study, rules, against_which, nuisances, level)
            opinions = _opinions(study, rules, against_which, fitted, level)
            concealed = _hidden(study, rules, fitted, values.verdict)
            further = {
                name: _further(study, name, rules, cv=cv, level=level, seed=seed) for name in study.limits.outcomes
            }
            groups = _groups(study, rules[POLICY], fitted, level)
    check = rewards_check(described, fitted)
    verdict = _gated(study, described, values.verdict, check, fitted, opinions, concealed)
    opinions = tuple(
        replace(each, verdict=_gated(study, described, each.verdict, check, fitted, (), None)) for each in opinions
    )
    said = [" ".join(str(warning.message).split()) for warning in heard]
    words = _words(study, values, design, cv)
    if as_json:
        print_json(_data(study, values, verdict, opinions, words, said) | _data_beside(study, further, groups, level))
        return
    assigned = "treatment" if study.instrument is None else "offers"
    other = tuple(Words(each.compared_with(verdict, assigned)) for each in opinions)
    table = Section("values", f"Value on the rows of {Path(data).name}", (rules_table(values), Words(words)))
    means = () if check is None else (make_means_section(described, check, fitted),)
    outcomes = further_section(further, study.limits.limits)
    beside = [] if outcomes is None else [outcomes]
    if groups is not None:
        beside.append(groups_section(groups.values(level), groups.gaps(study.limits.constraints, level), level))
    broken = [Words(text, "warning") for text in broken_limits(verdict.rule, further, study.limits.limits)]
    first = Section("verdict", "Verdict", (Words(str(verdict), "lead"), *broken, *other, gates_table(verdict.gates)))
    print_sections(console, first, table, *beside, *means)
    for text in said:
        typer.echo(f"Warning: {text}", err=True)


def _with_factors(roles: Roles, design: Mapping[str, Any], frame: pd.DataFrame, tree: Tree) -> Roles:
    """The design's several treatments, if the user named none, and the labels of their combinations."""
    factors, given = design.get("factors"), roles.treatment
    if given is None and isinstance(factors, list) and factors and set(factors) <= set(frame.columns):
        given = ",".join(f'"{name}"' for name in factors)
    return replace(roles, treatment=given, arms=tuple(map(str, tree.actions)))


def _gated(
    study: Study, described: Described, verdict: Verdict, check: StudyCheck | None, fitted: RewardEstimator,
    opinions: tuple[SecondOpinion, ...], concealed: Hidden | None,
) -> Verdict:  # fmt: skip
    """A verdict through all gates."""
    ways = direction_of(study.stated_direction, study.outcome, times=study.observed.times is not None)
    given = given_chances(study.observed, study.propensity)
    drawn = study.randomized or fitted.models_propensity_ is None
    evidence = Evidence(
        study.observed, ways, described.check, given, check, drawn, verdict.rule, opinions, concealed
    )  # fmt: skip
    return verdict.through(gates_of(evidence))


def _hidden(study: Study, rules: Mapping[str, np.ndarray], fitted: RewardEstimator, verdict: Verdict) -> Hidden | None:
    """How far what the verdict says moves where covariates are hidden; None where treatments were drawn by lot."""
    if study.randomized or fitted.models_propensity_ is None or study.instrument is not None:
        return None
    seen, fit = study.observed, {name: value for name, value in study.fit_arguments().items() if name != "propensity"}
    given = codes_of(seen.treatments, rules[POLICY], POLICY)
    return hidden(verdict, [given], np.arange(seen.n), seen, fitted, MOST_BENCHMARKS, fit)


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
            given[field.name] = comma_list(names) or None
    given |= _limits_as_in(design, roles, there)
    given |= _outcome_as_in(design, roles, frame)
    given |= _offers_as_in(design, roles, frame)
    assigned = roles.instrument or given.get("instrument") or roles.treatment or design.get("treatment")
    if roles.propensity is None and _has_same_arms(frame, assigned, design):
        given["propensity"] = design.get("propensity_option")
    if not roles.arm_cost and isinstance(costs := design.get("arm_costs"), dict):
        given["arm_cost"] = tuple(f"{label}={cost}" for label, cost in costs.items())
    return replace(roles, **given)


def _limits_as_in(design: Mapping[str, Any], roles: Roles, there: set[str]) -> dict[str, Any]:
    """The design's further outcomes and groups, of columns that the rows have and the user gave no such role."""
    named = {text.rpartition("=")[0].strip() for option in BY_COLUMN for text in getattr(roles, option)}
    given: dict[str, Any] = {}

    def usable(name: Any) -> bool:
        return isinstance(name, str) and name in there and name not in named

    for option in BY_COLUMN:
        texts = design.get(option)
        if not getattr(roles, option) and isinstance(texts, list):
            given[option] = tuple(t for t in texts if isinstance(t, str) and usable(t.rpartition("=")[0].strip()))
    for option in LISTED:
        names = design.get(option)
        if getattr(roles, option) is None and isinstance(names, list):
            given[option] = comma_list(name for name in names if usable(name)) or None
    if roles.worst_group is None and usable(design.get("worst_group")):
        given["worst_group"] = design["worst_group"]
    return given


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
    actions, unseen = actions_of(tree, whole_table(tree, data, study.reading))
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
    study: Study,
    rules: Mapping[str, np.ndarray],
    control: str | None,
    nuisances: RewardEstimator,
    level: float,
) -> tuple[RuleValues, RewardEstimator]:
    """Rewards by models cross-fitted on these rows, net of costs; then every rule on them."""
    arguments = study.fit_arguments()
    fitted = by_columns(nuisances.fit, **arguments)
    rewards, seen, sign = fitted.rewards_, study.observed, 1.0 if study.direction == "maximize" else -1.0
    costs = treatment_costs(study.costs(study.arm_costs), seen.n, list(rewards.columns))
    net, brought = rewards - sign * costs, fitted.outcome_.to_numpy()
    others = {name: labels for name, labels in rules.items() if name != POLICY}
    values = compare_rules(
        rules[POLICY], net, brought - sign * costs[np.arange(seen.n), seen.arm], others=others,
        control=next((label for label in seen.treatments.tolist() if str(label) == control), None),
        randomized=study.randomized, before_costs=(rewards, brought) if study.arm_costs else None,
        direction=study.direction, groups=arguments["groups"], sample_weight=arguments["sample_weight"], level=level,
    )  # fmt: skip
    return values, fitted


def _further(study: Study, name: str, rules: Mapping[str, np.ndarray], **how: Any) -> Mapping[str, Estimate]:
    """The mean of a further outcome under every rule, by its own models cross-fitted on these rows."""
    given = study.fit_arguments()
    column, direction = study.limits.fit_arguments(study.frame)["outcomes"][name]
    shared: dict[str, Any] = {
        key: given[key] for key in ("T", "X", "W", "propensity", "sample_weight", "groups", "strata")
    }
    if study.outcome_options["missing_outcome"] == WEIGHT:
        shared["missing_outcome"] = WEIGHT
    fitted = by_columns(RewardEstimator(cv=how["cv"], random_state=how["seed"]).fit, Y=column, **shared)
    return compare_rules(
        rules[POLICY], fitted.rewards_, fitted.outcome_.to_numpy(),
        others={rule: labels for rule, labels in rules.items() if rule != POLICY}, direction=direction,
        randomized=study.randomized,
        groups=shared["groups"], sample_weight=shared["sample_weight"], level=how["level"],
    ).estimates  # fmt: skip


def _groups(study: Study, policy: np.ndarray, fitted: RewardEstimator, level: float) -> JudgedGroups | None:
    """The groups of people on these rows, and what the tree gives and brings them, net of costs."""
    if not study.limits.subgroups:
        return None
    seen, rewards = study.observed, fitted.rewards_
    columns = subgroup_columns(study.frame[list(study.limits.subgroups)], seen.n)
    sign = 1.0 if study.direction == "maximize" else -1.0
    net = rewards - sign * treatment_costs(study.costs(study.arm_costs), seen.n, list(rewards.columns))
    codes = pd.Index(rewards.columns).get_indexer(pd.Index(policy))

    def judge(scores: list[np.ndarray], weight: np.ndarray, level: float) -> Estimate:
        return mean_estimate(scores[0], groups=seen.groups, sample_weight=weight, level=level)

    scores = net.to_numpy()[np.arange(seen.n), codes]
    return JudgedGroups(columns, seen.weight, rewards.columns.tolist(), [policy], [scores], judge)


def _data_beside(
    study: Study, further: Mapping[str, Mapping[str, Estimate]], groups: JudgedGroups | None, level: float
) -> dict[str, Any]:
    """Further outcomes and groups, as plain values."""
    parts = ("value", "standard_error", "lower", "upper")
    outcomes = [
        {"outcome": name, "rule": rule, **{part: getattr(each, part) for part in parts}}
        for name, rules in further.items()
        for rule, each in rules.items()
    ]
    kept = {name: kept_probability(limit, further[name][POLICY]) for name, limit in study.limits.limits.items()}
    return {
        "further_outcomes": outcomes,
        "kept_probability": kept,
        "groups": None if groups is None else groups.values(level).reset_index().to_dict("records"),
        "gaps": []
        if groups is None
        else [gap_statement(found) for found in gaps_by_limit(groups.gaps(study.limits.constraints, level))],
    }


def _opinions(
    study: Study, rules: Mapping[str, np.ndarray], control: str | None, fitted: RewardEstimator, level: float
) -> tuple[SecondOpinion, ...]:
    """The verdicts by the models of second least error; none where treatments were drawn by lot."""
    if study.randomized or fitted.models_propensity_ is None:
        return ()
    found = []
    for of, learner in fitted.second_best_learners_.items():
        other = clone(fitted).set_params(**{f"model_{MIXTURES[of]}": learner})
        verdict = _values(study, rules, control, other, level)[0].verdict
        found.append(SecondOpinion(of, LEARNERS_OF[of][learner], verdict))
    return tuple(found)


def _words(study: Study, values: RuleValues, design: Mapping[str, Any], cv: int) -> str:
    """The sentence that says which rows and rules the numbers belong to."""
    better, sign = ("higher", "above") if study.direction == "maximize" else ("lower", "below")
    rows = size_text(values.estimates[POLICY])
    mean = study.mean_outcome
    text = (
        f"{mean[0].upper()}{mean[1:]} if everybody followed the rule; {better} is better, and a difference {sign} zero "
        f"favours the tree. {status_quo_words(values.estimates)} "
        f"{' '.join([values.against_best.statement(values.digits), WHY_WIDER, *other_interval(values)])} "
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
    study: Study, values: RuleValues, verdict: Verdict, opinions: tuple[SecondOpinion, ...], words: str, said: list[str]
) -> dict[str, Any]:
    policy = values.estimates[POLICY]
    return {
        "verdict": verdict.to_dict(),
        "second_opinions": [each.to_dict() for each in opinions],
        "values": values.to_frame().reset_index().to_dict("records"),
        "level": policy.level,
        "rows": policy.n,
        "clusters": policy.n_clusters,
        "outcome": study.outcome,
        "direction": study.direction,
        "about": words,
        "warnings": said,
    }
