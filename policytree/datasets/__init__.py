"""Built-in studies: trials with their arms, outcomes, baseline covariates, clusters, sources and licences named.

One study (or one family of studies) a file, with a function ``load(name, data_dir)``. Its names stand in ``STUDIES``;
the files, and pandas with them, are imported when a study is loaded.
"""

from __future__ import annotations

import os
from importlib import import_module

from policytree.datasets.study import Dataset
from policytree.exceptions import InputError

# File of this folder -> the names of its studies.
STUDIES = {
    "rand_hie": ("rand-hie",),
    "nsw": ("nsw",),
    "nhefs": ("nhefs",),
    "actg175": ("actg175",),
    "lalonde": ("lalonde", "lalonde-psid", "lalonde-cps"),
}
DATASET_NAMES = tuple(name for names in STUDIES.values() for name in names)


def load_dataset(name: str, *, data_dir: str | os.PathLike | None = None) -> Dataset:
    """Load a built-in study by name.

    Parameters
    ----------
    name : str
        One of ``policytree.datasets.DATASET_NAMES``: "rand-hie", "nsw", ...
    data_dir : path or None
        Directory that holds the files of a study that no package ships, or has them in ``trials/`` (an error names the
        file and where to get it). None means the environment variable ``POLICYTREE_DATA``.

    Returns
    -------
    Dataset

    Raises
    ------
    InputError
        If the name is unknown, the package or file with the data is missing, or ``data_dir`` is given for a study
        that comes with a package.

    Examples
    --------
    >>> from policytree import load_dataset
    >>> study = load_dataset("rand-hie")
    >>> study.treatment, len(study.frame)
    ('plan', 16154)
    """
    for file, names in STUDIES.items():
        if name in names:
            return import_module(f"policytree.datasets.{file}").load(name, data_dir)
    raise InputError(f"There is no data set {name!r}; choose one of {', '.join(DATASET_NAMES)}.")


__all__ = ["DATASET_NAMES", "STUDIES", "Dataset", "load_dataset"]
