"""Effect estimators of EconML as outcome models of our rewards, beside our own learners; simulated, truth known.

    python benchmarks/effect_outcomes.py                                   # what is lacking of ten draws a design
    python benchmarks/effect_outcomes.py --cell "steps, trial" --runs 20   # ten more of one of them
    python benchmarks/effect_outcomes.py --table                           # the table from the draws that are kept

`RewardEstimator(model_regression=CausalForestDML(discrete_treatment=True))` and the like are fitted in every fold, with
forests of 50 trees as their own models of outcomes and treatments. All else (folds, propensities, scores, the exact
tree) is the same for everybody. Designs, draws and columns are those of `default_rewards.py`, at 300 or 500 rows.

Every draw is kept in `results/effect_outcomes.csv`.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import pandas as pd
from default_rewards import STUDIES, Study, Truth, run, table
from econml.dml import CausalForestDML, LinearDML
from econml.metalearners import XLearner
from reporting import RESULTS, Simulation, write_tables
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from policytree import RewardEstimator

OUTPUT = RESULTS / "effect_outcomes.csv"
LEARNERS = ("default", "CausalForestDML", "LinearDML", "XLearner")
MEASURES = ("regret", "covered", "bias", "seconds")
COLUMNS = ["cell", "draw", *(f"{measure}: {learner}" for learner in LEARNERS for measure in MEASURES)]
ABOUT = """\
`python benchmarks/effect_outcomes.py`

Doubly robust rewards whose outcome models are an effect estimator of EconML (its own models are forests) and a
regression of what the effects leave, or our own learners (default). Draws, folds and propensities are the same. Regret
of an exact tree of depth two, and the same less that of the default (pairs); share of 95 % intervals of the average
effect that hold the truth, and their bias; processor seconds of the rewards (median). Standard errors in brackets; of
the default's bias: {errors}.

"""


class Cell(NamedTuple):
    """A design and a number of rows."""

    study: Study
    n: int


SIZES = {"linear, trial": 300, "steps, trial": 300, "nonlinear confounding": 500}
CELLS = {study.name: Cell(study, SIZES[study.name]) for study in STUDIES if study.name in SIZES}


def learners(binary: bool, seed: int) -> dict[str, RewardEstimator]:
    """Our defaults, and estimators of three kinds that EconML has."""
    del binary  # no design of this file has such outcomes
    small = {"n_estimators": 50, "min_samples_leaf": 10, "random_state": seed}
    outcome, chances = RandomForestRegressor(**small), RandomForestClassifier(**small)
    residuals = {"model_y": outcome, "model_t": chances, "discrete_treatment": True, "random_state": seed}
    models = (
        "auto",
        CausalForestDML(n_estimators=100, **residuals),
        LinearDML(**residuals),
        XLearner(models=outcome, propensity_model=chances),
    )
    return {
        name: RewardEstimator(model_regression=model, random_state=seed)
        for name, model in zip(LEARNERS, models, strict=True)
    }


truth_of = cache(Truth.of)


def one_draw(cell: Cell, draw: int) -> dict[str, float]:
    """Every learner's results on one draw."""
    found = run(cell.study, cell.n, draw, truth_of(cell.study), learners)
    return {f"{measure}: {each['rewards']}": each[measure] for each in found for measure in MEASURES}


def by_learner(found: pd.DataFrame) -> pd.DataFrame:
    """One line per draw and learner, as `default_rewards.py` reads them."""
    long = pd.wide_to_long(found, MEASURES, ["cell", "draw"], "rewards", sep=": ", suffix=r"\w+").reset_index()
    order = {name: place for place, name in enumerate(CELLS)}
    long = long.sort_values("cell", key=lambda names: names.map(order), kind="stable")
    return long.assign(design=long["cell"], n=[CELLS[name].n for name in long["cell"]])


def main() -> None:
    """Run the draws that are lacking, and write the table of all."""
    simulation = Simulation(CELLS, one_draw, COLUMNS)
    asked = simulation.parser(__doc__, OUTPUT, runs=10).parse_args()
    found = simulation.asked_for(asked)
    if found is None:
        return
    draws = by_learner(found)
    own = draws[draws["rewards"] == "default"].groupby("design", sort=False)["bias"].sem()
    errors = "; ".join(f"{design} {error:.3f}" for design, error in own.items())
    lines = table(draws, "default").drop(columns="false better")
    write_tables(asked.output, "Effect estimators of EconML as outcome models", [(ABOUT.format(errors=errors), lines)])


if __name__ == "__main__":
    main()
