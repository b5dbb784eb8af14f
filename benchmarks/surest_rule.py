"""Whether the bound of the surest rule holds, and how often a gain is shown where there is none.

    python benchmarks/surest_rule.py                      # 400 studies a cell: forty minutes on one core
    python benchmarks/surest_rule.py --cell "effects, n=1000, 2 arms" --runs 400
    python benchmarks/surest_rule.py --table              # the table from the draws that are kept

Every run draws a study as in `held_out_coverage.py`, calls `surest_rule` with treatment 0 as the control, and once more
with the best single treatment as the baseline, whichever it is. The bound holds if it is at most the true gain of that
very rule, by 4,096 points of the population. Nuisance models are linear (and logistic), in two folds.

Every draw is kept in `results/surest_rule.csv`; cells that are asked for again go on where they ended.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from reporting import RESULTS, Simulation, with_error, write_tables
from simulated import POPULATION, Cell, cells, no_effect, unwatched
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import DRPolicyTree
from policytree.evaluation import surest_rule
from policytree.weighting.study_data import by_columns

CHOSEN = ("no effect, n=300, 2 arms", "effects, n=300, 2 arms", "effects, n=1000, 4 arms", "confounded, n=1000",
          "60 clusters of 25", "other: no effect, confounded, n=1000")  # fmt: skip
SKEWED = Cell("no effect, n=300, skewed", 300, 2, no_effect, wavy=True, skewed=True)
OUTPUT = RESULTS / "surest_rule.csv"
COLUMNS = ["cell", "draw", *(f"{what}_{over}" for over in ("control", "best")
           for what in ("surest", "lower", "gain", "truth", "largest_lower", "largest_truth", "critical"))]  # fmt: skip


def one_run(cell: Cell, draw: int) -> dict:
    """Bound and truth of the surest rule, and of the tree of largest value, by both baselines."""
    study, (means, weight) = cell.draw(np.random.default_rng([draw, sum(map(ord, cell.name))])), cell.truth()
    Y, T = study.pop("Y"), study.pop("T")
    tree = DRPolicyTree(
        max_depth=2, min_samples_leaf=10, model_regression=LinearRegression(), model_propensity=LogisticRegression(),
        cv=2, random_state=draw,
    )  # fmt: skip
    values = weight @ means
    out = {}
    for over, control, baseline in (("control", 0, values[0]), ("best", None, values.max())):
        with unwatched():
            found = by_columns(surest_rule, tree, Y=Y, T=T, control=control, random_state=draw, **study)

        def truth(rule, baseline=baseline):
            return weight @ means[np.arange(len(means)), rule.action[rule.apply(POPULATION)]] - baseline

        found_by = {"surest": found.surest.name, "lower": found.surest.lower, "gain": found.surest.gain,
                    "truth": truth(found.tree), "largest_lower": found.largest.lower,
                    "largest_truth": truth(found.largest.tree), "critical": found.critical_value}  # fmt: skip
        out |= {f"{name}_{over}": value for name, value in found_by.items()}
    return out


def tables(draws: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """A table for each baseline."""
    for over, name in (("control", "treatment 0 for everybody"), ("best", "the best single treatment")):
        lines = []
        for cell, of_cell in draws.groupby("cell", sort=False):
            part = {c.removesuffix(f"_{over}"): of_cell[c] for c in of_cell if c.endswith(f"_{over}")}
            shown = part["lower"] > 0
            lines.append({
                "cell": cell, "studies": len(of_cell),
                "bound holds %": with_error(100.0 * (part["lower"] <= part["truth"] + 1e-12), 1),
                "shown without gain %": with_error(100.0 * (shown & (part["truth"] <= 1e-12)), 1),
                "shown %": f"{100.0 * shown.mean():.1f}",
                "tree of largest value shown %": f"{100.0 * (part['largest_lower'] > 0).mean():.1f}",
                "true gain": with_error(part["truth"], 3), "bound": with_error(part["lower"], 3),
                "largest value: true gain": with_error(part["largest_truth"], 3),
                "its bound": with_error(part["largest_lower"], 3),
                "critical value": f"{part['critical'].mean():.2f}",
            })  # fmt: skip
        yield f"Gains over {name} (bounds: lower ends of 95 % intervals, so nominal 97.5 %):\n\n", pd.DataFrame(lines)


def main(arguments: list[str] | None = None) -> None:
    """Draw what is lacking, and write both tables."""
    own = {cell.name: cell for cell in [*cells(), SKEWED] if cell.name in (*CHOSEN, SKEWED.name)}
    simulation = Simulation(own, one_run, COLUMNS)
    asked = simulation.parser(__doc__, OUTPUT, runs=400).parse_args(arguments)
    draws = simulation.asked_for(asked)
    if draws is not None:
        write_tables(asked.output, "Bounds of the surest rule", tables(draws))


if __name__ == "__main__":
    main()
