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
from policytree.cli.files import read_tree, rows_of
from policytree.cli.limits import BY_COLUMN, LISTED
from policytree.cli.predicting import actions_of, whole_table
from policytree.cli.printing import print_json, print_sections
from policytree.cli.reading import Reading
from policytree.cli.study import OUTCOME_OPTIONS, Origin, options_of, study_of_table, with_known_arms
from policytree.cli.study_options import COLUMN, COLUMNS, StudyOptions, option
from policytree.cli.tables import AS_IT_IS, read_table
from policytree.common.option_words import comma_list
from policytree.common.progress import stage_progress
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
from policytree.report.described import Described
from policytree.report.sections.answer import gates_table
from policytree.report.sections.credibility import make_means_section, rewards_check
from policytree.report.sections.further import further_section, groups_section
from policytree.report.sections.question import check_section, question_section
from policytree.report.sections.values import other_interval, rules_table, status_quo_words
from policytree.study import MayBeMissing
from policytree.study.study import Study
from policytree.study_check import StudyCheck
from policytree.trees.tree import Tree
from policytree.trees.unseen_values import sentence
from policytree.weighting.costs import treatment_costs
from policytree.weighting.instrument import COMPLIERS
from policytree.weighting.reward_arguments import INSTRUMENT
from policytree.weighting.reward_estimator import MIXTURES, RewardEstimator
from policytree.weighting.stacking import LEARNERS_OF


def judge(
    path: str,
    data: str,
    options: StudyOptions,
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
    asked, arms = _with_factors(options, design, frame), tuple(map(str, tree.actions))
    frame, asked, combined = with_known_arms(frame, asked, arms)  # as the tree knows them, whatever levels rows have
    study, origin = study_of_table(data, frame, _with_design(asked, design, frame), reading, notes, combined)
    _refuse_own_rows(origin.gross or study, design, data)
    label, chosen, named = chosen_control(control or _design_control(design, study), study, combined)
    if named:
        study = study.replace(control=next(each for each in study.treatments if str(each) == label))
    console, described = Console(highlight=False), origin.described(study, control=chosen)
    if not as_json:
        print_sections(console, question_section(described), check_section(described))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)
        rules = {name: _labels(other, data, study, reading, name) for name, other in {POLICY: tree, **others}.items()}
        with stage_progress(lines=False) as display, display.stage("Rewards of the new rows"):
            offered = study.observed.instrument is not None
            of_offers: dict[str, Any] = {"method": INSTRUMENT, "estimand": COMPLIERS} if offered else {}
            values, fitted = _values(study, rules, RewardEstimator(cv=cv, random_state=seed, **of_offers), level)
            opinions = _opinions(study, rules, fitted, level)
            concealed = _hidden(study, rules, fitted, values.verdict)
            further = {
                name: _further(study, name, rules, cv=cv, level=level, seed=seed) for name in study.further_outcomes
            }
            groups = _groups(study, rules[POLICY], fitted, level)
    check = rewards_check(described, fitted)
    verdict = _gated(study, described, values.verdict, check, fitted, opinions, concealed)
    opinions = tuple(
        replace(each, verdict=_gated(study, described, each.verdict, check, fitted, (), None)) for each in opinions
    )
    said = [" ".join(str(warning.message).split()) for warning in heard]
    words, limits = _words(study, values, design, cv), origin.limits.limits
    if as_json:
        beside = _data_beside(origin, further, groups, level)
        print_json(_data(study, values, verdict, opinions, words, said) | beside)
        return
    other = tuple(Words(each.compared_with(verdict)) for each in opinions)
    table = Section("values", f"Value on the rows of {Path(data).name}", (rules_table(values), Words(words)))
    means = () if check is None else (make_means_section(described, check, fitted),)
    outcomes = further_section(further, limits)
    more = [] if outcomes is None else [outcomes]
    if groups is not None:
        more.append(groups_section(groups.values(level), groups.gaps(origin.limits.constraints, level), level))
    broken = [Words(text, "warning") for text in broken_limits(verdict.rule, further, limits)]
    first = Section("verdict", "Verdict", (Words(str(verdict), "lead"), *broken, *other, gates_table(verdict.gates)))
    print_sections(console, first, table, *more, *means)
    for text in said:
        typer.echo(f"Warning: {text}", err=True)


def _with_factors(options: StudyOptions, design: Mapping[str, Any], frame: pd.DataFrame) -> StudyOptions:
    """The design's several treatments, if the user named none."""
    factors = design.get("factors")
    if options.treatment is None and isinstance(factors, list) and factors and set(factors) <= set(frame.columns):
        return replace(options, treatment=comma_list(factors))
    return options


def _gated(
    study: Study, described: Described, verdict: Verdict, check: StudyCheck | None, fitted: RewardEstimator,
    opinions: tuple[SecondOpinion, ...], concealed: Hidden | None,
) -> Verdict:  # fmt: skip
    """A verdict through all gates."""
    given = given_chances(study.observed, study.observed.propensity)
    drawn = bool(study.randomized) or fitted.models_propensity_ is None
    evidence = Evidence(
        study.observed, study.ways, described.check, given, check, drawn, verdict.rule, opinions, concealed
    )  # fmt: skip
    return verdict.through(gates_of(evidence))


def _hidden(study: Study, rules: Mapping[str, np.ndarray], fitted: RewardEstimator, verdict: Verdict) -> Hidden | None:
    """How far what the verdict says moves where covariates are hidden; None where treatments were drawn by lot."""
    if study.randomized or fitted.models_propensity_ is None or study.observed.instrument is not None:
        return None
    seen = replace(study.data, propensity=None)
    given = codes_of(seen.treatments, rules[POLICY], POLICY)
    return hidden(verdict, [given], np.arange(seen.n), seen, fitted, MOST_BENCHMARKS)


def _with_design(options: StudyOptions, design: Mapping[str, Any], frame: pd.DataFrame) -> StudyOptions:
    """The options that the user did not give, as the design had them, as far as the new table has such columns.

    Raises
    ------
    InputError
        If times, as outcomes, lack the column that says how they ended, or that of their entry; or offers theirs.
    """
    saved, asked = _saved(design), {each.name: getattr(options, each.name) for each in fields(options)}
    own = {name: value for name, value in saved.items() if asked[name] in (None, ())}
    if options.outcome not in (None, saved.get("outcome")):
        of_outcome = {"event", *OUTCOME_OPTIONS} - {"instrument"}
        own = {name: value for name, value in own.items() if name not in of_outcome}
    if options.treatment not in (None, saved.get("treatment")) or "instrument" not in saved:
        own = {name: value for name, value in own.items() if name not in ("instrument", "taker_cost")}
    if options.event_column not in (None, saved.get("event_column")):
        own = {name: value for name, value in own.items() if name not in ("event", "cause")}  # of the other column
    for name, other in (("event", "cause"), ("cause", "event")):
        if asked[name] is not None:
            own.pop(other, None)
    for name in ("event_column", "entry_column", "instrument"):
        if own.get(name, frame.columns[0]) not in frame.columns:
            asked_for = f"{option(name)} {own[name]}"
            offered = f"people could refuse what they were offered ({asked_for})"
            were = offered if name == "instrument" else f"outcomes were times with {asked_for}"
            raise InputError(f"In the design, {were}, a column that these rows do not have; name it by {option(name)}.")
    assigned = options.instrument or own.get("instrument") or options.treatment or design.get("treatment")
    if not _has_same_arms(frame, assigned, design):
        own.pop("propensity", None)
    named = {text.rpartition("=")[0].strip() for name in BY_COLUMN for text in asked[name]}
    found = {name: _there(name, value, {*frame.columns} - named, frame) for name, value in own.items()}
    return replace(options, **{name: value for name, value in found.items() if value is not None})


def _saved(design: Mapping[str, Any]) -> dict[str, Any]:
    """Read a design's options of its study, by their names; values of an unexpected kind are left out."""
    renamed = {"propensity": "propensity_option", "arm_cost": "arm_costs"}
    kinds = {"float | None": int | float, "tuple[str, ...]": list | dict}
    found: dict[str, Any] = {}
    for each in fields(StudyOptions):
        value = design.get(renamed.get(each.name, each.name))
        kind = list if each.metadata["metavar"] == COLUMNS else kinds.get(str(each.type), str)
        if isinstance(value, dict):
            value = [f"{label}={cost}" for label, cost in value.items()]
        if value and isinstance(value, kind) and not isinstance(value, bool):
            found[each.name] = tuple(map(str, value)) if isinstance(value, list) else value
    return found


def _there(name: str, value: Any, free: set[str], frame: pd.DataFrame) -> Any:
    """An option of the design, as far as it names columns that there are; of further ones that the user named not."""
    metavar = StudyOptions.__dataclass_fields__[name].metadata["metavar"]
    if metavar == COLUMNS:
        known = free if name in LISTED else {*frame.columns}
        return comma_list(column for column in value if column in known) or None
    if name in BY_COLUMN:
        return tuple(text for text in value if text.rpartition("=")[0].strip() in free)
    if metavar != COLUMN:
        return value
    return value if value in (free if name == "worst_group" else {*frame.columns}) else None


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
    own = rows_of(study, covariates)
    if own is not None and own == design.get("rows"):
        raise InputError(
            f"'{data}' holds the very rows that chose this tree, on which it flatters itself; give other rows, or read "
            "the held-out value in the report of `policytree design`."
        )


def _labels(tree: Tree, data: str, study: Study, reading: Reading, name: str) -> np.ndarray:
    """The treatment that a tree gives every row, among those of the study."""
    actions, unseen = actions_of(tree, whole_table(tree, data, reading))
    for part in unseen:
        warnings.warn(f"{name}: {sentence(tree, part)}", UnseenValueWarning, stacklevel=2)
    labels = {str(label): label for label in study.treatments}
    unknown = sorted({str(action) for action in actions} - set(labels))
    if unknown:
        raise InputError(
            f"The {name} gives {unknown[0]!r}, which nobody in column {study.treatment.column!r} of '{data}' got; rows "
            f"with that treatment are needed (there are {', '.join(labels)}; write names that --labels gave into it)."
        )
    return np.array([labels[str(action)] for action in actions], dtype=study.observed.treatments.dtype)


def _design_control(design: Mapping[str, Any], study: Study) -> str | None:
    """The control that the design named, if these rows have it."""
    options = design.get("options")
    control = options.get("control") if isinstance(options, dict) else None
    return control if control in {str(label) for label in study.treatments} else None


def _values(
    study: Study, rules: Mapping[str, np.ndarray], nuisances: RewardEstimator, level: float
) -> tuple[RuleValues, RewardEstimator]:
    """Rewards by models cross-fitted on these rows, net of costs; then every rule on them."""
    seen, fitted = study.observed, nuisances.fit(study)
    rewards, brought = fitted.rewards_, fitted.outcome_.to_numpy()
    costs = _costs(study, rewards)
    values = compare_rules(
        rules[POLICY], rewards - costs, brought - costs[np.arange(seen.n), seen.arm], others=_others(rules),
        control=study.control, randomized=bool(study.randomized),
        before_costs=(rewards, brought) if study.arm_costs else None, direction=study.ways.way, level=level,
        **_rows(study),
    )  # fmt: skip
    return values, fitted


def _costs(study: Study, rewards: pd.DataFrame) -> np.ndarray:
    """Return the costs of every row's treatments, (n, K), as subtracted from rewards."""
    sign = 1.0 if study.ways.way == "maximize" else -1.0
    return sign * treatment_costs(study.by_label(study.arm_costs), study.n, list(rewards.columns))


def _rows(study: Study) -> dict[str, Any]:
    """Clusters and weights, as comparisons take them."""
    return {"groups": study.observed.labels, "sample_weight": study.observed.sample_weight}


def _others(rules: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: labels for name, labels in rules.items() if name != POLICY}


def _further(study: Study, name: str, rules: Mapping[str, np.ndarray], **how: Any) -> Mapping[str, Estimate]:
    """The mean of a further outcome under every rule, by its own models cross-fitted on these rows."""
    others = {each: way for each, way in study.further_outcomes.items() if each != name}
    direction = study.further_outcomes[name]
    own = study.replace(
        outcome=MayBeMissing(name) if isinstance(study.outcome, MayBeMissing) else name, direction=direction,
        further_outcomes=others, arm_costs={},
    )  # fmt: skip
    fitted = RewardEstimator(cv=how["cv"], random_state=how["seed"]).fit(own)
    return compare_rules(
        rules[POLICY], fitted.rewards_, fitted.outcome_.to_numpy(), others=_others(rules), direction=direction,
        randomized=bool(study.randomized), level=how["level"], **_rows(study),
    ).estimates  # fmt: skip


def _groups(study: Study, policy: np.ndarray, fitted: RewardEstimator, level: float) -> JudgedGroups | None:
    """The groups of people on these rows, and what the tree gives and brings them, net of costs."""
    if not study.subgroups:
        return None
    seen, rewards = study.observed, fitted.rewards_
    columns = subgroup_columns(study.table[list(study.subgroups)], seen.n)
    net = rewards - _costs(study, rewards)
    codes = pd.Index(rewards.columns).get_indexer(pd.Index(policy))

    def judge(scores: list[np.ndarray], weight: np.ndarray, level: float) -> Estimate:
        return mean_estimate(scores[0], groups=seen.groups, sample_weight=weight, level=level)

    scores = net.to_numpy()[np.arange(seen.n), codes]
    return JudgedGroups(columns, seen.weight, rewards.columns.tolist(), [policy], [scores], judge)


def _data_beside(
    origin: Origin, further: Mapping[str, Mapping[str, Estimate]], groups: JudgedGroups | None, level: float
) -> dict[str, Any]:
    """Further outcomes and groups, as plain values."""
    outcomes = [
        {"outcome": name, "rule": rule, **each.numbers}
        for name, rules in further.items()
        for rule, each in rules.items()
    ]
    kept = {name: kept_probability(limit, further[name][POLICY]) for name, limit in origin.limits.limits.items()}
    return {
        "further_outcomes": outcomes,
        "kept_probability": kept,
        "groups": None if groups is None else groups.values(level).reset_index().to_dict("records"),
        "gaps": []
        if groups is None
        else [gap_statement(found) for found in gaps_by_limit(groups.gaps(origin.limits.constraints, level))],
    }


def _opinions(
    study: Study, rules: Mapping[str, np.ndarray], fitted: RewardEstimator, level: float
) -> tuple[SecondOpinion, ...]:
    """The verdicts by the models of second least error; none where treatments were drawn by lot."""
    if study.randomized or fitted.models_propensity_ is None:
        return ()
    found = []
    for of, learner in fitted.second_best_learners_.items():
        other = clone(fitted).set_params(**{f"model_{MIXTURES[of]}": learner})
        about = study.observed.assigned if of == "treatment" else of
        found.append(SecondOpinion(of, about, LEARNERS_OF[of][learner], _values(study, rules, other, level)[0].verdict))
    return tuple(found)


def _words(study: Study, values: RuleValues, design: Mapping[str, Any], cv: int) -> str:
    """The sentence that says which rows and rules the numbers belong to."""
    better, sign = ("higher", "above") if study.ways.way == "maximize" else ("lower", "below")
    rows = size_text(values.estimates[POLICY])
    mean = study.value
    text = (
        f"{mean[0].upper()}{mean[1:]} if everybody followed the rule; {better} is better, and a difference {sign} zero "
        f"favours the tree. {status_quo_words(values.estimates)} "
        f"{' '.join([values.against_best.statement(values.digits), WHY_WIDER, *other_interval(values)])} "
        f"By {rows} of {study.name}: doubly robust scores of {cv}-fold cross-fitted outcome models, propensities "
        f"{study.propensity_text}. The tree was not learnt again; values and intervals hold only if all rows are new. "
        "The whole table of the design is recognised and refused; a part of it is not, so make sure that no row had a "
        "part in choosing the tree."
    )
    if study.observed.instrument is not None:
        text += " Values are per person of all: those who do not follow the offers count as zero."
    known = design.get("propensity")
    if isinstance(known, str) and known.startswith("known"):
        how = known.removeprefix("known: ")
        if study.propensity is None:
            text += f" In the design they were known ({how}); if that holds here too, give --propensity."
        elif options_of(study).propensity == design.get("propensity_option"):
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
        "outcome": study.outcome.column,
        "direction": study.ways.way,
        "about": words,
        "warnings": said,
    }
