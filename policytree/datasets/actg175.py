"""AIDS Clinical Trials Group study 175: four antiretroviral treatments."""

from __future__ import annotations

import os

import pandas as pd

from policytree.datasets.files import data_file
from policytree.datasets.study import Dataset

_ARMS = (
    "zidovudine",
    "zidovudine + didanosine",
    "zidovudine + zalcitabine",
    "didanosine",
)


def load(name: str, data_dir: str | os.PathLike | None) -> Dataset:
    """ACTG 175, four antiretroviral treatments, from a data directory."""
    raw = pd.read_csv(data_file("actg175.csv.gz", "the R package speff2trial on CRAN, data set ACTG175", data_dir))
    frame = raw.assign(arm=raw["arms"].map(dict(enumerate(_ARMS)))).drop(columns=["arms", "treat"])
    return Dataset(
        name=name,
        frame=frame,
        treatment="arm",
        outcomes={"cd420": "CD4 cells per cubic mm at 20 weeks", "cd820": "CD8 cells per cubic mm at 20 weeks"},
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
        "1:1:1:1 to four treatments. zprior is constant and str2 repeats strat; offtrt, r, cd496, cens and days come "
        "after randomisation and are no covariates; race and homo are for adjustment only.",
        source="Hammer et al. (1996), NEJM 335(15), 1081-1090; speff2trial 1.0.5 on CRAN",
        licence="GPL-2 (speff2trial)",
    )
