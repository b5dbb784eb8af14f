"""The men of a data set, column by column: parts of them are kept, and passed on, by these names."""

from __future__ import annotations

import pandas as pd

from policytree import load_dataset


def men_of(name: str, folder=None) -> dict[str, pd.Series | pd.DataFrame]:
    """Y outcome, T arm, X what a rule may look at, W adjustment only."""
    men = load_dataset(name, data_dir=folder).study()
    return {"Y": men.Y, "T": men.T, "X": men.X, "W": men.W}
