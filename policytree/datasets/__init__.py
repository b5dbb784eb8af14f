"""Built-in studies: trials with their arms, outcomes, baseline covariates, clusters, sources and licences named.

One study (or one family of studies) a file, with a function ``load(name, data_dir)``. Its names stand in ``STUDIES``;
the files, and pandas with them, are imported when a study is loaded.
"""

from __future__ import annotations

import inspect
import os
from importlib import import_module
from typing import Any

from policytree.datasets.study import Dataset
from policytree.exceptions import InputError

# File of this folder -> the names of its studies.
STUDIES = {
    "rand_hie": ("rand-hie",),
    "nsw": ("nsw",),
    "nhefs": ("nhefs",),
    "actg175": ("actg175",),
    "colon": ("colon",),
    "breast_cancer": ("rotterdam", "gbsg"),
    "wooldridge": ("k401k", "card"),
    "lalonde": ("lalonde", "lalonde-psid", "lalonde-cps"),
}
DATASET_NAMES = tuple(name for names in STUDIES.values() for name in names)


def load_dataset(name: str, *, data_dir: str | os.PathLike | None = None, **options: Any) -> Dataset:
    """Load a built-in study by name.

    Parameters
    ----------
    name : str
        "rand-hie", "nsw", "nhefs", "actg175", "colon", "rotterdam", "gbsg", "k401k", "card", "lalonde",
        "lalonde-psid" or "lalonde-cps".
    data_dir : path or None
        Directory that holds the files of a study that no package ships, or has them in ``trials/`` (an error names the
        file and where to get it). None means the environment variable ``POLICYTREE_DATA``. "actg175" needs neither if
        lifelines is installed.
    **options
        Options of a study. "rand-hie" has:

        - ``arms``: "plan" (default), the five published plan groups ("25%", "50%", "95%", "deductible", "free"), or
          "coinsurance", the raw rate in percent (0, 25, 50, 95, 100), which identifies less (see ``description``).
        - ``outcome``: "visits" (default), face-to-face visits to a physician a year, or "spending", dollars of medical
          spending a year, without dental care and outpatient psychotherapy.
        - ``sites``: "every_arm" (default), the five sites where every plan was offered, or "all": also Seattle, where
          nobody has 50%, so that what that plan would do there is not in the data.

        "rotterdam" has:

        - ``nodes``: "positive" (default), the women with positive lymph nodes, as in "gbsg", or "any": also the others,
          none of whom had hormone therapy, so that what it would do to them is not in the data.

    Returns
    -------
    Dataset

    Raises
    ------
    InputError
        If the name or an option is unknown, the package or file with the data is missing, or ``data_dir`` is given for
        a study that comes with a package.

    Notes
    -----
    "k401k" and "card" have an instrument, ``Dataset.instrument``: what people were offered, or lived near to.

    Examples
    --------
    >>> from policytree import load_dataset
    >>> study = load_dataset("rand-hie")
    >>> study.treatment, len(study.frame)
    ('plan', 16154)
    """
    for file, names in STUDIES.items():
        if name in names:
            load = import_module(f"policytree.datasets.{file}").load
            known = [p.name for p in inspect.signature(load).parameters.values() if p.kind is p.KEYWORD_ONLY]
            for option in options:
                if option not in known:
                    takes = f"takes {', '.join(known)}" if known else "takes none"
                    raise InputError(f"{name!r} has no option {option!r}; it {takes}.")
            return load(name, data_dir, **options)
    raise InputError(f"There is no data set {name!r}; choose one of {', '.join(DATASET_NAMES)}.")


__all__ = ["DATASET_NAMES"]
