"""NHEFS: quitting smoking and weight, not randomised."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd

from policytree.datasets.files import packaged_file, refuse_directory
from policytree.datasets.study import Dataset

_BASELINE = {  # all as of 1971
    "age": "age",
    "sex": "female",
    "school": "schooling",
    "smokeintensity": "cigarettes",
    "smokeyrs": "years_smoked",
    "wt71": "weight",
    "ht": "height",
    "active": "inactivity",
    "exercise": "no_exercise",
}


def load(name: str, data_dir: str | os.PathLike | None) -> Dataset:
    """The smokers whose weight is known in 1971 and 1982, from the package causaldata."""
    refuse_directory(name, data_dir)
    raw = pd.read_stata(packaged_file("causaldata", "nhefs_complete/nhefs_complete.dta"))
    names = {**_BASELINE, "race": "race", "qsmk": "decision", "wt82_71": "weight_change"}
    frame = pd.DataFrame({new: pd.to_numeric(raw[old]).astype(float) for old, new in names.items()})
    frame["decision"] = np.where(frame["decision"] == 1, "quit", "smoke on")
    return Dataset(
        name=name,
        frame=frame,
        treatment="decision",
        outcomes={"weight_change": "change of weight from 1971 to 1982, kilograms"},
        direction="minimize",
        covariates=tuple(_BASELINE.values()),
        confounders=("race",),
        description="NHANES I Epidemiologic Follow-up Study: 1,566 smokers of 1971 whose weight is known in 1971 and "
        "1982; 403 of them had quit. Nobody was randomised: estimate the propensity. inactivity and no_exercise are "
        "0 (active) to 2. Race is for adjustment only. Columns measured in 1982 are left out: they come after the "
        "decision.",
        source="CDC, NHANES I Epidemiologic Follow-up Study; Hernan & Robins (2020), Causal Inference: What If; "
        "causaldata",
        licence="MIT (causaldata)",
    )
