"""What is decided before rows are written (the plan), and what is known afterwards (the manifest), as JSON."""

from __future__ import annotations

import os
from dataclasses import dataclass
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
        return {
            "features": [
                {
                    "name": f.name,
                    "kind": f.kind,
                    "categories": [label_to_json(c) for c in f.categories],
                    "has_missing": f.has_missing,
                }
                for f in self.features
            ],
            "codings": [
                {
                    "feature": c.feature,
                    "n_values": c.n_values,
                    "has_missing": c.has_missing,
                    "cut_values": None if c.cut_values is None else c.cut_values.tolist(),
                    "present": None if c.present is None else c.present.tolist(),
                }
                for c in self.codings
            ],
            "labels": [label_to_json(label) for label in self.labels.tolist()],
            "label_dtype": self.labels.dtype.str,
            "of_labels": self.of_labels,
            "weighted": self.weighted,
            "relative": [self.relative.exponent, self.relative.total],
            "total_weight": self.total_weight,
            "n_rows": self.n_rows,
            "thinned": list(self.thinned),
        }


def scale_of(total: float) -> Scale:
    """The scale of numbers whose sizes add up to so much."""
    return Scale(exponent_of(total), total)


def plan_from_json(data: dict[str, Any]) -> Plan:
    """The reverse of :meth:`Plan.to_json`."""
    dtype = np.dtype(data["label_dtype"])
    labels = np.empty(len(data["labels"]), dtype=dtype)
    labels[:] = [label_from_json(label) for label in data["labels"]]
    return Plan(
        tuple(
            Feature(f["name"], f["kind"], tuple(label_from_json(c) for c in f["categories"]), f["has_missing"])
            for f in data["features"]
        ),
        tuple(
            Coding(
                c["feature"],
                c["n_values"],
                c["has_missing"],
                None if c["cut_values"] is None else np.array(c["cut_values"], dtype=np.float64),
                None if c["present"] is None else np.array(c["present"], dtype=np.int64),
            )
            for c in data["codings"]
        ),
        labels,
        data["of_labels"],
        data["weighted"],
        Scale(*data["relative"]),
        data["total_weight"],
        data["n_rows"],
        tuple(data["thinned"]),
    )


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
    least = [np.array([np.inf if v is None else v for v in values]) for values in data["least"]]
    stored = [Stored(s["file"], s["rows"], s["crc"]) for s in data["stored"]]
    return encoded_data(directory, plan_from_json(data["plan"]), least, data["inexact"], stored)
