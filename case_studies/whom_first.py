"""Shared code of studies that ask whom to treat first."""

from __future__ import annotations

import pandas as pd

from policytree.evaluation import rank_average_treatment_effect
from policytree.evaluation.targeting.rate import Ranking

TARGETS = ("AUTOC", "QINI")


def compared(priorities, held, treatment: str, baseline: str) -> tuple[Ranking, pd.DataFrame]:
    """Judge priorities; returns the ranking by AUTOC, and a table of both areas with their intervals."""
    arms = {"treatment": treatment, "baseline": baseline}
    areas = {t: rank_average_treatment_effect(priorities, held, target=t, **arms) for t in TARGETS}
    table = pd.concat({t: r.to_frame()[["value", "lower", "upper"]] for t, r in areas.items()}, axis=1)
    table.columns = [f"{target} {name}".removesuffix(" value") for target, name in table.columns]
    return areas["AUTOC"], table
