"""Recidivism: what it costs to supervise equal shares of groups, beside what it costs not to ask about columns.

Public interface used: PolicyTree. The tree sees neither race, nor sex, nor age; groups are compared all the same.
"""

from __future__ import annotations

import pandas as pd
from equal_shares import Shares, show
from recidivism.study import KEPT_OUT, WITHOUT, defendants, question

LARGEST_RACES = ("African-American", "Caucasian")


def groups_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Race in three groups, and sex."""
    race = frame["race"].where(frame["race"].isin(LARGEST_RACES), "other")
    return pd.DataFrame({"race": race, "sex": frame["sex"]}).reset_index(drop=True)


def main(study) -> None:
    """Run the part."""
    frame = defendants(study)
    frame = (frame.iloc[:1_500] if study.quick else frame).reset_index(drop=True)
    pairs = {"race": LARGEST_RACES, "sex": ("Male", "Female")}
    shares = Shares(question(frame, 2), groups_of(frame), WITHOUT[KEPT_OUT], "supervised", pairs)
    show(study, shares, WITHOUT)
