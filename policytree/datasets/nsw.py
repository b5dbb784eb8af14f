"""National Supported Work job training, the Dehejia-Wahba sample."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd

from policytree.datasets.files import packaged_file, refuse_directory
from policytree.datasets.study import Dataset


def load(name: str, data_dir: str | os.PathLike | None) -> Dataset:
    """The Dehejia-Wahba sample, from the package causaldata."""
    refuse_directory(name, data_dir)
    raw = pd.read_stata(packaged_file("causaldata", "nsw_mixtape/nsw_mixtape.dta"))
    frame = raw.drop(columns="data_id").astype(float)
    return Dataset(
        randomized=True,
        name=name,
        frame=frame.assign(treat=np.where(frame["treat"] == 1, "training", "control")),
        treatment="treat",
        outcomes={"re78": "earnings in 1978, dollars"},
        direction="maximize",
        covariates=("age", "educ", "marr", "nodegree", "re74", "re75"),
        confounders=("black", "hisp"),
        description="National Supported Work Demonstration, randomised job training, 1975-77: the 445 men of LaLonde's "
        "experimental sample for whom Dehejia and Wahba found 1974 earnings (185 trained). The file has "
        "neither site nor randomisation ratio: estimate the propensity.",
        source="LaLonde (1986), AER 76(4); Dehejia & Wahba (1999), JASA 94(448); causaldata (Cunningham's Mixtape)",
        licence="MIT (causaldata)",
    )
