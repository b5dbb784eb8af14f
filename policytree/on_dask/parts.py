"""Tasks of a worker on a partition of the rows: functions of plain values, so that dask can send and repeat them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from policytree.data.sources import arrow, plain_columns, reading
from policytree.encoded.encoding import code_table
from policytree.encoded.plan import Plan
from policytree.encoded.scan import Tally, add_parts
from policytree.encoded.store import CodedRows, EncodedData, Stored
from policytree.encoded.streams import Streams
from policytree.exceptions import InputError
from policytree.solvers.core.compilation import load_kernels, streamed_kernels
from policytree.solvers.core.limits import Clock
from policytree.study.study import Study


@dataclass(frozen=True)
class EncodedPart(EncodedData):
    """Encoded rows that a worker holds in memory."""

    codes: np.ndarray = field(default_factory=lambda: np.empty((0, 0), np.uint8), repr=False)
    numbers: np.ndarray = field(default_factory=lambda: np.empty((0, 0)), repr=False)

    def rows(self, k: int) -> CodedRows:
        """Codes and numbers, writable as kernels take them: dask's own copies are not."""
        self.refuse_foreign_codes(self.codes, "A partition", "compute it anew from rows that do not change")
        return self.as_rows(*(np.require(each, requirements=["C", "W"]) for each in (self.codes, self.numbers)))


def arrow_part(part: Any, columns: list[str]) -> Any:
    """Some columns of a partition as an Arrow table."""
    pa = arrow()
    try:
        arrays = [pa.array(part[name], from_pandas=True) for name in columns]
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(f"A partition cannot be read: {str(error).splitlines()[0]}.") from error
    return plain_columns(pa.table(arrays, names=columns))


def read_row_group(path: str, k: int, columns: list[str]) -> Any:
    """Some columns of a row group of a Parquet file as an Arrow table."""
    pa = arrow()
    with reading(f"Row group {k} of '{path}'"), pa.parquet.ParquetFile(path, page_checksum_verification=True) as file:
        return plain_columns(file.read_row_group(k, columns=columns).select(columns))


def types_of(table: Any) -> dict[str, Any]:
    """Arrow's type of every column of a part."""
    return dict(zip(table.column_names, table.schema.types, strict=True))


def merge_tallies(parts: list[Tally]) -> Tally:
    """Merge the tallies of several parts."""
    out = Tally()
    for part in parts:
        out.merge(part)
    return out


def merge_quantiles(parts: list[dict]) -> dict[str, Any]:
    """Merge the readings of several parts."""
    out: dict[str, Any] = {}
    for part in parts:
        add_parts(out, part)
    return out


def code_part(table: Any, plan: Plan, study: Study) -> tuple:
    """A part as codes, numbers, smallest values of codes, and the number of rounded losses."""
    return code_table(plan, study, table, 0, lambda f, items: [f(item) for item in items])


def notes_of_part(coded: tuple) -> tuple[list[np.ndarray], int]:
    """Smallest values of codes, and the number of rounded losses."""
    return coded[2], coded[3]


def merge_notes(parts: list[tuple]) -> tuple[list[np.ndarray], int]:
    """The same of several parts."""
    least = [np.minimum.reduce(each) for each in zip(*(part[0] for part in parts), strict=True)]
    return least, sum(part[1] for part in parts)


def sums_of_part(coded: tuple, question: dict[str, Any]) -> list:
    """Sums of a part, as a list of what can be added up.

    ``question``: the ``data`` without rows, ``used``, ``counted`` and ``sign`` of :class:`Streams`; what to add up
    ("pairs", "triples", "leaves", "least"), and for which ``arguments``.
    """
    data: EncodedData = question["data"]
    names = [f for f in EncodedData.__dataclass_fields__ if f not in ("stored", "sizes")]
    part = EncodedPart(
        **{name: getattr(data, name) for name in names},
        stored=(Stored("", coded[0].shape[1], 0),),
        codes=coded[0],
        numbers=coded[1],
    )
    load_kernels(streamed_kernels(data.dtype.name))
    streams = Streams(part, question["used"], question["counted"], question["sign"], 1, Clock(None))
    found = getattr(streams, question["what"])(*question["arguments"])
    if question["what"] == "pairs":
        return [table for side in found for table in side.values()]
    if question["what"] == "triples":
        return list(found.values())
    return [found]


def add_sums(parts: list[list]) -> list:
    """Sums of several parts."""
    return [sum(each[1:], start=each[0]) for each in zip(*parts, strict=True)]
