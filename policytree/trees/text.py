"""Trees as text, DOT and a table of rules."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np
import pandas as pd

from policytree.data.features import CATEGORICAL, Feature, named_apart, shown
from policytree.data.views import ROOM
from policytree.trees.tree import Tree

_LIST = '<ul style="margin:.1em 0;padding-left:1.4em">'
SINGULAR = {
    "people": "person",
    "men": "man",
    "women": "woman",
    "children": "child",
    "leaves": "leaf",
    "calories": "calorie",
    "series": "series",
    "species": "species",
    "movies": "movie",
}  # others lose their s, es or ies
#: Words of units that are surely plurals, wherever they follow a number.
MEASURES = frozenset({
    "seconds", "minutes", "hours", "days", "nights", "weeks", "months", "years", "dollars", "euros", "pounds", "points",
    "degrees", "calories", "visits", "admissions", "events", "attacks", "infections", "injuries", "falls",
})  # fmt: skip


def format_number(value: float, digits: int = 5) -> str:
    """A number with so many significant digits, thousands separated; powers of ten only for extreme sizes."""
    if value == 0 or not np.isfinite(value):
        return f"{value:g}"
    size = int(np.floor(np.log10(abs(value))))
    if not -5 <= size < 9:
        return f"{value:.{digits}g}"
    return f"{value:,.{max(0, digits - 1 - size)}f}"


def format_threshold(value: float) -> str:
    """Show a threshold with six significant digits, or all where whole numbers would fall on its other side."""
    short = f"{value:.6g}"
    if abs(value) < 1e15 and np.floor(float(short)) != np.floor(value):  # would send whole numbers the other way
        return repr(float(value))
    return f"{value:.0f}" if "e+" in short and abs(value) < 1e15 else short


def split_label(tree: Tree, node: int, *, missing: bool = True) -> str:
    """Say in words what sends rows left at an inner node.

    Parameters
    ----------
    tree : Tree
    node : int
        Id of an inner node.
    missing : bool, default True
        Add which way missing values go, where the column had some.

    Returns
    -------
    str
    """
    feature = tree.features[tree.feature[node]]
    name, threshold = shown(feature.name), float(tree.threshold[node])
    asked = tree.asks_for_missing(node)
    if asked is not None:
        return f"{name} {asked}"
    if feature.kind == CATEGORICAL:
        levels = level_labels(feature, threshold)
        text = f"{name} is one of {', '.join(levels)}" if len(levels) > 1 else f"{name} = {levels[0]}"
    elif (names := feature.names_at(threshold)) is not None:
        text = f"{name} = {shown(names[0])}"
    else:
        text = f"{name} ≤ {format_threshold(threshold)}"
    side = missing_label(tree, node) if missing else ""
    return f"{text} ({side})" if side else text


def level_labels(feature: Feature, threshold: float) -> list[str]:
    """The categories that a threshold sends left, as texts that differ from those of all others."""
    return [shown(named_apart(feature.categories[k], feature.categories)) for k in feature.levels_at(threshold)]


def action_label(tree: Tree, node: int) -> str:
    """The label that a leaf gives, as text that differs from that of every other label."""
    return shown(named_apart(tree.actions[tree.action[node]], tree.actions))


def question(tree: Tree, node: int, *, missing: bool = True) -> str:
    """The question of an inner node as it is asked: "age ≤ 50? (missing → yes)", or "sex?" of two named values."""
    side = missing_label(tree, node) if missing else ""
    feature = tree.features[tree.feature[node]]
    named = _names(tree, node) is not None  # labels of questionnaires may be questions already
    asked = shown(feature.name).removesuffix("?") if named else split_label(tree, node, missing=False)
    return f"{asked}?" + (f" ({side})" if side else "")


def answers(tree: Tree, node: int) -> tuple[str, str]:
    """The answers that send rows left and right: "yes" and "no", or the names of a column's two values."""
    first, second = _names(tree, node) or ("yes", "no")
    return shown(first), shown(second)


def _names(tree: Tree, node: int) -> tuple[str, str] | None:
    """The names of the two values between which an inner node splits; None where they have none."""
    feature, threshold = tree.features[tree.feature[node]], float(tree.threshold[node])
    return None if tree.asks_for_missing(node) is not None else feature.names_at(threshold)


def missing_label(tree: Tree, node: int) -> str:
    """Name the answer of rows without a value at an inner node, "missing → yes"; "" where no training row was such."""
    if tree.asks_for_missing(node) is not None or not tree.features[tree.feature[node]].has_missing:
        return ""
    return f"missing → {answers(tree, node)[not tree.missing_go_to_left[node]]}"


def counted(n: int, unit: str = "rows") -> str:
    """A number of things in words, which end in a plural: "1,204 people", "1 person"."""
    first, last = unit.rpartition(" ")[::2]
    return " ".join(filter(None, [f"{n:,}", first, singular(last) if n == 1 else last]))


def with_unit(number: str, unit: str) -> str:
    """A number as it is written, with its unit: "2 days", "1 day", "1.0 days", "1 million dollars", "1 % of days"."""
    words = unit.split(" ")
    for k, word in enumerate(words if number == "1" else []):
        if word in MEASURES:
            words[k] = singular(word)
        if word in MEASURES or word in ("million", "thousand", "hundred") or not word.replace("-", "").isalpha():
            break
        if word in ("per", "of", "a", "an", "in"):
            break
    return " ".join([number, *words]).rstrip()


def singular(plural: str) -> str:
    """The singular of a plural of English, by its ending but for those of :data:`SINGULAR`."""
    if plural in SINGULAR:
        return SINGULAR[plural]
    if plural.endswith("ies"):
        return f"{plural[:-3]}y"
    return plural.removesuffix("es" if plural.endswith(("sses", "shes", "ches", "xes")) else "s")


def _rows_of_leaf(tree: Tree, node: int, start: str = "", end: str = "") -> str:
    """Number and share of the training rows of a leaf; nothing if the tree was made without rows."""
    n, total = int(tree.n_node_samples[node]), int(tree.n_node_samples[0])
    return f"{start}{counted(n)}, {n / total:.1%}{end}" if total else ""


def export_text(tree: Tree, *, missing: bool = True) -> str:
    """Write the tree as indented text, one line per question and leaf.

    Parameters
    ----------
    tree : Tree
    missing : bool, default True
        Say at every question which way missing values go, where the column had some.

    Returns
    -------
    str
        Leaves show the action, and the number and share of training rows, if there were any.

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> from policytree.trees.text import export_text
    >>> X, rewards = [[1.0], [2.0], [3.0], [4.0]], [[1.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 2.0]]
    >>> tree = PolicyTree(max_depth=1).fit(X, rewards).tree_
    >>> print(export_text(tree))
    x0 ≤ 2.5?
    ├─ yes: 0  (2 rows, 50.0%)
    └─ no:  1  (2 rows, 50.0%)
    """
    lines = []
    before = {0: ("", "")}  # what stands before a node's own line, and before those of its children
    for node in range(tree.node_count):  # preorder: as they stand in the text
        first, rest = before.pop(node)
        if tree.is_leaf[node]:
            lines.append(f"{first}{action_label(tree, node)}{_rows_of_leaf(tree, node, '  (', ')')}")
            continue
        lines.append(f"{first}{question(tree, node, missing=missing)}")
        left, right = branches(*answers(tree, node), rest)
        before[int(tree.children_left[node])], before[int(tree.children_right[node])] = left, right
    return "\n".join(lines)


def branches(first: str, second: str, before: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """For each of two answers, the text before its node's own line, and the text before the lines below that."""
    width = max(len(first), len(second)) + 2
    blank = " " * (width + 3)
    return (f"{before}├─ {f'{first}:':<{width}}", f"{before}│{blank[1:]}"), (
        f"{before}└─ {f'{second}:':<{width}}", before + blank,
    )  # fmt: skip


def export_html(tree: Tree) -> str:
    """Write the tree as a nested list of a web page, one entry per question and leaf.

    Parameters
    ----------
    tree : Tree

    Returns
    -------
    str
        An element; nothing that a name or label holds is markup.

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> from policytree.trees.text import export_html
    >>> tree = PolicyTree(max_depth=0).fit([[1.0], [2.0]], [[1.0, 0.0], [2.0, 0.0]]).tree_
    >>> "<li>0 (2 rows, 100.0%)</li>" in export_html(tree)
    True
    """
    parts = []
    answer, closing = {0: ""}, {0: ""}  # what stands before a node's own words, and the lists that end behind a leaf
    for node in range(tree.node_count):  # preorder: as they stand in the list
        first, end = answer.pop(node), closing.pop(node)
        if tree.is_leaf[node]:
            said = f"{action_label(tree, node)}{_rows_of_leaf(tree, node, ' (', ')')}"
            parts.append(f"<li>{first}{escape(said)}</li>{end}")
            continue
        parts.append(f"<li>{first}{escape(question(tree, node))}{_LIST}")
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        first, second = map(escape, answers(tree, node))
        answer[left], closing[left] = f"<em>{first}:</em> ", ""
        answer[right], closing[right] = f"<em>{second}:</em> ", f"</ul></li>{end}"
    return f'<div class="policytree" style="{ROOM}">{_LIST}{"".join(parts)}</ul></div>'


def _dot_string(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("&", "&amp;") + '"'


def export_graphviz(tree: Tree, *, missing: bool = True) -> str:
    r"""Write the tree in Graphviz' DOT language.

    Parameters
    ----------
    tree : Tree
    missing : bool, default True
        Say at every question which way missing values go, where the column had some.

    Returns
    -------
    str

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> from policytree.trees.text import export_graphviz
    >>> X, rewards = [[1.0], [2.0], [3.0], [4.0]], [[1.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 2.0]]
    >>> tree = PolicyTree(max_depth=1).fit(X, rewards).tree_
    >>> print(export_graphviz(tree))
    digraph policytree {
      node [shape=box, fontname=Helvetica];
      edge [fontname=Helvetica];
      0 [label="x0 ≤ 2.5?"];
      0 -> 1 [label="yes"];
      0 -> 2 [label="no"];
      1 [label="0\n2 rows, 50.0%", style=rounded];
      2 [label="1\n2 rows, 50.0%", style=rounded];
    }
    """
    out = ["digraph policytree {", "  node [shape=box, fontname=Helvetica];", "  edge [fontname=Helvetica];"]
    for node in range(tree.node_count):
        if tree.is_leaf[node]:
            label = action_label(tree, node) + _rows_of_leaf(tree, node, "\n")
            out.append(f"  {node} [label={_dot_string(label)}, style=rounded];")
            continue
        out.append(f"  {node} [label={_dot_string(question(tree, node, missing=missing))}];")
        children = tree.children_left[node], tree.children_right[node]
        for child, answer in zip(children, answers(tree, node), strict=True):
            out.append(f"  {node} -> {child} [label={_dot_string(answer)}];")
    return "\n".join([*out, "}"]) + "\n"


def to_rules(tree: Tree) -> pd.DataFrame:
    """List the leaves as rules.

    Parameters
    ----------
    tree : Tree

    Returns
    -------
    DataFrame
        Index: leaf node id. Columns: ``rule`` (the answers on the path, joined by "and"), ``action``, ``n`` (training
        rows) and ``share`` (NaN if the tree was made without rows).
    """
    paths: dict[int, list[str]] = {0: []}
    records = {}
    for node in range(tree.node_count):
        if tree.is_leaf[node]:
            n = int(tree.n_node_samples[node])
            records[node] = {
                "rule": " and ".join(paths[node]) or "everybody",
                "action": tree.actions[tree.action[node]],
                "n": n,
                "share": n / total if (total := int(tree.n_node_samples[0])) else np.nan,
            }
            continue
        label = split_label(tree, node)
        paths[int(tree.children_left[node])] = [*paths[node], label]
        paths[int(tree.children_right[node])] = [*paths[node], f"not ({label})"]
    return pd.DataFrame.from_dict(records, orient="index").rename_axis("leaf")


def rule_sentence(tree: Tree, units: Mapping[str, str] | None = None, most: int = 3) -> str:
    """Say the rule in a sentence: "Give drug to people whose age is at most 50; give none to everybody else" is one.

    Parameters
    ----------
    tree : Tree
    units : mapping of str to str, optional
        By the name of a feature that ends with its unit in brackets, this unit: it is said behind numbers.
    most : int
        Paths that are named at most; a tree that needs more has no sentence.

    Returns
    -------
    str
        "" if the tree is too large.
    """
    if tree.node_count == 1:
        return f"Give {action_label(tree, 0)} to everybody."
    paths: dict[str, list[str]] = {}

    def walk(node: int, path: list[tuple[int, bool]]) -> None:
        if tree.is_leaf[node]:
            paths.setdefault(action_label(tree, node), []).append(_joined(tree, path, units or {}))
            return
        walk(int(tree.children_left[node]), [*path, (node, True)])
        walk(int(tree.children_right[node]), [*path, (node, False)])

    walk(0, [])
    rest = max(reversed(paths), key=lambda action: len(paths[action]))  # of several, the last one
    named = {action: said for action, said in paths.items() if action != rest}
    if sum(len(said) for said in named.values()) > most:
        return ""
    if not named:
        return f"Give {rest} to everybody."
    parts = [f"give {action} to people whose {', or whose '.join(said)}" for action, said in named.items()]
    return f"G{'; '.join(parts)[1:]}; give {rest} to everybody else."


def _joined(tree: Tree, path: list[tuple[int, bool]], units: Mapping[str, str]) -> str:
    """The answers on a path, those about one number together: "age is over 30 and at most 40 and sex is male"."""
    bounds: dict[int, list[float]] = {}
    said: dict[int, list[str]] = {}
    for node, yes in path:
        j, threshold = int(tree.feature[node]), float(tree.threshold[node])
        feature = tree.features[j]
        if _is_about_a_number(tree, node):
            ends = bounds.setdefault(j, [-np.inf, np.inf])
            ends[int(yes)] = min(ends[1], threshold) if yes else max(ends[0], threshold)
            continue
        names = feature.names_at(threshold) if feature.kind != CATEGORICAL else None
        if not yes and names is not None:
            answer, yes = shown(names[1]), True
        else:  # behind the name the label has " = male", " is one of ..." or " is missing"
            label = split_label(tree, node, missing=False).removeprefix(shown(feature.name))
            answer = label.removeprefix(" = ") if label.startswith(" = ") else label.removeprefix(" is ")
        said.setdefault(j, []).append(f"{shown(feature.name)} is {'' if yes else 'not '}{answer}")
    parts = []
    for j in dict.fromkeys(int(tree.feature[node]) for node, _ in path):
        name, unit = shown(tree.features[j].name), units.get(tree.features[j].name, "")
        low, high = bounds.get(j, (-np.inf, np.inf))
        over = f"over {format_threshold(low)}" if np.isfinite(low) else ""
        at_most = f"at most {format_threshold(high)}" if np.isfinite(high) else ""
        if within := " and ".join(filter(None, (over, at_most))):
            parts.append(f"{name.removesuffix(f' ({unit})')} is {within}{f' {unit}' if unit else ''}")
        parts += said.get(j, [])
    return " and ".join(parts)


def _is_about_a_number(tree: Tree, node: int) -> bool:
    feature, threshold = tree.features[tree.feature[node]], float(tree.threshold[node])
    if feature.kind == CATEGORICAL or tree.asks_for_missing(node) is not None:
        return False
    return feature.names_at(threshold) is None
