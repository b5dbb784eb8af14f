"""The held-out value of the rule, beside the alternatives."""

from __future__ import annotations

from collections.abc import Collection

from policytree.evaluation.formatting import Form, bounds_text, decimals, rule_columns, size_text
from policytree.evaluation.inference.best_arm import WHY_WIDER
from policytree.evaluation.policy_value.fixed_rules import RuleValues
from policytree.evaluation.policy_value.rule_names import AS_RANDOMIZED, POLICY
from policytree.evaluation.policy_value.tables import OPTIMISM, PolicyValueTable
from policytree.evaluation.policy_value.verdict import Reason
from policytree.evaluation.regimes.tables import RegimeValueTable
from policytree.report.content import Block, Picture, Section, Table, Words
from policytree.report.material import Material, capitalised
from policytree.report.sections.tree import outcome_range
from policytree.weighting.instrument import COMPLIERS

NOT_COMPUTED = "Not computed (--no-value). In Python, pass the table of cross_val_policy_value among the results."


def values_sections(material: Material) -> list[Section]:
    """Values and differences; and the optimism of rules on the rows that chose them."""
    values = material.only(PolicyValueTable)
    if values is None:
        return [Section("values", "Value, held out", (Words(NOT_COMPUTED),))]
    unit = "" if material.study.times is None else material.study.value_unit
    blocks: tuple[Block, ...] = (
        rules_table(values, unit, whose=_whose(material)),
        Words(_explanation(material, values)),
    )
    sections = [Section("values", "Value, held out", blocks)]
    if values.optimism:
        sections.append(Section("optimism", "Optimism", _optimism(values)))
    return sections


def _whose(material: Material) -> str:
    """Whose values they are, where people of the study do not all count with their own."""
    if material.study.by_offers and material.rewards is not None and material.rewards.estimand == COMPLIERS:
        return ", of compliers per person of all"
    return material.of_whom


def rules_table(
    values: PolicyValueTable | RuleValues | RegimeValueTable, unit: str = "", what: str = "", own: str = POLICY,
    short: str = "tree", whose: str = "",
) -> Table:  # fmt: skip
    """Value of every rule, and the advantage over it of the rule that was learnt, with intervals.

    Parameters
    ----------
    values : PolicyValueTable, RuleValues or RegimeValueTable
    unit : str
        Of the values, if it is said.
    what : str
        Name of the rules' choices, where these are no treatments.
    own, short : str
        The learnt rule, by its name in the table and in a few letters.
    whose : str
        Whose values they are, where that is not said.
    """
    policy = values.estimates[own]
    about = f"{f' over {what}' if what else ''}{whose}{f' ({unit})' if unit else ''}"
    size = values.size() if isinstance(values, PolicyValueTable) else size_text(policy)
    columns: dict[str, Form] = {"rule": "{rule}"} | dict(rule_columns(short, policy.level))
    del columns["std. error"]
    return Table.of(
        values.to_frame(), columns, f"Held-out values of all rules{about}, by {size}",
        strong=(list(values.estimates).index(own),), digits=values.digits,
    )  # fmt: skip


def values_picture(material: Material, values: PolicyValueTable) -> Picture:
    """The values of all options; the verdict's option is marked."""
    study = material.study
    unit = study.about.unit if study.times is None else ""  # a horizon has its unit beside it
    people = "people of the target" if material.to_target else "people"
    return picture_of_values(values, study.value, unit, outcome_range(material), people)


def picture_of_values(
    values: PolicyValueTable | RegimeValueTable,
    value: str,
    unit: str,
    limits: list[float] | None,
    people: str = "people",
) -> Picture:
    """The values of all rules of a table; the verdict's rule is marked.

    Parameters
    ----------
    values : PolicyValueTable or RegimeValueTable
    value, unit : str
        Name of values, and their unit.
    limits : list of two floats, or None
        Between which every value lies, if that is known.
    people : str
        Whose values they are.
    """
    rows = {
        rule: [e.value, e.lower, e.upper] for rule, e in values.estimates.items() if e.lower == e.lower
    }  # those with an interval
    better = "higher" if values.direction == "maximize" else "lower"
    shown = "; ".join(f"{rule} {e.value:.3g} ({e.lower:.3g} to {e.upper:.3g})" for rule, e in values.estimates.items())
    data = {
        "rows": rows, "strong": values.verdict.rule, "direction": values.direction, "limits": limits,
        "xlabel": f"held-out {value}{f', {unit}' if unit else ''}",
    }  # fmt: skip
    marked = "" if values.verdict.reason is Reason.UNCLEAR else f" Blue: {values.verdict.rule}, see above."
    level = next(f"{100 * e.level:g}" for e in values.estimates.values())
    caption = (
        f"Each option's worth to {people} who had no part in learning it, with its {level}% confidence interval (CI): "
        f"in {level} of 100 such studies it holds the true worth.{marked}"
    )
    return Picture(
        "values", data, f"Held-out value of every rule with its interval, {better} is better: {shown}.", caption
    )


def _explanation(material: Material, values: PolicyValueTable) -> str:
    study, sign = material.study, "above" if material.study.direction == "maximize" else "below"
    got = "what people got"
    if values.observed.study is not None:
        got = "what the study's way of assigning treatments would bring"
    return " ".join(
        (
            f"{capitalised(study.value)} if everybody followed the rule; {study.better} is better, and a",
            f"difference {sign} zero favours the tree.",
            status_quo_words(values.estimates, got),
            "Plug-in rule: no tree,",
            "everybody gets the treatment predicted to be best.",
            *values.statements()[:1],
            WHY_WIDER,
            *other_interval(values),
            *values.statements()[1:],
        )
    )


def other_interval(values: PolicyValueTable | RuleValues) -> list[str]:
    """Why the verdict has another interval for a difference than the table, in a sentence, where that is so."""
    gain, digits = values.verdict.tree, values.digits
    shown = values.differences.get(gain.over)
    if shown is None or not gain.adjusted:
        return []
    return [
        f"The verdict's interval of tree - {gain.over}, {bounds_text(gain.lower, gain.upper, digits)}, is wider than "
        "the table's: it allows for the other rules that could have been recommended, the table's does not."
    ]


def status_quo_words(rules: Collection[str], got: str = "what people got") -> str:
    """Describe the status quo, or the mixture of treatments that was drawn by lot, in a sentence."""
    if AS_RANDOMIZED in rules:
        return "As randomised: the mixture of treatments in the trial, which nobody would be given."
    return f"Status quo: {got}."


def _optimism(values: PolicyValueTable) -> tuple[Block, ...]:
    """The values of rules on the rows that chose them, beside their held-out values."""
    level, frame = next(iter(values.optimism.values())).difference.level, values.optimism_frame()
    columns = {
        "rule": "{rule}", "on its own rows": "{training_value:,.{digits}f}", "held out": "{held_out_value:,.{digits}f}",
        "optimism": "{optimism:+,.{digits}f}",
        f"{100 * level:g}% interval": "[{optimism_lower:,.{digits}f}, {optimism_upper:,.{digits}f}]",
    }  # fmt: skip
    table = Table.of(
        frame, columns, "Values of rules on the rows that chose them",
        strong=(list(values.optimism).index(POLICY),), digits=decimals(frame["optimism_standard_error"]),
    )  # fmt: skip
    words = (
        "On its own rows: the value on the rows that chose the rule, by the rewards that chose it. Optimism: this "
        "value less the held-out one. "
    )
    return (table, Words(words + OPTIMISM))
