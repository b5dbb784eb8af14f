"""Trees as dictionaries and strict JSON, and back.

Reading never executes anything: every field is checked for its type, length and meaning before a tree is built.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from policytree.data.feature_encoder import is_missing
from policytree.data.features import CATEGORICAL, NUMERIC, Feature
from policytree.exceptions import InputError
from policytree.serialization.checksums import refuse_changed, text_with_checksum
from policytree.serialization.labels import check_text, float_from_json, float_to_json, label_from_json, label_to_json
from policytree.serialization.parsing import parse_json
from policytree.trees.tree import IS_MISSING, TREE_LEAF, TREE_UNDEFINED, Tree

FORMAT = "policytree.tree"
VERSION = 1
MAX_DEPTH = 500  # of a saved tree: no rule that somebody reads comes near

_INTEGER_FIELDS = {  # field: dtype
    "children_left": np.int32,
    "children_right": np.int32,
    "feature": np.int32,
    "action": np.int32,
    "n_node_samples": np.int64,
}
_FIELDS = ("features", "actions", *_INTEGER_FIELDS, "threshold", "missing_go_to_left", "value")


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
        What :func:`to_dict` returned, possibly by way of JSON.

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
    features = tuple(_feature_from_json(f, j) for j, f in enumerate(_list(data["features"], "features")))
    _refuse_repeated([feature.name for feature in features], "features of the name")
    actions = tuple(label_from_json(a) for a in _list(data["actions"], "actions"))
    _refuse_repeated(actions, "treatments of the label")
    arrays = {name: _integers(data[name], name, dtype) for name, dtype in _INTEGER_FIELDS.items()}
    missing = _list(data["missing_go_to_left"], "missing_go_to_left")
    if not all(isinstance(m, bool) for m in missing):
        raise InputError("Field 'missing_go_to_left' of the saved tree must hold true or false only.")
    rows = [_floats(row, "value") for row in _list(data["value"], "value")]
    if any(len(row) != len(actions) for row in rows):
        raise InputError("Every row of field 'value' of the saved tree must hold one number per action.")
    tree = Tree(
        **arrays,
        threshold=np.array(_floats(data["threshold"], "threshold"), dtype=np.float64),
        missing_go_to_left=np.array(missing, dtype=bool),
        value=np.array(rows, dtype=np.float64).reshape(len(rows), len(actions)),
        features=features,
        actions=actions,
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
    try:
        data = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"The saved tree is not valid JSON ({error}); save it again with to_json.") from error
    return from_dict(data)


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
    lacking = [name for name in _FIELDS if name not in data]
    if lacking:
        raise InputError(f"The saved tree lacks the field(s) {', '.join(map(repr, lacking))}; save it again.")


def _list(value: Any, name: str) -> list:
    if not isinstance(value, list):
        raise InputError(f"Field {name!r} of the saved tree must be a list.")
    return value


def _integers(value: Any, name: str, dtype: type) -> np.ndarray:
    limits = np.iinfo(dtype)
    numbers = _list(value, name)
    if not all(type(v) is int and limits.min <= v <= limits.max for v in numbers):
        raise InputError(f"Field {name!r} of the saved tree must hold whole numbers ({np.dtype(dtype).name}) only.")
    return np.array(numbers, dtype=dtype)


def _floats(value: Any, name: str) -> list[float]:
    return [float_from_json(v, name) for v in _list(value, name)]


def _feature_from_json(data: Any, j: int) -> Feature:
    if not isinstance(data, dict) or not isinstance(data.get("name"), str):
        raise InputError(f"Feature {j} of the saved tree must have a name.")
    kind = data.get("kind")
    categories = tuple(label_from_json(c) for c in _list(data.get("categories"), "categories"))
    if kind not in (NUMERIC, CATEGORICAL) or (kind == NUMERIC and categories):
        raise InputError(f"Feature {data['name']!r} of the saved tree must be numeric, or categorical with categories.")
    gaps = data.get("has_missing")  # files of earlier versions do not say
    name = check_text(data["name"])
    if any(map(is_missing, categories)):
        raise InputError(f"Feature {name!r} of the saved tree has a missing value as a category; delete it there.")
    _refuse_repeated(categories, f"categories of feature {name!r} of the label")
    if not (gaps is None or isinstance(gaps, bool)):
        raise InputError(f"Field 'has_missing' of feature {name!r} of the saved tree must be true, false or null.")
    names = data.get("value_names")
    if names is not None and not (
        kind == NUMERIC and isinstance(names, list) and len(names) == 2 and all(isinstance(n, str) for n in names)
    ):
        raise InputError(
            f"Field 'value_names' of feature {name!r} of the saved tree must be two texts, and the feature numeric."
        )
    return Feature(
        name, kind, categories, gaps, None if names is None else (check_text(names[0]), check_text(names[1]))
    )


def _refuse_repeated(labels: Sequence[Any], what: str) -> None:
    seen: set[Any] = set()
    for label in labels:
        if label in seen:
            raise InputError(f"The saved tree has two {what} {label!r}; every one needs its own.")
        seen.add(label)
