"""Effect estimators of EconML as outcome models of our rewards, beside our own learners; simulated, truth known.

    python benchmarks/effect_outcomes.py                                    # three designs, ten draws each
    python benchmarks/effect_outcomes.py --design "steps, trial" --draws 2  # one of them

`RewardEstimator(model_regression=CausalForestDML(discrete_treatment=True))` and the like are fitted in every fold, with
forests of 50 trees as their own models of outcomes and treatments. All else (folds, propensities, scores, the exact
tree) is the same for everybody. Designs, draws and columns are those of `default_rewards.py`, at 300 or 500 rows.
Results: `benchmarks/results/effect_outcomes.md`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from default_rewards import STUDIES, Truth, run, table
from econml.dml import CausalForestDML, LinearDML
from econml.metalearners import XLearner
from reporting import machine, markdown_head, markdown_table
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from policytree import RewardEstimator

RESULTS = Path(__file__).parent / "results"
SIZES = {"linear, trial": 300, "steps, trial": 300, "nonlinear confounding": 500}
WHAT = """\
`{command}`

Doubly robust rewards whose outcome models are an effect estimator of EconML (its own models are forests) and a
regression of what the effects leave, or our own learners (default). Draws, folds and propensities are the same. Regret
of an exact tree of depth two, and the same less that of the default (pairs); share of 95 % intervals of the average
effect that hold the truth, and their bias; processor seconds of the rewards (median). Standard errors in brackets; of
the default's bias: {errors}.

"""


def learners(binary: bool, seed: int) -> dict[str, RewardEstimator]:
    """Our defaults, and estimators of three kinds that EconML has."""
    del binary  # no design of this file has such outcomes
    small = {"n_estimators": 50, "min_samples_leaf": 10, "random_state": seed}
    outcome, chances = RandomForestRegressor(**small), RandomForestClassifier(**small)
    residuals = {"model_y": outcome, "model_t": chances, "discrete_treatment": True, "random_state": seed}
    models = {
        "CausalForestDML": CausalForestDML(n_estimators=100, **residuals),
        "LinearDML": LinearDML(**residuals),
        "XLearner": XLearner(models=outcome, propensity_model=chances),
    }
    own = {"default": RewardEstimator(random_state=seed)}
    return own | {name: RewardEstimator(model_regression=model, random_state=seed) for name, model in models.items()}


def saved(found: pd.DataFrame, lines: pd.DataFrame, command: str) -> None:
    """Write the file of results: all draws are in ``found``, the table in ``lines``."""
    own = found[found["rewards"] == "default"].groupby("design", sort=False)["bias"].sem()
    errors = "; ".join(f"{design} {error:.3f}" for design, error in own.items())
    text = markdown_head("Effect estimators of EconML as outcome models", machine())
    text += WHAT.format(command=command, errors=errors)
    lines = lines.drop(columns="false better").astype(str)
    text += markdown_table(list(lines), lines.values.tolist())
    (RESULTS / "effect_outcomes.md").write_text(text, encoding="utf-8")


def main() -> None:
    """Run the designs asked for; tables are printed after each, and saved at the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--design", choices=list(SIZES), action="append", help="may be repeated; all if left out")
    asked = parser.parse_args()
    designs = asked.design or list(SIZES)
    found: list[dict] = []
    for study in (study for study in STUDIES if study.name in designs):
        truth, n = Truth.of(study), SIZES[study.name]
        own = [row for draw in range(asked.draws) for row in run(study, n, draw, truth, learners)]
        found += own
        print(table(pd.DataFrame(own), "default").to_string(index=False), flush=True)
    named = "".join(f' --design "{name}"' for name in asked.design or ())
    command = f"python benchmarks/effect_outcomes.py --draws {asked.draws}{named}"
    saved(pd.DataFrame(found), table(pd.DataFrame(found), "default"), command)


if __name__ == "__main__":
    main()
