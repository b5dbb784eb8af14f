"""Trees as dictionaries and strict JSON, and back; files that are written whole or not at all.

Reading never executes anything: every field is checked for its type, length and meaning before a tree is built.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import re
import secrets
import shutil
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from policytree.exceptions import InputError
from policytree.tree import TREE_LEAF, TREE_UNDEFINED, Tree
from policytree.types import CATEGORICAL, NUMERIC, Feature

FORMAT = "policytree.tree"
VERSION = 1

_NAMED_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}  # JSON has no such numbers
_NUMPY_TYPES = re.compile(
    r"bool|str|u?int(8|16|32|64)|float(16|32|64)|(datetime64|timedelta64)\[\d*(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\]"
)
_ISO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d:\d\d(:\d\d(\.\d+)?)?)?")
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
        ``format``, ``version``, and one entry per attribute of :class:`~policytree.tree.Tree`. Floats that JSON lacks
        are the strings ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``; labels other than text, numbers, booleans and
        None are ``{"type": ..., "value": ...}``.

    Raises
    ------
    InputError
        If the tree is not well formed, or a label has a type that could not be restored.
    """
    check_tree(tree)
    return {
        "format": FORMAT,
        "version": VERSION,
        "features": [
            {"name": f.name, "kind": f.kind, "categories": [_label_to_json(c) for c in f.categories]}
            for f in tree.features
        ],
        "actions": [_label_to_json(a) for a in tree.actions],
        **{name: getattr(tree, name).tolist() for name in _INTEGER_FIELDS},
        "threshold": [_float_to_json(t) for t in tree.threshold.tolist()],
        "missing_go_to_left": np.asarray(tree.missing_go_to_left, dtype=bool).tolist(),
        "value": [[_float_to_json(v) for v in row] for row in tree.value.tolist()],
    }


def from_dict(data: dict[str, Any]) -> Tree:
    """The tree that :func:`to_dict` described: equal arrays, and labels of the same Python types.

    Fields that are not part of the format are ignored, so that programs may add their own.

    Raises
    ------
    InputError
        If a field is missing or malformed, or the nodes do not form one binary tree in preorder.
    """
    _check_header(data)
    features = tuple(_feature_from_json(f, j) for j, f in enumerate(_list(data["features"], "features")))
    actions = tuple(_label_from_json(a) for a in _list(data["actions"], "actions"))
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
    """A tree as strict JSON (RFC 8259, ASCII only); ``indent`` as in :func:`json.dumps`. See :func:`to_dict`."""
    return json.dumps(to_dict(tree), indent=indent, allow_nan=False)


def from_json(text: str | bytes) -> Tree:
    """The tree in a JSON text made by :func:`to_json`; nothing in the text is ever executed.

    Raises
    ------
    InputError
        If the text is not strict JSON or does not describe a tree; see :func:`from_dict`.
    """
    if not isinstance(text, str | bytes):
        raise InputError(f"from_json takes text; got {type(text).__name__} (from_dict takes dictionaries).")
    try:
        data = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        raise InputError(f"The saved tree is not valid JSON ({error}); save it again with to_json.") from error
    return from_dict(data)


def save_bytes(path: str | os.PathLike, data: bytes) -> Path:
    """Write a file so that, whatever happens, ``path`` holds either what it held before or all of ``data``.

    The bytes go to a temporary file beside ``path`` that then takes its place (atomic on one file system).

    Returns
    -------
    pathlib.Path
        The path written.

    Raises
    ------
    InputError
        If the folder does not exist or the file cannot be written.
    """
    target = Path(os.path.realpath(path))  # through links: a link should keep pointing at what it points to
    if target.is_dir() or not target.parent.is_dir():
        problem = "it is a folder" if target.is_dir() else f"the folder '{target.parent}' does not exist"
        raise InputError(f"Cannot write '{path}': {problem}; name a file in an existing folder.")
    try:
        if target.exists() and not target.is_file():  # a device or pipe cannot be replaced
            target.write_bytes(data)
        else:
            _replace(target, data)
    except OSError as error:
        raise InputError(f"Cannot write '{path}': {error.strerror}; choose another place.") from error
    return Path(path)


def save_text(path: str | os.PathLike, text: str) -> Path:
    """Write UTF-8 text as :func:`save_bytes` does."""
    return save_bytes(path, text.encode("utf-8"))


def _replace(target: Path, data: bytes) -> None:
    temporary = target.with_name(f".{target.name[:64]}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:  # an interrupt must not leave the temporary file either
        temporary.unlink(missing_ok=True)
        raise


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
    waiting = [0]
    for node in range(tree.node_count):
        if not waiting or waiting.pop() != node:
            raise InputError(f"The children of the tree do not form one binary tree in preorder (at node {node}).")
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        if (left == TREE_LEAF) != (right == TREE_LEAF):
            raise InputError(f"Node {node} of the tree must have two children or none.")
        if left != TREE_LEAF:
            waiting += [right, left]
    if waiting:
        raise InputError(f"The tree names child {waiting[-1]}, but has only {tree.node_count} nodes.")


def _check_splits(tree: Tree) -> None:
    leaf = tree.is_leaf
    if (tree.feature[leaf] != TREE_UNDEFINED).any() or not np.isnan(tree.threshold[leaf]).all():
        raise InputError(f"Leaves of the tree must have feature {TREE_UNDEFINED} and threshold NaN.")
    for node in np.flatnonzero(~leaf):
        j, threshold = int(tree.feature[node]), float(tree.threshold[node])
        if not 0 <= j < len(tree.features) or math.isnan(threshold):
            raise InputError(f"Node {node} of the tree must split on one of its features, at a number.")
        # -1 is no category: such a split sends missing values one way and all others the other.
        is_category = threshold.is_integer() and -1 <= threshold < len(tree.features[j].categories)
        if tree.features[j].kind == CATEGORICAL and not is_category:
            raise InputError(f"Node {node} of the tree must split on a category of feature {tree.features[j].name!r}.")


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
    return [_float_from_json(v, name) for v in _list(value, name)]


def _float_to_json(value: float) -> float | str:
    if math.isfinite(value):
        return value  # json writes the shortest text that reads back as the same float64
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _float_from_json(value: Any, name: str) -> float:
    if isinstance(value, str) and value in _NAMED_FLOATS:
        return _NAMED_FLOATS[value]
    if type(value) in (int, float) and abs(value) <= np.finfo(np.float64).max:
        return float(value)
    raise InputError(f"Field {name!r} of the saved tree must hold numbers, or one of {', '.join(_NAMED_FLOATS)}.")


def _feature_from_json(data: Any, j: int) -> Feature:
    if not isinstance(data, dict) or not isinstance(data.get("name"), str):
        raise InputError(f"Feature {j} of the saved tree must have a name.")
    kind = data.get("kind")
    categories = tuple(_label_from_json(c) for c in _list(data.get("categories"), "categories"))
    if kind not in (NUMERIC, CATEGORICAL) or (kind == NUMERIC and categories):
        raise InputError(f"Feature {data['name']!r} of the saved tree must be numeric, or categorical with categories.")
    return Feature(data["name"], kind, categories)


def _label_to_json(label: Any) -> Any:
    """A label as JSON; checked to come back as it is."""
    data = _describe_label(label)
    if data is not _UNKNOWN:
        back = _label_from_json(data)
        same_value = back == label or (back != back and label != label)
        if type(back) is type(label) and same_value:
            return data
    raise InputError(
        f"The label {label!r} of type {type(label).__name__} cannot be saved; use text, numbers, booleans or dates."
    )


_UNKNOWN = object()


def _describe_label(label: Any) -> Any:
    if label is None or type(label) in (str, bool, int):
        return label
    if type(label) is float:
        return label if math.isfinite(label) else {"type": "float", "value": _float_to_json(label)}
    if isinstance(label, np.generic):
        return _describe_numpy(label)
    if isinstance(label, pd.Timestamp):
        return {"type": "timestamp", "unit": label.unit, **_describe_time(label)}
    if type(label) is dt.datetime:
        return {"type": "datetime", **_describe_time(label)}
    if type(label) is dt.date:
        return {"type": "date", "value": label.isoformat()}
    if isinstance(label, pd.Interval):  # the categories that pandas.cut makes
        ends = {"left": _label_to_json(label.left), "right": _label_to_json(label.right)}
        return {"type": "interval", "closed": label.closed, **ends}
    return _UNKNOWN


def _describe_numpy(label: np.generic) -> Any:
    kind = label.dtype.kind
    name = "str" if kind == "U" else label.dtype.name
    if not _NUMPY_TYPES.fullmatch(name):
        return _UNKNOWN
    if kind in "Mm":
        value = int(label.astype(np.int64))
    else:
        value = _float_to_json(label.item()) if kind == "f" else label.item()
    return {"type": "numpy", "dtype": name, "value": value}


def _describe_time(label: dt.datetime) -> dict[str, Any]:
    # A named zone cannot be read off an offset, so it is kept beside the moment in UTC.
    zone = getattr(label.tzinfo, "key", None)
    moment = label if zone is None else label.astimezone(dt.UTC)
    return {"value": moment.isoformat(), "timezone": zone}


def _label_from_json(data: Any) -> Any:
    if data is None or type(data) in (str, bool, int):
        return data
    if type(data) is float and math.isfinite(data):
        return data
    reader = _READERS.get(str(data.get("type"))) if isinstance(data, dict) else None
    if reader is None:
        raise InputError("A label of the saved tree must be text, a number, true, false, null, or have a known 'type'.")
    try:
        return reader(data)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"A label of type {data['type']!r} in the saved tree is malformed; save it again.") from error


def _read_numpy(data: dict) -> Any:
    name, value = data["dtype"], data["value"]
    if not (isinstance(name, str) and _NUMPY_TYPES.fullmatch(name)):
        raise ValueError(name)
    dtype = np.dtype(name)
    wanted = {"b": bool, "U": str, "f": (int, float, str)}.get(dtype.kind, int)
    if not isinstance(value, wanted) or (isinstance(value, bool) and dtype.kind != "b"):
        raise TypeError(value)
    if dtype.kind in "Mm":
        return np.array(value, dtype=np.int64).astype(dtype)[()]
    if dtype.kind != "f":
        return dtype.type(value)
    number = _float_from_json(value, "label")
    with np.errstate(over="ignore"):
        out = dtype.type(number)
    if not (float(out) == number or math.isnan(number)):
        raise OverflowError(number)
    return out


def _read_datetime(data: dict) -> dt.datetime:
    moment = dt.datetime.fromisoformat(_iso_time(data["value"]))
    return moment if data["timezone"] is None else moment.astimezone(ZoneInfo(data["timezone"]))


def _read_timestamp(data: dict) -> pd.Timestamp:
    moment = pd.Timestamp(_iso_time(data["value"])).as_unit(data["unit"])
    return moment if data["timezone"] is None else moment.tz_convert(ZoneInfo(data["timezone"]))


def _read_interval(data: dict) -> pd.Interval:
    if any(isinstance(data[end], dict) and data[end].get("type") == "interval" for end in ("left", "right")):
        raise ValueError("nested intervals")
    return pd.Interval(_label_from_json(data["left"]), _label_from_json(data["right"]), closed=data["closed"])


def _iso_time(text: Any) -> str:
    # Parsers take more ("now", "today"), which would not mean the same tomorrow.
    if not isinstance(text, str) or not _ISO_TIME.fullmatch(text):
        raise ValueError(text)
    return text


_READERS = {
    "float": lambda data: _float_from_json(data["value"], "label"),
    "numpy": _read_numpy,
    "timestamp": _read_timestamp,
    "datetime": _read_datetime,
    "date": lambda data: dt.date.fromisoformat(data["value"]),
    "interval": _read_interval,
}


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        raise ValueError("a field stands twice")
    return data
