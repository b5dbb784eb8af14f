"""LaLonde's job training: trained men with the experiment's controls, or with men from a survey."""

from __future__ import annotations

import os

import pandas as pd

from policytree.datasets.files import data_file, own_file, refuse_directory
from policytree.datasets.study import Dataset

_SOURCE = "https://users.nber.org/~rdehejia/nswdata.html or github.com/jjchern/lalonde"
_CONTROLS = {
    "lalonde": ("the 425 men randomised to no training", None),
    "lalonde-psid": (
        "2,490 men of the Panel Study of Income Dynamics (PSID-1), not randomised",
        "psid_controls.csv.gz",
    ),
    "lalonde-cps": ("15,992 men of the Current Population Survey (CPS-1), not randomised", "cps_controls.csv.gz"),
}


def load(name: str, data_dir: str | os.PathLike | None) -> Dataset:
    """LaLonde's 297 trained men with the experiment's controls, or with men of a survey from a data directory."""
    told, file = _CONTROLS[name]
    raw = pd.read_csv(own_file("nsw_lalonde.csv.gz"))
    if file is None:
        refuse_directory(name, data_dir)
    else:
        survey = pd.read_csv(data_file(file, _SOURCE, data_dir))
        raw = pd.concat([raw[raw["treat"] == 1], survey[raw.columns]], ignore_index=True)
    return Dataset(
        randomized=file is None,
        name=name,
        frame=raw.assign(treat=raw["treat"].map({0: "control", 1: "training"})),
        treatment="treat",
        outcomes={"re78": "earnings in 1978, dollars"},
        direction="maximize",
        covariates=("age", "education", "married", "nodegree", "re75"),
        confounders=("black", "hispanic"),
        description="National Supported Work Demonstration, randomised job training, 1975-77: LaLonde's 297 trained "
        f"men and, as controls, {told}. Earnings of 1974 are known for part of them only (see nsw). The file has "
        "neither site nor randomisation ratio: estimate the propensity. Race is for adjustment only.",
        source="LaLonde (1986), AER 76(4), 604-620; R. Dehejia's page, https://users.nber.org/~rdehejia/nswdata.html",
        licence="CC0 1.0 (jjchern/lalonde), which allows this copy",
    )
