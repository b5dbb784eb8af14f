"""NHEFS: how strong a hidden confounder, or an omitted variable, must be to undo that quitting adds weight.

Public interface used: marginal_sensitivity, omitted_variable_bounds, nuisances_without, and their displays.
"""

from __future__ import annotations

from fragility import draw_confounding, show_confounding
from nhefs.priorities import QUIT, SMOKE

from policytree import Study
from policytree.evaluation import nuisances_without, omitted_variable_bounds

COVARIATES = {
    "age": ["age"],
    "smoking history": ["cigarettes", "years_smoked"],
    "weight and height": ["weight", "height"],
    "activity": ["inactivity", "no_exercise"],
}


def show_hidden_confounders(study, data: Study, fitted) -> None:
    """Bounds of the average effect by both models of what was not measured."""
    study.heading("7. Hidden confounders: everybody quits against everybody smokes on, kilograms")
    study.step("hidden confounders")
    rows = {"Y": data.table[data.outcome.column], "T": data.table[data.treatment.column]}
    show_confounding(study, QUIT, SMOKE, rows, fitted, "quitting against smoking on")
    draw_confounding(study, QUIT, SMOKE, rows, fitted, "confounding", "quit - smoke on, kg")
    chosen = dict(list(COVARIATES.items())[:1]) if study.quick else COVARIATES
    study.step("nuisances without each covariate")
    benchmarks = nuisances_without(fitted, data, covariates=chosen)
    given = {"propensity": fitted.propensity_, "regression": fitted.regression_, "random_state": 0}
    omitted = omitted_variable_bounds(QUIT, **rows, baseline=SMOKE, benchmarks=benchmarks, **given)
    study.show(f"quitting against smoking on:\n{omitted}\n")
    study.figure(omitted.plot().figure_, "omitted")
