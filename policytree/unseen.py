"""What a tree is asked about and never saw: categories and gaps that no training row had, and the side they take."""

from __future__ import annotations

import warnings

import numpy as np

from policytree.binning import FeatureEncoder, is_missing
from policytree.exceptions import UnseenValueWarning
from policytree.features import CATEGORICAL
from policytree.tree import Tree

SHOWN = 3  # values, and questions, that a sentence names


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


def unseen_values(tree: Tree, encoder: FeatureEncoder, X, encoded: np.ndarray) -> list[str]:
    """One sentence a column: how many rows have what, and the side they take; see :func:`warn_of_unseen`."""
    used = [int(j) for j in tree.used_features if np.isnan(encoded[:, j]).any()]
    if not used:
        return []
    rows_of, inner, sentences = tree.rows_of_nodes(encoded), np.flatnonzero(~tree.is_leaf), []
    for j in used:
        nodes = [int(node) for node in inner if tree.feature[node] == j]
        reached = np.unique(np.concatenate([rows_of[node] for node in nodes]))
        unknown = reached[np.isnan(encoded[reached, j])]
        feature, gaps = tree.features[j], unknown
        if feature.kind == CATEGORICAL:
            values = encoder.values(X, j)
            new = np.array([not is_missing(values[i]) for i in unknown], dtype=bool)
            if new.any():
                kinds = sorted({str(values[i]) for i in unknown[new]})
                what = f"have a value that no row had at fit ({_some(kinds)})"
                sentences.append(_sentence(tree, j, int(new.sum()), what, _sides(tree, nodes, rows_of, unknown[new])))
            gaps = unknown[~new]
        if len(gaps) and feature.has_missing is False:
            what = "have a missing value, which no row had at fit"
            sentences.append(_sentence(tree, j, len(gaps), what, _sides(tree, nodes, rows_of, gaps)))
    return sentences


def _sentence(tree: Tree, j: int, n: int, what: str, sides: str) -> str:
    from policytree.export import counted  # export loads pandas, which a tree does without

    verb = what if n > 1 else what.replace("have", "has", 1)
    return f"Column {tree.features[j].name!r}: {counted(n)} {verb}. The tree learnt nothing about that: {sides}."


def _sides(tree: Tree, nodes: list[int], rows_of: list[np.ndarray], rows: np.ndarray) -> str:
    """Where the rows go at the questions they meet, such as "at 'town = Oslo?' they go to 'no'"."""
    from policytree.export import split_label

    met = [node for node in nodes if np.isin(rows, rows_of[node]).any()]
    sides = [f"'{split_label(tree, n)}?' they go to '{'yes' if tree.missing_go_to_left[n] else 'no'}'" for n in met]
    return "at " + ", at ".join(sides[:SHOWN]) + (", ..." if len(sides) > SHOWN else "")


def _some(values: list[str]) -> str:
    return ", ".join(repr(v) for v in values[:SHOWN]) + (", ..." if len(values) > SHOWN else "")
