"""Files of the data directory that are no data sets of the package: read, or refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from policytree import InputError


def read_table(name: str, source: str, directory: Path | None) -> pd.DataFrame:
    """A file ``name.csv.gz`` of the data directory or its folder ``classification``."""
    file = f"{name}.csv.gz"
    where = Path(directory or ".")
    for path in (where / file, where / "classification" / file):
        if path.is_file():
            return pd.read_csv(path)
    raise InputError(f"{file} is not in {directory} nor its folder classification; get it from {source}.")
