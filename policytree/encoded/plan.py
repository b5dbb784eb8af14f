"""The plan, decided before rows are written, and the manifest, known afterwards, as JSON."""

from __future__ import annotations

import functools
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from policytree.data.features import CATEGORICAL, NUMERIC, Feature
from policytree.encoded.coding import Coding
from policytree.encoded.reading import MOST_CLASSES
from policytree.encoded.store import MANIFEST, EncodedData, Scale, Stored, read_json
from policytree.exceptions import InputError, quoted
from policytree.problem.split_columns import MAX_BINS, code_type
from policytree.serialization.labels import label_to_json
from policytree.serialization.schema import (
    any_label,
    anything,
    flag,
    many,
    matching,
    one_of,
    optional,
    real,
    record,
    refuse_repeated,
    text,
    whole,
)  # fmt: skip
from policytree.serialization.trees import feature_from_json
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
    direction: str | None

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


def _coding(value: Any, name: str) -> Coding:
    found = _CODING(value, name)
    arrays = {key: None if found[key] is None else np.array(found[key], dtype=dtype) for key, dtype in _ARRAYS.items()}
    cuts, present, n = arrays["cut_values"], arrays["present"], found["n_values"]
    given = present if cuts is None else cuts
    fits = given is not None and (cuts is None or present is None) and bool((given[1:] > given[:-1]).all())
    if fits and cuts is not None:
        fits = len(cuts) == n - 1 and n + found["has_missing"] > 1
    elif fits and present is not None:
        fits = len(present) + found["has_missing"] > 1 and int(present.max(initial=-1)) < n
    if not fits:
        raise InputError(f"{name[0].upper()}{name[1:]} has cuts or categories that are not those of its codes.")
    return Coding(**found | arrays)


_CODING = record(
    {
        "feature": whole(), "n_values": whole(0, MAX_BINS), "has_missing": flag,
        "cut_values": optional(many(real())), "present": optional(many(whole())),
    }
)  # fmt: skip
_PLAN = record(
    {
        "features": many(feature_from_json, 1), "codings": many(_coding), "labels": many(any_label, 1),
        "label_dtype": text, "of_labels": flag, "weighted": flag, "relative": many(real(), 2, 2),
        "total_weight": real(0.0), "n_rows": whole(1), "thinned": many(whole()),
        "direction": optional(one_of("maximize", "minimize")),
    }
)  # fmt: skip


def plan_from_json(data: Any, name: str = "field 'plan'") -> Plan:
    """The reverse of :meth:`Plan.to_json`; every field is checked, and that they agree with each other.

    Raises
    ------
    InputError
        If they do not.
    """
    found = _PLAN(data, name)
    names, relative = found["labels"], scale_of(found["relative"][1])
    labels = np.array(names) if found.pop("label_dtype") != "|O" else np.array([*names, None], dtype=object)[:-1]
    out = {key: tuple(found[key]) for key in ("features", "codings", "thinned")}
    plan = Plan(**found | out | {"labels": labels, "relative": relative})
    places, p = [c.feature for c in plan.codings], len(plan.features)
    kinds = [plan.features[j].kind if j < p else None for j in places]
    of_kind = [
        kind == NUMERIC if c.present is None else kind == CATEGORICAL and c.n_values == len(plan.features[j].categories)
        for c, j, kind in zip(plan.codings, places, kinds, strict=True)
    ]
    agree = {
        "features": len({f.name for f in plan.features}) == p,
        "codings": places == sorted(set(places)) and all(of_kind),
        "labels": labels.shape == (len(names),) and len(set(names)) == len(names)
        and (len(names) <= MOST_CLASSES if plan.of_labels else all(isinstance(n, str) for n in names)),
        "label_dtype": labels.dtype.str == data["label_dtype"],
        "relative": found["relative"][0] == relative.exponent
        and (not plan.of_labels or relative.total == plan.total_weight),
        "total_weight": plan.weighted or plan.total_weight == plan.n_rows,
        "thinned": set(plan.thinned) <= set(places),
    }  # fmt: skip
    wrong = [key for key, fits in agree.items() if not fits]
    if wrong:
        raise InputError(f"Field {wrong[0]!r} of {name} does not agree with the others.")
    return plan


CRC = whole(0, 2**32 - 1)
_STORED = {"file": matching(r"rows-\d{6,12}\.bin", "the name of a file of rows"), "rows": whole(1), "crc": CRC}
_LEAST = {"least": many(many(optional(real()))), "inexact": whole()}
STATE_FIELDS = record({"asked": anything, "plan": plan_from_json})
NOTE_FIELDS = record({**_STORED, "rows": whole(), **_LEAST})
MANIFEST_FIELDS = record({"asked": anything, "plan": plan_from_json, **_LEAST, "stored": many(record(_STORED), 1)})


def least_to_json(least: list[np.ndarray]) -> list[list[float | None]]:
    """The smallest value of every code, by coding; None for infinity, which stands where there is none."""
    return [[None if np.isinf(v) else v for v in values] for values in least]


def least_from_json(least: list[list[float | None]], plan: Plan) -> list[np.ndarray]:
    """The reverse of :func:`least_to_json`; refuses values that do not lie between the cuts of the plan's codings."""
    out = [np.array([np.inf if v is None else v for v in values]) for values in least]
    if len(out) != len(plan.codings):
        raise InputError("Field 'least' does not have one entry for each coding.")
    for coding, values in zip(plan.codings, out, strict=True):
        cuts = coding.cut_values
        if len(values) != (0 if cuts is None else coding.n_values) or (
            cuts is not None and not ((values[:-1] <= cuts) | np.isinf(values[:-1])).all() & (cuts < values[1:]).all()
        ):
            name = plan.features[coding.feature].name
            raise InputError(f"Field 'least' does not agree with the cuts of column {quoted(name)}.")
    return out


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
        plan.direction,
        tuple(stored),
    )


def open_encoded(directory: str | os.PathLike) -> EncodedData:
    """Open rows that :func:`policytree.encoded.encode` wrote, in this process or an earlier one.

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
    >>> from policytree import Study
    >>> from policytree.encoded import encode, open_encoded
    >>> from policytree.study import Rewards
    >>> rows = pd.DataFrame({"age": [30, 40, 50, 60], "none": [1.0, 1, 0, 0], "drug": [0.0, 0, 2, 2]})
    >>> study = Study(rows, outcome=Rewards(["none", "drug"]), covariates=["age"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = encode(study, directory=folder)
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
    return read_json(path, "encode the source again, with overwrite=True", functools.partial(_from_manifest, directory))


def _from_manifest(directory: Path, value: Any, name: str) -> EncodedData:
    found = MANIFEST_FIELDS(value, name)
    plan, stored = found["plan"], tuple(Stored(**each) for each in found["stored"])
    if found["inexact"] > plan.n_rows or sum(s.rows for s in stored) != plan.n_rows:
        raise InputError(f"The files of rows do not add up to the {plan.n_rows:,} rows of the plan.")
    refuse_repeated([s.file for s in stored], "The manifest has two files")
    return encoded_data(directory, plan, least_from_json(found["least"], plan), found["inexact"], stored)
