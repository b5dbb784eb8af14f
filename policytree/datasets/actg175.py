"""AIDS Clinical Trials Group study 175: four antiretroviral treatments."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

from policytree.datasets.files import data_file, has_package, named_directory, packaged_file
from policytree.datasets.study import Dataset

_PACKAGE = "lifelines"
_ARMS = (
    "zidovudine",
    "zidovudine + didanosine",
    "zidovudine + zalcitabine",
    "didanosine",
)


def load(name: str, data_dir: str | os.PathLike | None) -> Dataset:
    """ACTG 175, four antiretroviral treatments, from a data directory if one is named, else from lifelines."""
    raw = pd.read_csv(_file(data_dir))
    frame = raw.assign(arm=raw["arms"].map(dict(enumerate(_ARMS)))).drop(columns=["arms", "treat"])
    frame = frame.drop(columns=[column for column in frame.columns if column.startswith("Unnamed")])  # row numbers
    return Dataset(
        randomized=True,
        name=name,
        frame=frame,
        treatment="arm",
        outcomes={
            "cd420": "CD4 cells per cubic mm at 20 weeks",
            "cd820": "CD8 cells per cubic mm at 20 weeks",
            "days": "days to the trial's endpoint",
        },
        direction="maximize",
        covariates=(
            "age",
            "wtkg",
            "hemo",
            "drugs",
            "karnof",
            "oprior",
            "z30",
            "preanti",
            "gender",
            "strat",
            "symptom",
            "cd40",
            "cd80",
        ),
        confounders=("race", "homo"),
        propensity=dict.fromkeys(sorted(_ARMS), 0.25),
        description="AIDS Clinical Trials Group study 175: 2,139 adults with HIV and 200 to 500 CD4 cells, randomised "
        "1:1:1:1 to four treatments. days is the time to the trial's endpoint (CD4 count halved, AIDS or death), which "
        "cens says was seen (1) or not (0). zprior is constant and str2 repeats strat; offtrt, r and cd496 come after "
        "randomisation and are no covariates; race and homo are for adjustment only.",
        source="Hammer et al. (1996), NEJM 335(15), 1081-1090; speff2trial 1.0.5 on CRAN; lifelines on PyPI",
        licence="GPL-2 (speff2trial); MIT (lifelines)",
        event={"days": "cens"},
        horizon={"days": 1000.0},
    )


def _file(data_dir: str | os.PathLike | None) -> Path:
    """The file in the directory that is named; without one, the copy that lifelines ships."""
    if named_directory(data_dir) is None and has_package(_PACKAGE):
        return packaged_file(_PACKAGE, "datasets/ACTG175.csv")
    return data_file("actg175.csv.gz", "the R package speff2trial on CRAN, data set ACTG175", data_dir, _PACKAGE)
