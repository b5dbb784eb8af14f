"""Values that no training row had (categories, gaps), and the side of a split that they take."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from policytree.data.feature_encoder import FeatureEncoder, is_missing
from policytree.data.features import CATEGORICAL
from policytree.exceptions import UnseenValueWarning
from policytree.trees.tree import Tree

SHOWN = 3  # values, and questions, that a sentence names
KEPT = 100  # new values that are remembered from batch to batch


def warn_of_unseen(tree: Tree, encoder: FeatureEncoder, X, encoded: np.ndarray) -> None:
    """One warning for every column on which rows with a value never seen at fit are split.

    Parameters
    ----------
    tree : Tree
    encoder : FeatureEncoder
        The one of the tree's table.
    X : table of shape (n, p)
        As the user gave it.
    encoded : ndarray of shape (n, p)
        As the encoder made it; NaN stands for missing and for unseen.

    Warns
    -----
    UnseenValueWarning
    """
    for sentence in unseen_values(tree, encoder, X, encoded):
        warnings.warn(sentence, UnseenValueWarning, stacklevel=4)


@dataclass(frozen=True, slots=True)
class Unseen:
    """Rows whose value of one column no row had at fit.

    Attributes
    ----------
    feature : int
        Position of the column.
    values : tuple of str
        The new ones, sorted; empty where a value is missing that never was at fit.
    rows : int
    nodes : tuple of int
        The questions that these rows meet.
    """

    feature: int
    values: tuple[str, ...]
    rows: int
    nodes: tuple[int, ...]


def merged(parts: list[Unseen]) -> list[Unseen]:
    """One part for each column and kind, of what several batches of rows gave."""
    found: dict[tuple[int, bool], Unseen] = {}
    for part in parts:
        key = (part.feature, bool(part.values))
        if key in found:
            first = found[key]
            values = tuple(sorted({*first.values, *part.values}))
            nodes = tuple(sorted({*first.nodes, *part.nodes}))
            part = Unseen(part.feature, values[:KEPT], first.rows + part.rows, nodes)
        found[key] = part
    return list(found.values())


def unseen_values(tree: Tree, encoder: FeatureEncoder, X, encoded: np.ndarray) -> list[str]:
    """One sentence a column: how many rows have what, and the side they take; see :func:`warn_of_unseen`."""
    return [sentence(tree, part) for part in unseen_parts(tree, encoder, X, encoded)]


def unseen_parts(tree: Tree, encoder: FeatureEncoder, X, encoded: np.ndarray) -> list[Unseen]:
    """The values of some rows that no row had at fit, by column."""
    used = [int(j) for j in tree.used_features if np.isnan(encoded[:, j]).any()]
    if not used:
        return []
    rows_of, inner, parts = tree.rows_of_nodes(encoded), np.flatnonzero(~tree.is_leaf), []
    for j in used:
        nodes = [int(node) for node in inner if tree.feature[node] == j]
        reached = np.unique(np.concatenate([rows_of[node] for node in nodes]))
        unknown = reached[np.isnan(encoded[reached, j])]
        feature, gaps = tree.features[j], unknown
        if feature.kind == CATEGORICAL:
            values = encoder.values(X, j)
            new = np.array([not is_missing(values[i]) for i in unknown], dtype=bool)
            if new.any():
                kinds = tuple(sorted({str(values[i]) for i in unknown[new]}))
                parts.append(Unseen(j, kinds[:KEPT], int(new.sum()), _met(nodes, rows_of, unknown[new])))
            gaps = unknown[~new]
        if len(gaps) and feature.has_missing is False:
            parts.append(Unseen(j, (), len(gaps), _met(nodes, rows_of, gaps)))
    return parts


def _met(nodes: list[int], rows_of: list[np.ndarray], rows: np.ndarray) -> tuple[int, ...]:
    """The questions that the rows meet."""
    return tuple(node for node in nodes if np.isin(rows, rows_of[node]).any())


def sentence(tree: Tree, part: Unseen) -> str:
    """How many rows have what, and the side they take."""
    from policytree.trees.text import counted  # export loads pandas, which a tree does without

    what = "have a missing value, which no row had at fit"
    if part.values:
        what = f"have a value that no row had at fit ({_some(list(part.values))})"
    verb = what if part.rows > 1 else what.replace("have", "has", 1)
    rows, sides = counted(part.rows), _sides(tree, part.nodes)
    return f"Column {tree.features[part.feature].name!r}: {rows} {verb}. The tree learnt nothing about that: {sides}."


def _sides(tree: Tree, nodes: tuple[int, ...]) -> str:
    """Where rows go at questions, such as "at 'town = Oslo?' they go to 'no'"."""
    from policytree.trees.text import answers, question

    sides = [f"'{question(tree, n)}' they go to '{answers(tree, n)[not tree.missing_go_to_left[n]]}'" for n in nodes]
    return "at " + ", at ".join(sides[:SHOWN]) + (", ..." if len(sides) > SHOWN else "")


def _some(values: list[str]) -> str:
    return ", ".join(repr(v) for v in values[:SHOWN]) + (", ..." if len(values) > SHOWN else "")
