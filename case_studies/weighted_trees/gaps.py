"""Where our accuracies of Tables 4 to 7 are above or below the published ones: from the kept fits, nothing is run."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from weighted_trees.published import tables

from policytree.exceptions import InputError

PAIRS = {"ours th": "GOSDT th", "ours th+lb": "GOSDT th+lb"}
KEYS = ["data", "reference"]
KEPT = Path(__file__).with_name("results") / "guesses_folds.csv"


def main(study) -> None:
    """Means over the settings by whether the published search ended, and what lower bounds cost on either side."""
    study.heading("The gaps of Tables 4 to 7: our mean accuracy less the published one")
    gaps = paired(kept())
    study.table(gaps, "gaps", digits=4, index=False, show=False)
    study.table(summary(gaps), "gaps_by_end", digits=4, index=False)
    study.show(cost_of_bounds(gaps))


def kept() -> pd.DataFrame:
    """The fits that the part ``guesses`` kept."""
    if not KEPT.is_file():
        raise InputError(f"{KEPT} is not there; run the part guesses first, which keeps it.")
    return pd.read_csv(KEPT)


def paired(fits: pd.DataFrame) -> pd.DataFrame:
    """One row per data set, reference and kind of guesses: both accuracies, and whether the published search ended."""
    printed = tables()
    printed["reference"] = [f"({t}, {d})" for t, d in zip(printed["trees"], printed["depth"], strict=True)]
    printed = printed.rename(columns={"train": "their train", "test": "their test", "seconds": "their s"})
    parts = []
    for ours, theirs in PAIRS.items():
        means = fits[fits["method"] == ours].groupby(KEYS, sort=False)[["columns", "leaves", "train", "test"]].mean()
        line = printed.loc[printed["method"] == theirs, [*KEYS, "their s", "their train", "their test"]]
        parts.append(means.reset_index().merge(line, on=KEYS).assign(method=ours))
    both = pd.concat(parts, ignore_index=True).dropna(subset=["their train"])
    both["ended"] = ~both["their s"].isin(["limit", "mem", "NA"])
    both["train gap"], both["test gap"] = both["train"] - both["their train"], both["test"] - both["their test"]
    return both


def summary(gaps: pd.DataFrame) -> pd.DataFrame:
    """Means by kind of guesses and by whether the published search ended in its half hour, then of all."""
    rows = []
    for method in (*PAIRS, "both"):
        part = gaps if method == "both" else gaps[gaps["method"] == method]
        for name, chosen in (("ended", part[part["ended"]]), ("met its limit", part[~part["ended"]]), ("all", part)):
            rows.append({"guesses": method, "their search": name, "settings": len(chosen),
                         "training": chosen["train gap"].mean(), "least": chosen["train gap"].min(),
                         "most": chosen["train gap"].max(), "test": chosen["test gap"].mean()})  # fmt: skip
    return pd.DataFrame(rows)


def cost_of_bounds(gaps: pd.DataFrame) -> str:
    """Training accuracy that guessed lower bounds give away, ours and theirs, where both published searches ended."""
    ended = gaps[gaps["ended"]].pivot_table(index=KEYS, columns="method", values=["train", "their train"]).dropna()
    theirs, ours = ((ended[who]["ours th"] - ended[who]["ours th+lb"]) for who in ("their train", "train"))
    return (
        f"Guessed lower bounds cost {theirs.mean():.4f} of the training accuracy in the published tables and "
        f"{ours.mean():.4f} here (means of\nthe {len(ended)} settings in which both published searches ended; at most "
        f"{theirs.max():.3f} and {ours.max():.3f})."
    )
