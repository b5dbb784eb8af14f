"""Files of the data directory that are no data sets of the package: found and read, or refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from policytree.exceptions import InputError


def find_file(file: str, source: str, directory: Path | None, folder: str = "classification") -> Path:
    """Where a file is: in the data directory itself or in its folder."""
    where = Path(directory or ".")
    for path in (where / file, where / folder / file):
        if path.is_file():
            return path
    raise InputError(f"{file} is not in {where} nor its folder {folder}; get it from {source}.")


def read_table(name: str, source: str, directory: Path | None, folder: str = "classification") -> pd.DataFrame:
    """The table ``name.csv.gz`` of the data directory or its folder."""
    return pd.read_csv(find_file(f"{name}.csv.gz", source, directory, folder))
