"""Predictions of a fitted tree for rows of any number, from a source to a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from sklearn.utils.validation import check_is_fitted

from policytree.common.validation import check_count
from policytree.data.sources import arrow, open_source
from policytree.exceptions import InputError
from policytree.serialization import whole_file


def predict_to_file(
    tree: Any,
    source: Any,
    path: str | os.PathLike,
    *,
    keep: Sequence[str],
    column: str,
    batch_rows: int,
) -> Path:
    """As :meth:`policytree.PolicyTree.predict_to_file` says."""
    check_is_fitted(tree)
    check_count(batch_rows, "batch_rows", 1)
    names = [str(name) for name in getattr(tree, "feature_names_in_", ())]
    if not names:
        raise InputError("The tree was fitted on a table without names of columns; fit it on a DataFrame.")
    target, keep = Path(path), list(keep)
    if target.suffix not in (".parquet", ".csv"):
        raise InputError(f"path must end in .parquet or .csv; got '{path}'.")
    if column in keep:
        raise InputError(f"column={column!r} is also in keep; give the predictions another name.")
    opened = open_source(source)
    opened.kinds(names)
    opened.check_columns(keep, "keep")
    columns = list(dict.fromkeys([*names, *keep]))
    with whole_file(target) as file:
        _write(tree, opened, columns, keep, column, batch_rows, file, target.suffix)
    return target


def _write(tree: Any, source: Any, columns, keep, column: str, batch_rows: int, file: BinaryIO, suffix: str) -> None:
    pa, writer, schema = arrow(), None, None
    try:
        for table in source.tables(columns, batch_rows):
            predicted = np.asarray(tree.predict(table.select([str(n) for n in tree.feature_names_in_]).to_pandas()))
            out = table.select(keep).append_column(column, pa.array(predicted.tolist()))
            if writer is None:
                schema = out.schema
                writer = _writer(file, schema, suffix)
            writer.write_table(out.cast(schema))
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        raise InputError("The source has no rows; there is nothing to predict.")


def _writer(file: BinaryIO, schema: Any, suffix: str) -> Any:
    if suffix == ".csv":
        import pyarrow.csv as csv

        return csv.CSVWriter(file, schema)
    import pyarrow.parquet as parquet

    return parquet.ParquetWriter(file, schema)
