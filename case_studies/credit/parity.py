"""Credit: what it costs to decline equal shares of people with a short and a long history, beside not asking about it.

Public interface used: PolicyTree. The tree does not see the length of history; its thirds are compared all the same.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from credit.study import KEPT_OUT, WITHOUT, applicants, groups_of, question
from equal_shares import Shares, show


def main(study) -> None:
    """Run the part."""
    frame = applicants(study)
    frame = (frame.iloc[:1_500] if study.quick else frame).reset_index(drop=True)
    thirds = groups_of(frame)
    history = pd.DataFrame({"history": np.select(list(thirds.values()), list(thirds), "no usable history")})
    pairs = {"history": ("shortest third", "longest third")}
    show(study, Shares(question(frame), history, WITHOUT[KEPT_OUT], "declined", pairs), WITHOUT)
