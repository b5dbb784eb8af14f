"""NHEFS: whom to help first with weight, if a programme for people who quit has few places.

Public interface used: rank_average_treatment_effect.
"""

from __future__ import annotations

from whom_first import compared

from policytree import Study
from policytree.evaluation.policy_value.sample_split import HeldOutRewards

QUIT, SMOKE = "quit", "smoke on"


def show_priorities(study, data: Study, held: HeldOutRewards) -> None:
    """Orders learnt from one half of the people, or known beforehand, judged by the other half."""
    study.heading("6. Whom first: who gains most weight by quitting?")
    X = data.X.iloc[held.rows]
    priorities = {
        "predicted gain of weight": held.predicted_gain(QUIT, SMOKE),
        "youngest first": -X["age"],
        "lightest first": -X["weight"],
        "most cigarettes first": X["cigarettes"],
        "women first": X["female"],
    }
    autoc, table = compared(priorities, held, QUIT, SMOKE)
    mean = autoc.average_gain
    study.show(
        f"{len(held.rows):,} people judge what the others taught. Quitting adds {mean.value:.2f} kg "
        f"[{mean.lower:.2f}, {mean.upper:.2f}] on average.\n"
    )
    study.table(table, "priorities", digits=2)
    title = "NHEFS: kilograms that quitting adds, whom first (held out)"
    study.figure(autoc.plot(title=title, unit="kg").figure_, "whom_first")
