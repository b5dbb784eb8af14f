"""What is decided before rows are written (the plan), and what is known afterwards (the manifest), as JSON."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from policytree.data.features import Feature
from policytree.encoded.coding import Coding
from policytree.encoded.store import MANIFEST, EncodedData, Scale, Stored, read_json
from policytree.exceptions import InputError
from policytree.problem.split_columns import code_type
from policytree.serialization.labels import label_from_json, label_to_json
from policytree.solvers.core.fixed_point import exponent_of

_ARRAYS = {"cut_values": np.float64, "present": np.int64}  # fields of a coding


@dataclass(frozen=True, slots=True)
class Plan:
    """How rows are written; see :class:`policytree.encoded.store.EncodedData`."""

    features: tuple[Feature, ...]
    codings: tuple[Coding, ...]
    labels: np.ndarray
    of_labels: bool
    weighted: bool
    relative: Scale
    total_weight: float
    n_rows: int
    thinned: tuple[int, ...]

    @property
    def dtype(self) -> np.dtype:
        """Of codes, and of classes."""
        most = max((c.n_codes for c in self.codings), default=1)
        return code_type(max(most, len(self.labels)) if self.of_labels else most)

    def to_json(self) -> dict[str, Any]:
        """Everything as what JSON can hold, exactly."""
        out = asdict(self)
        for feature in out["features"]:
            feature["categories"] = [label_to_json(c) for c in feature["categories"]]
        for coding in out["codings"]:
            coding |= {name: None if coding[name] is None else coding[name].tolist() for name in _ARRAYS}
        labels = [label_to_json(label) for label in self.labels.tolist()]
        relative = [self.relative.exponent, self.relative.total]
        return out | {"labels": labels, "label_dtype": self.labels.dtype.str, "relative": relative}


def scale_of(total: float) -> Scale:
    """The scale of numbers whose sizes add up to so much."""
    return Scale(exponent_of(total), total)


def plan_from_json(data: dict[str, Any]) -> Plan:
    """The reverse of :meth:`Plan.to_json`."""
    out = {**data, "relative": Scale(*data["relative"]), "thinned": tuple(data["thinned"])}
    out["labels"] = np.empty(len(data["labels"]), dtype=np.dtype(out.pop("label_dtype")))
    out["labels"][:] = [label_from_json(label) for label in data["labels"]]
    categories = [tuple(label_from_json(c) for c in f["categories"]) for f in data["features"]]
    features = zip(data["features"], categories, strict=True)
    out["features"] = tuple(Feature(**f | {"categories": values}) for f, values in features)
    arrays = [
        {name: None if c[name] is None else np.array(c[name], dtype=dtype) for name, dtype in _ARRAYS.items()}
        for c in data["codings"]
    ]
    out["codings"] = tuple(Coding(**c | own) for c, own in zip(data["codings"], arrays, strict=True))
    return Plan(**out)


def least_to_json(least: list[np.ndarray]) -> list[list[float | None]]:
    """The smallest value of every code, by coding; None for infinity, which stands where there is none."""
    return [[None if np.isinf(v) else v for v in values] for values in least]


def least_from_json(least: list[list[float | None]]) -> list[np.ndarray]:
    """The reverse of :func:`least_to_json`."""
    return [np.array([np.inf if v is None else v for v in values]) for values in least]


def encoded_data(directory: Path, plan: Plan, least: list[np.ndarray], inexact: int, stored) -> EncodedData:
    """The encoded rows of a plan that was carried out.

    ``least``: by coding, the smallest value of every code.
    """
    return EncodedData(
        directory,
        plan.n_rows,
        plan.features,
        tuple(c.coded_feature(values) for c, values in zip(plan.codings, least, strict=True)),
        plan.dtype,
        plan.labels,
        plan.of_labels,
        plan.weighted,
        plan.relative,
        plan.total_weight,
        inexact,
        plan.thinned,
        tuple(stored),
    )


def open_encoded(directory: str | os.PathLike) -> EncodedData:
    """Open rows that :func:`policytree.encode` wrote, in this process or an earlier one.

    Parameters
    ----------
    directory : path
        The folder that they were written to.

    Returns
    -------
    EncodedData

    Raises
    ------
    InputError
        If the folder holds no encoded rows, or those of a job that did not end.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from policytree import encode, open_encoded
    >>> rows = pd.DataFrame({"age": [30, 40, 50, 60], "none": [1.0, 1, 0, 0], "drug": [0.0, 0, 2, 2]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = encode(rows, ["age"], rewards=["none", "drug"], directory=folder)
    ...     open_encoded(folder).n_rows
    ...
    4
    """
    directory = Path(directory)
    path = directory / MANIFEST
    if not path.exists():
        raise InputError(
            f"'{directory}' holds no encoded rows, or a job that did not end; call encode with this directory first."
        )
    data = read_json(path, "encode the source again, with overwrite=True")
    stored = [Stored(s["file"], s["rows"], s["crc"]) for s in data["stored"]]
    return encoded_data(
        directory, plan_from_json(data["plan"]), least_from_json(data["least"]), data["inexact"], stored
    )
