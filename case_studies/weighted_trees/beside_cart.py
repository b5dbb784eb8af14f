"""Are exact trees better than CART's at the same number of leaves (Fig. 2)? From the kept fits: nothing is run."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

KEPT = Path(__file__).parent / "results" / "fig2_fig3_folds.csv"


def main(study) -> None:
    """For every data set and size of CART's tree, how far the exact tree of no more leaves is ahead."""
    fits = pd.read_csv(KEPT)
    study.heading("Fig. 2: exact trees less CART's of as many leaves or more, weighted accuracy")
    study.show(
        "Of the direct solver's trees of a fold, the one that fits its training rows best with no more leaves than\n"
        "CART's. Means over the folds, standard errors in brackets; held-out rows chose nothing.\n"
    )
    study.table(compared(fits), "beside_cart", index=False)


def compared(fits: pd.DataFrame) -> pd.DataFrame:
    """One row per data set and number of CART's leaves; folds without an exact tree so small are left out."""
    cart, exact = (fits[fits["method"] == name] for name in ("CART", "direct"))
    both = cart.merge(exact, on=["data", "fold"], suffixes=("", " exact"))
    both = both[both["leaves exact"] <= both["leaves"]]
    best = both.loc[both.groupby(["data", "fold", "setting"], sort=False)["train exact"].idxmax()]
    rows = []
    for (data, setting), part in best.groupby(["data", "setting"], sort=False):
        row = {"data": data, "CART": setting, "folds": len(part), "exact leaves": f"{part['leaves exact'].mean():.1f}"}
        row |= {"CART, train": f"{part['train'].mean():.3f}", "exact, train": f"{part['train exact'].mean():.3f}"}
        for what in ("train", "test"):
            ahead = part[f"{what} exact"] - part[what]
            row[f"ahead, {what}"] = f"{ahead.mean():+.3f} ({ahead.sem():.3f})"
        rows.append(row)
    return pd.DataFrame(rows)
