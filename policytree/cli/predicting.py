"""Rows of a file through a saved tree."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

from policytree.binning import FeatureEncoder
from policytree.cli.tables import read_as_text, read_table, require_column
from policytree.exceptions import InputError, UnseenValueWarning
from policytree.tree import Tree
from policytree.unseen import unseen_values


def with_policy(tree: Tree, path: str, column: str) -> pd.DataFrame:
    """The file's table, its cells as they stand, with the tree's action of every row in a new last column.

    Only the columns that the tree splits on are needed.

    Raises
    ------
    InputError
        If such a column is missing or of another kind, or the new column exists.
    """
    frame = read_table(path)
    if column in frame.columns:
        raise InputError(f"'{path}' already has a column {column!r}; choose another name with --column.")
    encoded = np.full((len(frame), len(tree.features)), np.nan)
    used = tree.used_features
    features = tuple(tree.features[j] for j in used)
    for feature in features:
        require_column(feature.name, "which the tree splits on", frame)
    if features:
        encoded[:, used] = FeatureEncoder(features, named=True).encode(frame[[f.name for f in features]])
        encoder = FeatureEncoder(tree.features, named=True)
        for sentence in unseen_values(tree, encoder, frame, encoded):
            warnings.warn(sentence, UnseenValueWarning, stacklevel=2)
    actions = np.array(tree.actions, dtype=object)[tree.action[tree.apply(encoded)]]
    return read_as_text(path).assign(**{column: actions})
