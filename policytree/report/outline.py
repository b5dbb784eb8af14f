"""A tree as nested questions and leaves: for a page, for a person with a pencil, and for a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from policytree.data.features import CATEGORICAL, shown
from policytree.report.content import Outline
from policytree.report.material import capitalised
from policytree.trees.text import answers, counted, format_threshold, missing_label, question, split_label
from policytree.trees.tree import Tree

USUAL = (0.05, 0.95)  # quantiles between which a value is usual


def outline(
    tree: Tree, X: np.ndarray, lines: Mapping[int, tuple[str, ...]], unit: str = "rows", *, form: bool = True,
) -> Outline:  # fmt: skip
    """The tree with what is said of its leaves.

    Parameters
    ----------
    tree : Tree
    X : ndarray of shape (n, p)
        Encoded rows; how far their numbers spread says what a small change is.
    lines : mapping of int to tuple of str
        Text of each leaf beside its treatment.
    unit : str
        Name of the rows.
    form : bool
        Whether a page leads a person through it.
    """
    scales, ranges = {}, {}
    for j in tree.used_features:
        feature = tree.features[j]
        if feature.kind != CATEGORICAL:
            spread = float(np.nanstd(X[:, j])) if np.isfinite(X[:, j]).any() else 0.0
            scales[feature.name] = spread if spread > 0 else 1.0
            known = X[np.isfinite(X[:, j]), j]
            if len(known) and feature.value_names is None:
                ranges[feature.name] = [float(value) for value in np.quantile(known, USUAL, method="inverted_cdf")]
    return Outline(_node(tree, 0, lines, unit), scales, form, ranges)


def _node(tree: Tree, node: int, lines: Mapping[int, tuple[str, ...]], unit: str) -> dict[str, Any]:
    n, total = int(tree.n_node_samples[node]), int(tree.n_node_samples[0])
    rows = f"{counted(n, unit)}, {n / total:.1%}" if total else "no rows"
    if tree.is_leaf[node]:
        return {"treatment": str(tree.actions[tree.action[node]]), "rows": rows, "lines": list(lines.get(node, ()))}
    feature = tree.features[tree.feature[node]]
    unknown = "yes" if tree.missing_go_to_left[node] else "no"
    return {
        "question": split_label(tree, node, missing=False),
        "asked": question(tree, node, missing=False),
        "answers": list(answers(tree, node)),
        "feature": feature.name,
        **_test(tree, node),
        "otherwise": (feature.names_at(float(tree.threshold[node])) or ("", ""))[1],
        "missing": missing_label(tree, node),
        "unknown": unknown,
        "rows": rows,
        "yes": _node(tree, int(tree.children_left[node]), lines, unit),
        "no": _node(tree, int(tree.children_right[node]), lines, unit),
    }


def _test(tree: Tree, node: int) -> dict[str, Any]:
    """Encode a test for a program: numbers by "numeric", texts by "category" or "group", else "known" or "missing"."""
    feature, threshold = tree.features[tree.feature[node]], float(tree.threshold[node])
    if feature.kind == CATEGORICAL:
        values = [str(feature.categories[k]) for k in feature.levels_at(threshold)]
        if len(values) > 1:
            return {"kind": "group", "value": values}
        return {"kind": "category", "value": values[0]} if values else {"kind": "missing", "value": None}
    if (names := feature.names_at(threshold)) is not None:
        return {"kind": "category", "value": names[0]}
    return {"kind": "known", "value": None} if np.isposinf(threshold) else {"kind": "numeric", "value": threshold}


def rules(root: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Every leaf as (path, treatment, rows), such as ("30 < age ≤ 40 and sex = male", "drug", "50 rows, 12.1%")."""

    def walk(node: Mapping[str, Any], path: tuple[tuple[Mapping[str, Any], bool], ...]) -> list[tuple[str, str, str]]:
        if "treatment" in node:
            return [(_in_words(path), node["treatment"], node["rows"])]
        return walk(node["yes"], (*path, (node, True))) + walk(node["no"], (*path, (node, False)))

    return walk(root, ())


def _in_words(path: tuple[tuple[Mapping[str, Any], bool], ...]) -> str:
    """The answers on a path as conditions, those on one column together."""
    said = []
    for feature in dict.fromkeys(node["feature"] for node, _ in path):
        own = [(node, yes) for node, yes in path if node["feature"] == feature]
        upper = [node for node, yes in own if node["kind"] == "numeric" and yes]
        lower = [node for node, yes in own if node["kind"] == "numeric" and not yes]
        low = _limit(max(lower, key=lambda node: node["value"])) if lower else ""
        high = _limit(min(upper, key=lambda node: node["value"])) if upper else ""
        if low and high:
            said.append(f"{low} < {shown(feature)} ≤ {high}")
        elif low or high:
            said.append(f"{shown(feature)} > {low}" if low else f"{shown(feature)} ≤ {high}")
        said += [_answer(node, yes) for node, yes in own if node["kind"] != "numeric"]
    return " and ".join(said) or "everybody"


def _limit(node: Mapping[str, Any]) -> str:
    """The number in a question, as it stands there."""
    return format_threshold(node["value"])


def _answer(node: Mapping[str, Any], yes: bool) -> str:
    """The answer to a question that is not about a number, as a statement."""
    name = shown(node["feature"])
    if node["kind"] == "category":
        if node["otherwise"] and not yes:
            return f"{name} = {shown(node['otherwise'])}"
        return f"{name} {'=' if yes else '≠'} {shown(node['value'])}"
    if node["kind"] == "group":
        return f"{name} is {'one' if yes else 'none'} of {', '.join(map(shown, node['value']))}"
    return f"{name} is {'missing' if (node['kind'] == 'missing') == yes else 'known'}"


def begun(answer: str) -> str:
    """An answer at the beginning of a sentence; names of values are written as they are."""
    return capitalised(answer) if answer in ("yes", "no") else answer


def answer_of_unknown(node: Mapping[str, Any]) -> str:
    """The answer that a person without a value gets."""
    return node["answers"][node["unknown"] == "no"]


def checklist(root: Mapping[str, Any]) -> tuple[str, ...]:
    """Steps for the person who applies the rule: a question, and the action or the next step after either answer."""
    questions: list[Mapping[str, Any]] = []

    def collect(node: Mapping[str, Any]) -> None:
        if "treatment" not in node:
            questions.append(node)
            collect(node["yes"])
            collect(node["no"])

    collect(root)
    number = {id(node): k for k, node in enumerate(questions, 1)}

    def after(node: Mapping[str, Any]) -> str:
        return f"give {node['treatment']}" if "treatment" in node else f"go to {number[id(node)]}"

    steps = []
    for node in questions:
        unknown = "" if node["kind"] in ("missing", "known") else f" Not known: as {answer_of_unknown(node)}."
        first, second = map(begun, node["answers"])
        steps.append(f"{node['asked']} {first}: {after(node['yes'])}. {second}: {after(node['no'])}.{unknown}")
    return tuple(steps)
