"""Figures and numbers of the paper, read from ``benchmarks/results``: ``python paper/figures.py``.

Prints every number that the text quotes and writes ``paper/figures/*.png``; ``tests/repository/test_paper.py``
holds the text to these numbers.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

PAPER = Path(__file__).resolve().parent
RESULTS = PAPER.parent / "benchmarks" / "results"
sys.path.append(str(PAPER.parent / "docs" / "extensions"))

from result_tables import markdown_tables  # noqa: E402

PEERS = {"STreeD": "#1f5f7a", "ConTree": "#b5651d", "DL8.5": "#6b8e23", "gosdt": "#8b4a8b"}
CELLS = ["no effect, n=300, 2 arms", "no effect, n=1000, 2 arms", "effects, n=300, 2 arms", "effects, n=1000, 2 arms"]
CELLS += ["no effect, n=300, 4 arms", "no effect, n=1000, 4 arms", "effects, n=300, 4 arms", "effects, n=1000, 4 arms"]
CELLS += ["confounded, n=1000", "60 clusters of 25"]


def exact_trees() -> pd.DataFrame:
    """A case and peer a row: seconds of both, and who proved its tree within the limit."""
    runs = pd.read_csv(RESULTS / "exact_trees.csv").dropna(subset=["seconds"])
    runs["proved"] = runs["proved"].astype(str) == "True"
    ours = runs[runs["solver"] == "policytree"].set_index("case")[["seconds", "proved", "objective"]]
    peers = runs[runs["solver"].isin(PEERS)][["case", "solver", "seconds", "proved", "objective"]]
    both = peers.merge(ours, left_on="case", right_index=True, suffixes=("", "_ours"))
    return both.assign(ratio=both["seconds"] / both["seconds_ours"])


def speed(runs: pd.DataFrame) -> pd.DataFrame:
    """By peer: cases, who proved them, and the geometric mean of the ratios where both did."""
    both = runs[runs["proved"] & runs["proved_ours"]]
    return pd.DataFrame(
        {
            "cases": runs.groupby("solver").size(),
            "both proved": both.groupby("solver").size(),
            "only ours": runs[~runs["proved"] & runs["proved_ours"]].groupby("solver").size(),
            "only theirs": runs[runs["proved"] & ~runs["proved_ours"]].groupby("solver").size(),
            "ratio": both.groupby("solver")["ratio"].apply(lambda ratio: np.exp(np.log(ratio).mean())),
            "lowest": both.groupby("solver")["ratio"].min(),
            "highest": both.groupby("solver")["ratio"].max(),
        }
    ).fillna({"both proved": 0, "only ours": 0, "only theirs": 0})


def greedy_share() -> pd.Series:
    """By policy case: total reward of EconML's greedy tree over that of the best tree, on the rows that chose both."""
    runs = pd.read_csv(RESULTS / "exact_trees.csv").dropna(subset=["objective"])
    wide = runs.pivot(index="case", columns="solver", values="objective").filter(like="policy ", axis=0)
    return wide["EconML greedy"] / wide["policytree"]


def coverage() -> pd.DataFrame:
    """Coverage of 95 % intervals of held-out values, in percent, by cell and procedure."""
    head, rows = markdown_tables((RESULTS / "coverage.md").read_text(encoding="utf-8"))[0]
    cells = pd.DataFrame(rows, columns=head)
    cells = cells[cells["cell"].isin(CELLS) & cells["procedure"].isin(["repeated", "single"])]
    return cells.assign(**{name: cells[name].astype(float) for name in ("runs", "value", "MC error")})


def draw_speed(runs: pd.DataFrame, path: Path) -> None:
    """Ratios of seconds; hollow where only ours proved its tree, so that the ratio is a lower bound."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
    shown = runs[runs["proved_ours"]]
    for place, (peer, colour) in enumerate(PEERS.items()):
        of_peer = shown[shown["solver"] == peer].sort_values("ratio")
        heights = place + np.linspace(-0.25, 0.25, len(of_peer))
        for proved, fill in ((True, colour), (False, "none")):
            at = (of_peer["proved"] == proved).to_numpy()
            ax.scatter(of_peer["ratio"][at], heights[at], s=22, facecolors=fill, edgecolors=colour)
    ax.axvline(1, color="grey", linewidth=0.8)
    ax.set(xscale="log", xlabel="their seconds / ours", yticks=range(len(PEERS)), yticklabels=list(PEERS))
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=200)
    plt.close(figure)


def draw_coverage(cells: pd.DataFrame, path: Path) -> None:
    """Coverage with Monte-Carlo intervals; the line is the nominal level."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    for shift, (procedure, colour) in enumerate({"repeated": "#1f5f7a", "single": "#b5651d"}.items()):
        of = cells[cells["procedure"] == procedure].set_index("cell").loc[CELLS]
        places = np.arange(len(CELLS))[::-1] + 0.12 - 0.24 * shift
        name = {"repeated": "repeated cross-fitting (default)", "single": "one cross-fitting"}[procedure]
        ax.errorbar(of["value"], places, xerr=2 * of["MC error"], fmt="o", markersize=4, color=colour, label=name)
    ax.axvline(95, color="grey", linewidth=0.8)
    ax.set(xlabel="coverage, percent", yticks=range(len(CELLS)), yticklabels=CELLS[::-1])
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    figure.savefig(path, dpi=200)
    plt.close(figure)


def numbers() -> dict[str, str]:
    """Numbers that the text quotes, as they are written there."""
    table, cells, share = speed(exact_trees()), coverage(), greedy_share()
    found = {f"{peer} ratio": f"{table.loc[peer, 'ratio']:.3g}" for peer in ("STreeD", "ConTree", "DL8.5")}
    found |= {f"{peer} both": f"{table.loc[peer, 'both proved']:.0f}" for peer in PEERS}
    found |= {f"{peer} only ours": f"{table.loc[peer, 'only ours']:.0f}" for peer in PEERS}
    found["only theirs"] = f"{table['only theirs'].sum():.0f}"
    for procedure in ("repeated", "single"):
        values = cells[cells["procedure"] == procedure]["value"]
        runs = cells[cells["procedure"] == procedure]["runs"]
        found[f"{procedure} runs"] = f"{runs.min():,.0f} to {runs.max():,.0f} runs"
        found[f"{procedure} coverage"] = f"{values.min():.1f} to {values.max():.1f} %"
    found["greedy"] = f"{100 * share.min():.0f} to {100 * share.max():.0f} %"
    found["policy cases"] = str(len(share))
    return found


def main() -> None:
    """Write the figures, print the numbers."""
    import matplotlib

    matplotlib.use("Agg")
    folder = PAPER / "figures"
    folder.mkdir(exist_ok=True)
    draw_speed(exact_trees(), folder / "speed.png")
    draw_coverage(coverage(), folder / "coverage.png")
    print(speed(exact_trees()).round(3).to_string())
    for name, value in numbers().items():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
