"""The tree as a picture, as questions, in words and as a checklist; its leaves, and the rows behind their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd

from policytree.data.features import Feature
from policytree.evaluation.formatting import (
    BOUNDS,
    NUMBER,
    Columns,
    Form,
    bounds_text,
    cell,
    decimals,
    of_column,
    records,
)
from policytree.evaluation.leaves.factor_effects import EFFECT, EFFECT_ERROR, EFFECT_LOWER, EFFECT_UPPER
from policytree.evaluation.leaves.honest import HonestLeaves
from policytree.evaluation.leaves.summary import HELD_OUT, TRAINING_ROWS, LeafValue, leaf_summary, leaf_values
from policytree.evaluation.policy_value.given_effects import given_effects
from policytree.evaluation.policy_value.tables import PolicyValueTable
from policytree.evaluation.policy_value.verdict import recommends
from policytree.evaluation.stability.tables import PolicyStability, fragile_text
from policytree.plotting.partition import partition
from policytree.report.amounts import amounts_of, over_words, rule_words
from policytree.report.content import Block, Fold, Picture, Section, Steps, Table, Words
from policytree.report.material import Material, capitalised
from policytree.report.outline import checklist, outline, rules
from policytree.serialization import to_dict
from policytree.trees.text import action_label, counted

NO_BREAK = "\u00a0"  # a blank at which no line ends
MOST_ARMS = 4  # whose rows in a leaf are named one by one
OFTEN = 0.5  # share of the resamples in which a leaf comes again, below which its treatment is unsure
UNSURE = (
    "Unsure: {leaves}. When everything was learnt again from resamples, most people of such a leaf got another "
    "treatment at least as often as this one."
)
SHORTENED = (
    "Thresholds are the shortest numbers that send every row of the data the same way as those of the search; "
    "tree.json and this page state the same ones."
)


def leaves_of(material: Material) -> pd.DataFrame | None:
    """The leaf summary: of held-out rows if there are any, else of the training rows; None without rewards.

    None also where rewards are about other people, unless rows were held out.
    """
    honest = material.only(HonestLeaves)
    if honest is not None:
        return honest.leaves
    study, model = material.study, material.model
    rewards = getattr(model, "rewards_", None)
    if rewards is None or material.to_target or len(rewards) != study.seen.n:
        return None
    seen, leaves = study.seen, material.tree.apply(material.encoded)
    policy = np.array(material.tree.actions, dtype=object)[material.tree.action[leaves]]
    return leaf_summary(
        leaves, policy, rewards, T=seen.received(), groups=seen.groups, sample_weight=seen.sample_weight,
        direction=study.direction,
    )  # fmt: skip


def rule_sections(material: Material) -> tuple[Section, ...]:
    """The tree and its rule in words; of a tree that asks nothing no picture, and no rule where there is a verdict."""
    if not gives_all_the_same(material):
        return tree_section(material), rule_section(material)
    return (rule_section(material),) if material.only(PolicyValueTable) is None else ()


def gives_all_the_same(material: Material) -> bool:
    """Whether the tree asks nothing."""
    return material.tree.node_count == 1


def fragile_leaves(material: Material) -> dict[int, float]:
    """Leaves that come again in fewer than half of the resamples, with the share of these in which they do."""
    stability = material.only(PolicyStability)
    if stability is None or len(material.encoded) != stability.policies.shape[1]:
        return {}
    leaves = material.tree.apply(material.encoded)
    given = np.array(material.tree.actions, dtype=object)[material.tree.action[leaves]]
    return {leaf: share for leaf, share in stability.leaf_shares(leaves, given).items() if share < OFTEN}


def fragile_texts(material: Material) -> dict[int, str]:
    """Describe the fragile leaves."""
    tree = material.tree
    return {leaf: fragile_text(share, action_label(tree, leaf)) for leaf, share in fragile_leaves(material).items()}


def unsure_people(material: Material) -> tuple[str, str] | None:
    """How many people are in such leaves, as a clause, and as a sentence with the reason; None if there are none."""
    fragile = fragile_leaves(material)
    if not fragile:
        return None
    leaves = material.tree.apply(material.encoded)
    inside, n = int(np.isin(leaves, list(fragile)).sum()), len(leaves)
    clause = f"unsure for {inside:,} of {n:,} rows"
    advice = {action_label(material.tree, leaf) for leaf in fragile}
    named = f", {min(advice)}," if len(advice) == 1 else ""
    most = f"{'only' if len(fragile) == 1 else 'at most'} {100 * max(fragile.values()):.0f} times in 100"
    return clause, (
        f"{capitalised(clause)} ({counted(len(fragile), 'leaves')}, hatched in the tree): the rule's advice on all "
        f"data{named} came again {most} when it was learnt without some of the people. Do not follow the "
        "rule for them: choose their treatment as you would if there were no rule."
    )


def arm_texts(material: Material) -> dict[int, str]:
    """Who got what in every leaf, of the rows that chose the tree; nothing where rewards are about other people."""
    if material.to_target:
        return {}
    rows, assigned = material.learning, material.study.assigned
    leaves = material.tree.apply(material.encoded[rows])
    counts = pd.crosstab(leaves, np.asarray(assigned.treatments)[assigned.arm[rows]])
    many = len(counts.columns) > MOST_ARMS
    return {
        int(leaf): f"at least {row.min():,} of every {assigned.what}"
        if many
        else "got: " + ", ".join(f"{name} {n:,}".replace(" ", NO_BREAK) for name, n in row.items())
        for leaf, row in counts.iterrows()
    }


def given_texts(material: Material) -> dict[int, str]:
    """The held-out effect of a leaf's treatment, where no other leaf gives it and no rows were kept to judge leaves."""
    values, tree = material.only(PolicyValueTable), material.tree
    if values is None or material.only(HonestLeaves) is not None:
        return {}
    amounts, said = amounts_of(material, values.verdict), {}
    for found in given_effects(values):
        own = [leaf for leaf in np.flatnonzero(tree.is_leaf) if str(tree.actions[tree.action[leaf]]) == found.treatment]
        if len(own) == 1:
            said[int(own[0])] = f"{amounts.text(found.effect)} than {over_words(found.over)}, held out"
    return said


def _given_blocks(material: Material) -> list[Block]:
    """Held-out effects by what rules give; nothing where leaves were judged by rows of their own."""
    values = material.only(PolicyValueTable)
    found = [] if values is None or material.only(HonestLeaves) is not None else given_effects(values)
    if values is None or not found:
        return []
    amounts = amounts_of(material, values.verdict)
    cells = tuple(
        (each.treatment, f"{100 * each.share:.0f} of 100", rule_words(each.over), *amounts.parts(each.effect))
        for each in found
    )
    numbers = tuple(
        {"treatment": each.treatment, "over": each.over, "share": each.share, "effect": each.effect.value,
         "lower": each.effect.lower, "upper": each.effect.upper, "level": each.effect.level}
        for each in found
    )  # fmt: skip
    unit = "" if amounts.people or not amounts.unit else f" ({amounts.unit})"
    columns = ("the rule gives", "to people, held out", "compared with", f"effect{unit}", "simultaneous interval")
    words = (
        "Held out by cross-fitting: people are grouped by what rules learnt without them give them, so that nobody "
        "judges a leaf that he or she helped to choose. Leaves with the same treatment are judged together; rows that "
        "only judge (--honest 0.5) judge each leaf."
    )
    return [
        Table(columns, cells, "Effect where the rule gives each treatment, held out", numbers=numbers),
        Words(words, "note"),
    ]


def tree_section(material: Material) -> Section:
    """Picture, questions and leaves."""
    tree, summary = material.tree, leaves_of(material)
    held_out = summary is not None and (summary["rows", ""] == HELD_OUT).all()
    values = {}
    if summary is not None and held_out:
        least, largest = outcome_range(material)
        values = {leaf: value.within((least, largest)) for leaf, value in leaf_values(tree, summary).items()}
    lines = leaf_lines(values, decimals(summary["gain", "standard_error"])) if summary is not None and values else {}
    fragile, arms, given = fragile_texts(material), arm_texts(material), given_texts(material)
    lines = {
        leaf: (*(each[leaf] for each in (arms, given, fragile) if leaf in each), *lines.get(leaf, ()))
        for leaf in {*lines, *fragile, *arms, *given}
    }
    shown = outline(tree, material.encoded, lines)
    words = _rules_table(shown.root)
    blocks: list[Block] = [tree_picture(material, values), words, shown]
    if (said := not_recommended(material)) is not None:
        shown = replace(shown, caution=said.text)
        blocks = [said, tree_picture(material, values), Fold("Show the tree anyway", (words, shown))]
    if fragile:
        blocks.append(Words(UNSURE.format(leaves=counted(len(fragile), "leaves")), "warning"))
    used = [tree.features[j] for j in tree.used_features]
    if used:
        blocks.append(Words(missing_words(used), "note"))
    blocks += _given_blocks(material)
    if summary is not None:
        blocks += _leaf_blocks(material, summary, values)
    if not np.array_equal(tree.threshold, material.model.tree_.threshold, equal_nan=True):
        blocks.append(Words(SHORTENED, "note"))
    fields = partition(tree, material.encoded)
    if fields is not None:
        x, y = fields["names"]
        alt = f"The plane of {x} and {y} in rectangles, one per leaf: {_rules_in_words(material)}"
        blocks.append(Picture("partition", fields, alt, "The same rule as a map of its two covariates."))
    return Section("tree", _title("Policy tree", material), tuple(blocks))


def not_recommended(material: Material) -> Words | None:
    """A paragraph that the tree is not recommended, where the verdict says so."""
    values = material.only(PolicyValueTable)
    if values is None or recommends(values.verdict.rule, values.verdict.reason, [material.tree]):
        return None
    words = "Not recommended: this is the best tree on the rows that chose it, not a rule to use; see the verdict."
    return Words(words, "warning")


def _title(title: str, material: Material) -> str:
    return title if not_recommended(material) is None else f"{title} (not recommended)"


def missing_words(used: Sequence[Feature]) -> str:
    """Which way missing values go, of the columns that a tree asks about."""
    gaps = [feature.name for feature in used if feature.has_missing]
    if not gaps:
        return (
            "No value was missing in the columns that the tree asks about: where one will be missing, the tree has "
            "learnt nothing; the checklist says which answer it takes then."
        )
    return f"Values were missing in {', '.join(gaps)}: missing → says which answer such rows take."


def tree_picture(material: Material, values: Mapping[int, LeafValue]) -> Picture:
    """The picture of the tree; its leaves show values only if these come from held-out rows."""
    data = {
        "tree": to_dict(material.tree),
        "values": {str(leaf): asdict(value) for leaf, value in values.items()},
        "limits": outcome_range(material),
        "fragile": {str(leaf): text for leaf, text in fragile_texts(material).items()},
        "arms": {str(leaf): "\n".join(texts) for leaf, texts in _notes(material).items()},
    }
    alt = f"Decision tree. {_rules_in_words(material)}"
    return Picture("tree", data, alt)


def _notes(material: Material) -> dict[int, list[str]]:
    """Collect the texts of leaves in the picture beside their people: who got what, and the effect."""
    notes: dict[int, list[str]] = {}
    for texts in (arm_texts(material), given_texts(material)):
        for leaf, text in texts.items():
            notes.setdefault(leaf, []).append(text)
    return notes


def outcome_range(material: Material) -> list[float]:
    """The least and the largest outcome, between which every mean outcome lies."""
    return list(material.study.limits)


def _rules_in_words(material: Material) -> str:
    root = outline(material.tree, material.encoded, {}).root
    return " ".join(f"{rule}: {treatment}." for rule, treatment, _ in rules(root))


def leaf_lines(values: Mapping[int, LeafValue], digits: int) -> dict[int, tuple[str, ...]]:
    """The held-out results of every leaf, as lines of text."""
    said = {leaf: value.parts("value", digits) for leaf, value in values.items()}
    return {leaf: (f"{HELD_OUT}: {' '.join(first)}", *map(" ".join, more)) for leaf, (first, *more) in said.items()}


def _leaf_blocks(material: Material, summary: pd.DataFrame, values: Mapping[int, LeafValue]) -> list[Block]:
    """The table of leaves, and the rows that it comes from."""
    honest = material.only(HonestLeaves)
    few = [f"leaf {leaf} has {text}" for leaf, text in summary["warning", ""].items() if text]
    words = " Lower is better: a gain below zero favours the leaf's treatment." * (material.study.better == "lower")
    words += f" Where an arm has few rows the outcome model decides: {'; '.join(few)}." if few else ""
    numbered = "Leaves are numbered as in leaves.csv: from the top, the yes side first."
    if honest is not None:
        said = f"By {honest.value.n:,} rows that did not choose the tree; the intervals hold for all leaves at once. "
        level = f"{100 * honest.value.level:g}% interval"
        return [_held_out_table(summary, values, level), Words(said + numbered + words), *_effects(summary, level)]
    said = (
        "Computed on the rows that chose the tree: such values flatter it, so they stand here without intervals, and "
        f"not in the picture. Let some rows only judge (honest_leaf_summary; --honest 0.5) for held-out ones. "
        f"{numbered}"
    )
    shown = (_training_table(summary), Words(said + words, "note"), *_effects(summary))
    return [Fold(f"Leaves, {TRAINING_ROWS}", shown)]


def _effects(summary: pd.DataFrame, level: str | None = None) -> list[Block]:
    """The effect of each of several treatments in every leaf, with intervals if rows were held out."""
    if EFFECT not in summary.columns:
        return []
    names, digits = list(summary[EFFECT].columns), decimals(summary[EFFECT_ERROR].stack())
    cells = []
    for leaf, row in summary.iterrows():
        for name in names:
            effect = row[EFFECT, name]
            shown = [str(leaf), name, "not estimable" if np.isnan(effect) else f"{effect:+,.{digits}f}"]
            if level is not None:
                lower, upper = row[EFFECT_LOWER, name], row[EFFECT_UPPER, name]
                shown.append("-" if np.isnan(lower) else bounds_text(lower, upper, digits))
            cells.append(tuple(shown))
    rows = HELD_OUT if level is not None else TRAINING_ROWS
    columns = ("leaf", "treatment", "effect", level) if level is not None else ("leaf", "treatment", f"effect ({rows})")
    said = "Effect of each treatment in the leaf against its control, averaged over the combinations of the others."
    said += " The intervals hold for all these effects at once." if level is not None else ""
    return [Words(said), Table(columns, tuple(cells), f"Effects of each treatment in the leaves, {rows}")]


def _held_out_table(summary: pd.DataFrame, values: Mapping[int, LeafValue], level: str) -> Table:
    columns: Columns = [
        ("leaf", "{leaf}"), ("treatment", "{arm}"), ("rows", "{n:,}"),
        ("value", lambda row: "not estimable" if row["value"] is None else cell(NUMBER, row)), (level, BOUNDS),
        ("second best", "{second_best}"), ("gain over best other", "{gain:+,.{digits}f}"),
        (level, "[{gain_lower:,.{digits}f}, {gain_upper:,.{digits}f}]"),
    ]  # fmt: skip
    rows = [row | asdict(values[row["leaf"]]) for row in records(flat_leaves(summary))]
    return Table.of(rows, columns, "Leaves, held out", digits=decimals(summary["gain", "standard_error"]))


def _training_table(summary: pd.DataFrame) -> Table:
    columns: dict[str, Form] = {
        "leaf": "{leaf}", "treatment": "{arm}", "rows": "{n:,}",
        f"value ({TRAINING_ROWS})": lambda row: cell(of_column(f"value_{row['arm']}", ",.{digits}f"), row),
        "second best": "{second_best}", f"gain ({TRAINING_ROWS})": "{gain_value:+,.{digits}f}",
    }  # fmt: skip
    digits = decimals(summary["gain", "standard_error"])
    return Table.of(flat_leaves(summary), columns, f"Leaves, {TRAINING_ROWS}", digits=digits)


def flat_leaves(summary: pd.DataFrame) -> pd.DataFrame:
    """A leaf summary with one name per column, such as "gain_value"."""
    return summary.set_axis(["_".join(str(part) for part in names if part != "") for names in summary.columns], axis=1)


def _rules_table(root: Mapping[str, Any]) -> Table:
    """Every leaf in words: who gets what, and how many that are."""
    return Table(("people with", "get", "in the study"), tuple(rules(root)), "The rule in words")


def rule_section(material: Material) -> Section:
    """The rule as steps for the person who applies it."""
    root, tree = outline(material.tree, material.encoded, {}).root, material.tree
    if tree.node_count == 1:
        return Section("rule", _title("The rule in words", material), (Words(f"Everybody gets {root['treatment']}."),))
    asked = ", ".join(tree.features[j].name for j in tree.used_features)
    know = Words(
        f"To apply it one must know {asked}; nothing else. {counted(len(checklist(root)), 'questions')} in all."
    )
    blocks: tuple[Block, ...] = (know, Steps(checklist(root)))
    if not_recommended(material) is not None:
        blocks = (Fold("Steps", blocks),)
    return Section("rule", _title("Applying the rule", material), blocks)
