"""Trees as dictionaries and strict JSON, and back.

Reading never executes anything: every field is checked for its type, length and meaning before a tree is built.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from policytree.data.feature_encoder import is_missing
from policytree.data.features import CATEGORICAL, NUMERIC, Feature
from policytree.exceptions import InputError, quoted
from policytree.serialization.checksums import refuse_changed, text_with_checksum
from policytree.serialization.labels import check_text, float_to_json, label_to_json
from policytree.serialization.parsing import parse_saved
from policytree.serialization.schema import (
    any_label,
    flag,
    many,
    named_float,
    one_of,
    record,
    refuse_repeated,
    text,
    whole,
)
from policytree.trees.tree import IS_MISSING, TREE_LEAF, TREE_UNDEFINED, Tree

FORMAT = "policytree.tree"
VERSION = 1
MAX_DEPTH = 500  # of a saved tree: no rule that somebody reads comes near

_INTEGER_FIELDS: dict[str, type[np.signedinteger]] = {  # field: dtype
    "children_left": np.int32,
    "children_right": np.int32,
    "feature": np.int32,
    "action": np.int32,
    "n_node_samples": np.int64,
}


def feature_from_json(data: Any, name: str) -> Feature:
    """A feature, as trees and encoded rows are saved with it; ``name`` is that of a check."""
    found = _FEATURE(data, name)
    title = f"feature {quoted(found['name'])} of {name.split(' of ')[-1]}"
    if found["kind"] == NUMERIC and found["categories"]:
        raise InputError(f"The {title} must be numeric, or categorical with categories.")
    if any(map(is_missing, found["categories"])):
        raise InputError(f"The {title} has a missing value as a category; delete it there.")
    refuse_repeated(found["categories"], f"The {title} has two categories")
    names = found["value_names"]
    if names is not None and found["kind"] != NUMERIC:
        raise InputError(f"The {title} has 'value_names' and is not numeric; delete one of them.")
    return Feature(**found | {"categories": tuple(found["categories"]), "value_names": names and tuple(names)})


_FEATURE = record(
    {"name": text, "kind": one_of(NUMERIC, CATEGORICAL), "categories": many(any_label)},
    may={"has_missing": flag, "value_names": many(text, 2, 2)},  # files of earlier versions do not say
)
_FIELDS = record(
    {
        "features": many(feature_from_json),
        "actions": many(any_label),
        **{name: many(whole(np.iinfo(dtype).min, np.iinfo(dtype).max)) for name, dtype in _INTEGER_FIELDS.items()},
        "threshold": many(named_float),
        "missing_go_to_left": many(flag),
        "value": many(many(named_float)),
    }
)


def to_dict(tree: Tree) -> dict[str, Any]:
    """A tree as a dictionary of lists, numbers and text that strict JSON can hold.

    Parameters
    ----------
    tree : Tree

    Returns
    -------
    dict
        ``format``, ``version``, and one entry per attribute of :class:`~policytree.trees.tree.Tree`. Floats that JSON
        lacks are the strings ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``; labels other than text, numbers, booleans
        and None are ``{"type": ..., "value": ...}``. Programs may add fields of their own. There is no checksum: that
        is of a text, and :func:`to_json` adds it.

    Raises
    ------
    InputError
        If the tree is not well formed, or a label has a type that could not be restored.

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> from policytree.serialization import to_dict
    >>> X, rewards = [[1.0], [2.0], [3.0], [4.0]], [[1.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 2.0]]
    >>> tree = PolicyTree(max_depth=1).fit(X, rewards).tree_
    >>> fields = to_dict(tree)
    >>> fields["children_left"], fields["threshold"]
    ([1, -1, -1], [2.5, 'NaN', 'NaN'])
    """
    check_tree(tree)
    return {
        "format": FORMAT,
        "version": VERSION,
        "features": [
            {
                "name": check_text(f.name),
                "kind": f.kind,
                "categories": [label_to_json(c) for c in f.categories],
                "has_missing": f.has_missing,
                **({} if f.value_names is None else {"value_names": [check_text(name) for name in f.value_names]}),
            }
            for f in tree.features
        ],
        "actions": [label_to_json(a) for a in tree.actions],
        **{name: getattr(tree, name).tolist() for name in _INTEGER_FIELDS},
        "threshold": [float_to_json(t) for t in tree.threshold.tolist()],
        "missing_go_to_left": np.asarray(tree.missing_go_to_left, dtype=bool).tolist(),
        "value": [[float_to_json(v) for v in row] for row in tree.value.tolist()],
    }


def from_dict(data: dict[str, Any]) -> Tree:
    """The tree that :func:`to_dict` described: equal arrays, and labels of the same Python types.

    Fields that are not part of the format are ignored, so that programs may add their own; the field ``"checksum"``, if
    there is one, is that of all others.

    Parameters
    ----------
    data : dict
        Result of :func:`to_dict`, possibly by way of JSON.

    Returns
    -------
    Tree

    Raises
    ------
    InputError
        If a field is missing or malformed, names stand twice, the nodes do not form one binary tree in preorder, or the
        checksum says that something was changed.

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> from policytree.serialization import from_dict, to_dict
    >>> X, rewards = [[1.0], [2.0], [3.0], [4.0]], [[1.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 2.0]]
    >>> tree = PolicyTree(max_depth=1).fit(X, rewards).tree_
    >>> from_dict({**to_dict(tree), "made for": "ward 3"}).node_count
    3
    """
    _check_header(data)
    refuse_changed(data, "saved tree")
    found = _FIELDS(data, "the saved tree")
    refuse_repeated([feature.name for feature in found["features"]], "The saved tree has two features of the name")
    refuse_repeated(found["actions"], "The saved tree has two treatments of the label")
    K = len(found["actions"])
    if any(len(row) != K for row in found["value"]):
        raise InputError("Every row of field 'value' of the saved tree must hold one number per action.")
    tree = Tree(
        **{name: np.array(found[name], dtype=dtype) for name, dtype in _INTEGER_FIELDS.items()},
        threshold=np.array(found["threshold"], dtype=np.float64),
        missing_go_to_left=np.array(found["missing_go_to_left"], dtype=bool),
        value=np.array(found["value"], dtype=np.float64).reshape(len(found["value"]), K),
        features=tuple(found["features"]),
        actions=tuple(found["actions"]),
    )
    check_tree(tree)
    return tree


def to_json(tree: Tree, *, indent: int | None = None) -> str:
    """A tree as strict JSON (RFC 8259, ASCII only), with a checksum.

    Parameters
    ----------
    tree : Tree
    indent : int or None
        Spaces by which each level is indented; None puts everything on one line.

    Returns
    -------
    str
        The fields of :func:`to_dict`, and ``checksum``, the SHA-256 of the others. By it :func:`from_json` tells a text
        that was changed or damaged from one as saved. It is no signature: whoever changes the text can also write the
        checksum of the changed one.

    Raises
    ------
    InputError
        As :func:`to_dict`.

    Examples
    --------
    >>> import json
    >>> from policytree import PolicyTree
    >>> from policytree.serialization import to_json
    >>> X, rewards = [[1.0], [2.0], [3.0], [4.0]], [[1.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 2.0]]
    >>> tree = PolicyTree(max_depth=1).fit(X, rewards).tree_
    >>> fields = json.loads(to_json(tree))
    >>> fields["format"], fields["version"], len(fields["checksum"])
    ('policytree.tree', 1, 64)
    """
    return text_with_checksum(to_dict(tree), indent=indent)


def from_json(text: str | bytes) -> Tree:
    """The tree in a JSON text made by :func:`to_json`; nothing in the text is ever executed.

    Texts without a checksum, as earlier versions wrote them, are read too.

    Parameters
    ----------
    text : str or bytes

    Returns
    -------
    Tree

    Raises
    ------
    InputError
        If the text is not strict JSON, was changed after it was saved, or does not describe a tree; see
        :func:`from_dict`.

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> from policytree.serialization import from_json, to_json
    >>> X, rewards = [[1.0], [2.0], [3.0], [4.0]], [[1.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 2.0]]
    >>> tree = PolicyTree(max_depth=1).fit(X, rewards).tree_
    >>> from_json(to_json(tree)).node_count
    3
    """
    if not isinstance(text, str | bytes):
        raise InputError(f"from_json takes text; got {type(text).__name__} (from_dict takes dictionaries).")
    return from_dict(parse_saved(text, "saved tree"))


def check_tree(tree: Tree) -> None:
    """Check that the arrays describe one binary tree in preorder.

    Raises
    ------
    InputError
        Naming the first thing that is wrong.
    """
    n, n_actions = len(tree.children_left), len(tree.actions)
    if n == 0 or n_actions == 0:
        raise InputError("A tree needs at least one node and one action.")
    for name in (*_INTEGER_FIELDS, "threshold", "missing_go_to_left"):
        if getattr(tree, name).shape != (n,):
            raise InputError(f"Field {name!r} of the tree must hold one entry for each of the {n} nodes.")
    if tree.value.shape != (n, n_actions):
        raise InputError(f"Field 'value' of the tree must hold {n} rows of {n_actions} numbers.")
    _check_preorder(tree)
    _check_splits(tree)
    if ((tree.action < 0) | (tree.action >= n_actions)).any():
        raise InputError(f"Field 'action' of the tree must lie between 0 and {n_actions - 1}.")
    inner = np.flatnonzero(~tree.is_leaf)
    counts = tree.n_node_samples
    below = counts[tree.children_left[inner]] + counts[tree.children_right[inner]]
    if (counts < 0).any() or (counts[inner] != below).any():
        raise InputError("Field 'n_node_samples' of the tree must count the rows of both children in their parent.")


def _check_preorder(tree: Tree) -> None:
    # Walking from the root must meet 0, 1, 2, ...: this refuses cycles, shared children and nodes nobody reaches.
    waiting = [(0, 0)]  # nodes and their depths
    for node in range(tree.node_count):
        expected, depth = waiting.pop() if waiting else (-1, 0)
        if expected != node:
            raise InputError(f"The children of the tree do not form one binary tree in preorder (at node {node}).")
        if depth > MAX_DEPTH:
            raise InputError(f"The tree has more than {MAX_DEPTH} levels; such trees are neither saved nor read.")
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        if (left == TREE_LEAF) != (right == TREE_LEAF):
            raise InputError(f"Node {node} of the tree must have two children or none.")
        if left != TREE_LEAF:
            waiting += [(right, depth + 1), (left, depth + 1)]
    if waiting:
        raise InputError(f"The tree names child {waiting[-1][0]}, but has only {tree.node_count} nodes.")


def _check_splits(tree: Tree) -> None:
    leaf = tree.is_leaf
    if (tree.feature[leaf] != TREE_UNDEFINED).any() or not np.isnan(tree.threshold[leaf]).all():
        raise InputError(f"Leaves of the tree must have feature {TREE_UNDEFINED} and threshold NaN.")
    for node in np.flatnonzero(~leaf).tolist():
        j, threshold = int(tree.feature[node]), float(tree.threshold[node])
        if not 0 <= j < len(tree.features) or math.isnan(threshold):
            raise InputError(f"Node {node} of the tree must split on one of its features, at a number.")
        if tree.features[j].kind == CATEGORICAL:
            try:
                tree.features[j].levels_at(threshold)
            except InputError as error:
                name = tree.features[j].name
                raise InputError(
                    f"Node {node} of the tree must split on a category of feature {name!r}, or a set of them."
                ) from error
        asked = tree.asks_for_missing(node)
        if asked is not None and bool(tree.missing_go_to_left[node]) != (asked == IS_MISSING):
            raise InputError(
                f"Node {node} of the tree asks whether feature {tree.features[j].name!r} {asked}, so that its "
                f"'missing_go_to_left' must be {str(asked == IS_MISSING).lower()}."
            )


def _check_header(data: Any) -> None:
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(f"This is not a saved tree: its field 'format' must be {FORMAT!r}.")
    version = data.get("version")
    if type(version) is not int or version < 1:
        raise InputError("Field 'version' of the saved tree must be a positive whole number.")
    if version > VERSION:
        raise InputError(f"The saved tree has version {version}, newer than {VERSION}; upgrade policytree to read it.")
