"""The rules of all stages: as pictures and questions, as a checklist over time, and followed by an example."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policytree.data.features import CATEGORICAL, shown
from policytree.regimes.treatment_regime import TreatmentRegime
from policytree.report.content import Block, Facts, Fold, Picture, Section, Steps, Table, Words
from policytree.report.outline import begun, checklist, outline, rules
from policytree.report.regime_material import RegimeMaterial
from policytree.report.sections.tree import SHORTENED, missing_words
from policytree.serialization import to_dict
from policytree.trees.text import answers, format_threshold, question
from policytree.trees.tree import Tree

NOT_RECOMMENDED = (
    "Not recommended: these are the best trees on the people who chose them, not rules to use; see the verdict."
)
FEWEST = 5  # people whose medians make an example: of fewer, it would be about somebody in particular


def trees_section(material: RegimeMaterial) -> Section:
    """The trees of all stages, one under another: as a picture, and as questions that lead a person through."""
    picture = _picture(material)
    said: list[Block] = []
    for s, (name, tree) in enumerate(material.trees):
        said += [_who(material, s), outline(tree, material.encoded[s], {}, "people")]
        used = [tree.features[j] for j in tree.used_features]
        if used:
            said.append(Words(f"{name}: {missing_words(used)}", "note"))
    blocks: tuple[Block, ...] = (picture, *said)
    if not material.recommended:
        blocks = (Words(NOT_RECOMMENDED, "warning"), picture, Fold("Show the trees anyway", tuple(said)))
    found = zip(material.trees, material.regime.trees_, strict=True)
    if not all(np.array_equal(a.threshold, b.threshold, equal_nan=True) for (_, a), (_, b) in found):
        blocks = (*blocks, Words(SHORTENED.replace("tree.json", "regime.json"), "note"))
    return Section("tree", material.titled("The trees of all stages"), blocks)


def _who(material: RegimeMaterial, s: int) -> Words:
    """Whom a stage's rule is for."""
    return Words(f"At {material.trees[s][0]}: {material.eligible[s]}.")


def _picture(material: RegimeMaterial) -> Picture:
    named = zip(material.trees, material.eligible, strict=True)
    data = {"stages": [{"name": name, "tree": to_dict(tree), "eligible": who} for (name, tree), who in named]}
    words = " ".join(f"{name}: {when}: {treatment}." for name, when, treatment in _rules(material))
    return Picture("regime", data, f"Decision trees, one per stage. {words}")


def _rules(material: RegimeMaterial) -> list[tuple[str, str, str]]:
    """Every leaf of every stage as (stage, what leads to it, treatment)."""
    return [
        (name, when, treatment)
        for (name, tree), X in zip(material.trees, material.encoded, strict=True)
        for when, treatment, _ in rules(outline(tree, X, {}).root)
    ]


def rule_section(material: RegimeMaterial) -> Section:
    """The rule as a checklist over time, and as a table of sentences."""
    blocks: list[Block] = []
    asked: list[str] = []
    for s, (name, tree) in enumerate(material.trees):
        root = outline(tree, material.encoded[s], {}).root
        asked += [shown(tree.features[j].name) for j in tree.used_features]
        given = material.regime.eligibility_[s]
        everybody = material.course.decisions[s].eligible.all()
        whom = "everybody" if everybody else f"only given {given}" if given else "only people who are eligible then"
        if "treatment" in root:
            blocks.append(Words(f"At {name}, {whom}: give {root['treatment']}."))
        else:
            blocks += [Words(f"At {name}, {whom}:"), Steps(checklist(root))]
    if asked:
        known = ", ".join(dict.fromkeys(asked))
        blocks.append(Words(f"To apply it one must know {known}; nothing else."))
    blocks.append(Table(("at", "if", "then give"), tuple(_rules(material)), "The rule in words, stage by stage"))
    if not material.recommended:
        blocks = [Fold("Rules and steps", tuple(blocks))]
    return Section("rule", material.titled("The rule as a checklist over time"), tuple(blocks))


# --- an example ---


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """A made-up person who is treated by the regime: medians and most frequent values of people who went one way.

    Attributes
    ----------
    stages : list of (str, ndarray of shape (p,), int)
        Name of the stage, the history as its tree reads it, and the leaf that the person comes to.
    n : int
        People who went this way.
    """

    stages: list[tuple[str, np.ndarray, int]]
    n: int


def example(material: RegimeMaterial) -> Example | None:
    """The way that most people went who were treated as the regime says up to its last decision.

    Where fewer than 5 people went any way to the last stage, it ends a stage earlier; None if it has no beginning.
    All conditions on the way are about one column each, so that the medians of those who went it fulfil them.
    """
    course = material.course
    leaves = np.full((len(course), course.n), -1)
    followed = np.ones(course.n, dtype=bool)
    reached = []
    for s, (_, tree) in enumerate(material.trees):
        rows = material.rows(s)
        leaves[s, rows] = tree.apply(material.encoded[s])
        reached.append(followed & course.decisions[s].eligible)
        followed = followed & ~_treated_otherwise(material.regime, material, s, rows)
    for last in reversed(range(len(course))):
        who = np.flatnonzero(reached[last])
        ways, members = np.unique(leaves[: last + 1, who], axis=1, return_inverse=True)
        counts = np.bincount(members.ravel(), minlength=ways.shape[1])
        if not len(who) or counts.max() < FEWEST:
            continue
        k = int(counts.argmax())
        own = who[members.ravel() == k]
        return Example(
            [
                (material.trees[s][0], _middle(material, s, own), int(ways[s, k]))
                for s in range(last + 1)
                if ways[s, k] >= 0
            ],
            len(own),
        )
    return None


def _treated_otherwise(regime: TreatmentRegime, material: RegimeMaterial, s: int, rows: np.ndarray) -> np.ndarray:
    """People who were eligible and got something else than the regime says, (n,) bool."""
    out = np.zeros(material.course.n, dtype=bool)
    out[rows] = regime.decide(material.course, s, rows) != material.course.decisions[s].arm[rows]
    return out


def _middle(material: RegimeMaterial, s: int, people: np.ndarray) -> np.ndarray:
    """Lower medians of numbers and most frequent categories of some people's histories, missing where most are."""
    tree, rows = material.trees[s][1], material.rows(s)
    X = material.encoded[s][np.searchsorted(rows, people)]
    out = np.full(X.shape[1], np.nan)
    for j, feature in enumerate(tree.features):
        known = X[~np.isnan(X[:, j]), j]
        if 2 * len(known) < len(X):
            continue
        if feature.kind == CATEGORICAL:
            values, counts = np.unique(known, return_counts=True)
            out[j] = values[counts.argmax()]
        else:
            out[j] = np.quantile(known, 0.5, method="lower")
    return out


def example_section(material: RegimeMaterial) -> Section | None:
    """A person walked through all decisions; None where too few people went any one way."""
    found = example(material)
    if found is None:
        return None
    pairs = []
    for name, history, leaf in found.stages:
        tree = dict(material.trees)[name]
        pairs.append((name, _walk(tree, history, leaf)))
    words = (
        f"Made up of the {found.n:,} people who went this way, by medians and most frequent values: nobody in "
        "particular."
    )
    return Section("example", material.titled("An example"), (Facts(tuple(pairs)), Words(words, "note")))


def _walk(tree: Tree, history: np.ndarray, leaf: int) -> str:
    """Tell the questions on the way to a leaf, their answers, and the treatment given."""
    node, said, nodes = 0, [], []
    while not tree.is_leaf[node]:
        below = int(tree.children_left[node])
        yes = _is_below(tree, below, leaf)
        said.append(f"{question(tree, node, missing=False)} {begun(answers(tree, node)[not yes])}.")
        nodes.append((node, yes))
        node = below if yes else int(tree.children_right[node])
    treatment = tree.actions[tree.action[node]]
    if not nodes:
        return f"Everybody gets {treatment}."
    known = []
    for j in dict.fromkeys(int(tree.feature[node]) for node, _ in nodes):
        own = [(float(tree.threshold[node]), yes) for node, yes in nodes if tree.feature[node] == j]
        known.append(f"{shown(tree.features[j].name)} = {_value(tree, j, float(history[j]), own)}")
    return f"{', '.join(known)}. {' '.join(said)} Give {treatment}."


def _is_below(tree: Tree, node: int, leaf: int) -> bool:
    """Whether a leaf is a node, or under it."""
    if tree.is_leaf[node]:
        return node == leaf
    return any(_is_below(tree, int(side[node]), leaf) for side in (tree.children_left, tree.children_right))


def _value(tree: Tree, j: int, value: float, asked: list[tuple[float, bool]]) -> str:
    """A value in as few digits as give the same answers."""
    feature = tree.features[j]
    if np.isnan(value):
        return "missing"
    if feature.kind == CATEGORICAL:
        return shown(str(feature.categories[int(value)]))
    if (names := feature.names_at(asked[0][0])) is not None:
        return shown(names[0] if value <= asked[0][0] else names[1])
    for digits in range(3, 17):
        short = float(f"{value:.{digits}g}")
        if all((short <= threshold) == (value <= threshold) for threshold, _ in asked):
            return format_threshold(short)
    return repr(value)
