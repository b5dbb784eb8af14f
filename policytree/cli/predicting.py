"""Rows of a file through a saved tree, a batch at a time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd

from policytree.cli.reading import Reading
from policytree.cli.tables import AS_IT_IS, Batch, batches, require_column
from policytree.data.feature_encoder import FeatureEncoder
from policytree.data.features import CATEGORICAL, Feature
from policytree.exceptions import InputError, UnseenValueWarning
from policytree.trees.tree import Tree
from policytree.trees.unseen_values import Unseen, merged, sentence, unseen_parts

BATCH_ROWS = 50_000


def policy_batches(tree: Tree, path: str, column: str, reading: Reading = AS_IT_IS) -> Iterator[pd.DataFrame]:
    """The file's rows, their cells as they stand, with the tree's action of every row in a new last column.

    Only the columns that the tree splits on are needed. A file of any length is read: only a batch of its rows is held.

    Raises
    ------
    InputError
        If such a column is missing or of another kind, or the new column exists.

    Warns
    -----
    UnseenValueWarning
        After the last batch, for every column with values that no row had at fit.
    """
    heard: list[Unseen] = []
    for batch in batches(path, BATCH_ROWS, numeric=_in_numbers(tree), reading=reading):
        if column in batch.cells.columns:
            raise InputError(f"'{path}' already has a column {column!r}; choose another name with --column.")
        actions, unseen = actions_of(tree, batch)
        heard = merged([*heard, *unseen])
        yield batch.cells.assign(**{column: actions})
    for part in heard:
        warnings.warn(sentence(tree, part), UnseenValueWarning, stacklevel=2)


def whole_table(tree: Tree, path: str, reading: Reading = AS_IT_IS) -> Batch:
    """All rows of a file, read for a tree."""
    return table_of(path, _in_numbers(tree), reading)


def table_of(path: str, numeric: list[str], reading: Reading = AS_IT_IS) -> Batch:
    """All rows of a file; ``numeric``: columns that are wanted as numbers too."""
    parts = list(batches(path, BATCH_ROWS, numeric=numeric, reading=reading))
    cells, typed = (pd.concat([getattr(p, name) for p in parts], ignore_index=True) for name in ("cells", "typed"))
    return Batch(cells, typed, parts[0].missing, reading)


def _in_numbers(tree: Tree) -> list[str]:
    return [tree.features[j].name for j in tree.used_features if not in_words(tree.features[j])]


def actions_of(tree: Tree, batch: Batch) -> tuple[np.ndarray, list[Unseen]]:
    """The tree's action for every row, and the values that no training row had.

    Raises
    ------
    InputError
        If a column that the tree splits on is missing or of another kind.
    """
    features = [tree.features[j] for j in tree.used_features]
    for feature in features:
        require_column(feature.name, "which the tree splits on", batch.cells)
    columns = {f.name: batch.words(f.name) if in_words(f) else batch.typed[f.name] for f in features}
    return actions_by(tree, pd.DataFrame(columns, index=batch.cells.index))


def actions_by(tree: Tree, frame: pd.DataFrame) -> tuple[np.ndarray, list[Unseen]]:
    """The tree's action for every row of the columns that it splits on, texts as they stand in a file.

    Raises
    ------
    InputError
        If a column is of another kind than at fit.
    """
    used = tree.used_features
    encoded = np.full((len(frame), len(tree.features)), np.nan)
    unseen: list[Unseen] = []
    if len(used):
        features = tuple(tree.features[j] for j in used)
        _refuse_numbers_for_words(features, frame)
        encoded[:, used] = FeatureEncoder(features, named=True).encode(frame)
        unseen = unseen_parts(tree, FeatureEncoder(tree.features, named=True), frame, encoded)
    return np.array(tree.actions, dtype=object)[tree.action[tree.apply(encoded)]], unseen


def in_words(feature: Feature) -> bool:
    """Whether a feature's values are texts, which stay as they stand in a file."""
    return feature.kind == CATEGORICAL and all(isinstance(value, str) for value in feature.categories)


def _refuse_numbers_for_words(features, frame: pd.DataFrame) -> None:
    """One sentence where all values of a column are numbers and none of its categories is one."""
    for feature in features:
        if not in_words(feature) or not feature.categories:
            continue
        given = pd.to_numeric(frame[feature.name].dropna(), errors="coerce")
        known = pd.to_numeric(pd.Series(feature.categories, dtype=object), errors="coerce")
        if len(given) and given.notna().all() and known.isna().all():
            raise InputError(
                f"Column {feature.name!r} held text at fit ({', '.join(map(str, feature.categories[:3]))}, ...) and "
                "holds numbers now; give it the same texts."
            )
