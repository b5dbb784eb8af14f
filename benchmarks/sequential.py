"""Does sequential validation win power in small trials? Beside repeated cross-fitting, on the trials of `power.py`.

    python benchmarks/sequential.py                                  # what is lacking of 100 runs a cell
    python benchmarks/sequential.py --cell "gain .24, n=300" --runs 1000
    python benchmarks/sequential.py --table                          # the table from the runs that are kept

Every run draws a trial and judges it twice: by five repetitions of five folds (the library's default), and by ten
blocks, of which the later five are judged by what all rows before them taught (`validation="sequential"`; Luedtke and
van der Laan 2016). A third way takes the tree's differences from the blocks, and those between treatments from the
repetitions, which need no held-out rows. Learner and claims are those of `power.py`: "any" is the share of verdicts
that recommend something else than the control, "tree" those that recommend the tree; "shown best": the tree is shown
better than every treatment; "more" is "any" less that of the default, on the same trials. Where nothing works, "any" is
the error of one side (2.5 percent allowed). In brackets: Monte-Carlo errors.

Every run is kept in `results/sequential.csv`.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import power
from light_pipeline import balanced, sequential_scores
from reporting import RESULTS, Simulation, write_tables
from simulated import Cell

from policytree.evaluation.estimates import blocked_estimate

OUTPUT = RESULTS / "sequential.csv"
BLOCKS = 10
WAYS = ("repeated", "sequential", "sequential tree only")
CLAIMS = ("any", "treatment", "tree", "shown best")
KINDS = {
    "nothing works (seven)": power.NULLS, "planned for 80 % (five)": power.DESIGNS, "a tree wins (three)": power.TREES,
}  # fmt: skip
COLUMNS = ["cell", "draw", *(f"{claim}: {way}" for way in WAYS for claim in CLAIMS)]


def one_run(cell: Cell, draw: int) -> dict[str, int]:
    """Claims of the three ways about one trial, the one that `power.py` draws."""
    repeated = partial(power.difference, power.one_run(cell, draw))
    study = cell.draw(np.random.default_rng([draw, sum(map(ord, cell.name))]))
    groups = study.get("groups")
    units = np.arange(cell.n) if groups is None else groups
    blocks = balanced(study["T"], units, np.random.default_rng([draw, BLOCKS]), BLOCKS)
    later = sequential_scores(study, blocks, linear=cell.learner != "means")
    own = None if groups is None else np.unique(groups[later.rows], return_inverse=True)[1]

    def sequential(a: int, b: int):
        return blocked_estimate(later.scores[a] - later.scores[b], later.block, groups=own)

    def mixed(a: int, b: int):
        return (sequential if 0 in (a, b) else repeated)(a, b)

    found = zip(WAYS, (repeated, sequential, mixed), strict=True)
    told = {way: power.claims(1 + cell.n_arms, between) for way, between in found}
    return {f"{claim}: {way}": int(told[way][claim]) for way in WAYS for claim in CLAIMS}


def by_kind(found: pd.DataFrame) -> pd.DataFrame:
    """The same over all trials of a kind."""
    kind_of = {cell.name: kind for kind, cells in KINDS.items() for cell in cells}
    return lines(found.assign(cell=found["cell"].map(kind_of))).rename(columns={"cell": "trials"})


def lines(found: pd.DataFrame) -> pd.DataFrame:
    """A line for every cell and way."""
    out = []
    for name, runs in found.groupby("cell", sort=False):
        for way in WAYS:
            more = 100 * (runs[f"any: {way}"] - runs[f"any: {WAYS[0]}"])
            out.append({
                "cell": name, "runs": len(runs), "way": way,
                **{claim: power.share(runs[f"{claim}: {way}"]) for claim in CLAIMS},
                "more": "" if way == WAYS[0] else f"{more.mean():+.1f} ({more.std() / len(runs) ** 0.5:.1f})",
            })  # fmt: skip
    return pd.DataFrame(out)


def main() -> None:
    """Run the draws that are lacking, and write the table of all."""
    simulation = Simulation(power.CELLS, one_run, COLUMNS)
    asked = simulation.parser(__doc__, OUTPUT, runs=100).parse_args()
    found = simulation.asked_for(asked)
    if found is not None:
        about = "`python benchmarks/sequential.py`\n\n" + (__doc__ or "").split("\n\n", 2)[-1] + "\n"
        parts = [(about, by_kind(found)), ("\nBy design.\n\n", lines(found))]
        write_tables(asked.output, "Sequential validation in small trials (percent)", parts)


if __name__ == "__main__":
    main()
