"""LaLonde: how strong a hidden confounder must be, in the experiment and with controls from a survey.

Public interface used: load_dataset, RewardEstimator, crump_trimming, DRPolicyTree, cross_val_policy_value (optimism),
marginal_sensitivity, omitted_variable_bounds, nuisances_without, policy_stability, and their displays.
"""

from __future__ import annotations

import warnings

import pandas as pd
from fragility import draw_confounding, show_confounding, show_optimism, show_stability
from lalonde.men import men_of

from policytree import DRPolicyTree, RewardEstimator
from policytree.diagnostics import crump_trimming
from policytree.evaluation import nuisances_without, omitted_variable_bounds
from policytree.exceptions import OverlapWarning

TRAIN, NOT = "training", "control"
SMALLEST = 20
RESAMPLES = 50
COVARIATES = {
    "prior earnings": ["re75"],
    "schooling": ["education", "nodegree"],
    "age": ["age"],
}


def show_sample(study, label: str, data: dict, file: str, covariates: dict[str, list[str]]) -> None:
    """Both analyses of training everybody against training nobody."""
    nuisances = RewardEstimator(random_state=0).fit(**data)
    show_confounding(study, TRAIN, NOT, data, nuisances, label)
    study.step(f"nuisances without each covariate: {label}")
    rows = {name: data[name] for name in ("Y", "T", "X", "W")}
    benchmarks = nuisances_without(nuisances, **rows, covariates=covariates)
    given = {"propensity": nuisances.propensity_, "regression": nuisances.regression_, "random_state": 0}
    omitted = omitted_variable_bounds(TRAIN, data["Y"], data["T"], baseline=NOT, benchmarks=benchmarks, **given)
    study.show(f"{label}:\n{omitted}\n")
    draw_confounding(study, TRAIN, NOT, data, nuisances, f"confounding_{file}", "training - control, dollars")
    study.figure(omitted.plot().figure_, f"omitted_{file}")


def trimmed(data: dict) -> dict:
    """The rows that Crump et al. keep."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverlapWarning)
        unclipped = RewardEstimator(min_propensity=0.0, random_state=0).fit(**data)
    keep = crump_trimming(unclipped.propensity_, data["T"]).keep
    return {name: None if part is None else part[keep].reset_index(drop=True) for name, part in data.items()}


def main(study) -> None:
    """Run the part."""
    experiment = men_of("nsw")
    study.heading("1. The experiment (445 men): training everybody against training nobody")
    own = {"prior earnings": ["re74", "re75"], "schooling": ["educ", "nodegree"], "age": ["age"]}
    show_sample(study, "experiment", experiment, "experiment", own)

    study.heading("2. Controls from CPS, trimmed to where the two groups overlap")
    survey = trimmed(men_of("lalonde-cps", study.data_dir))
    counts = pd.Series(survey["T"]).value_counts()
    study.show(f"{counts[TRAIN]} trained men and {counts[NOT]} controls\n")
    show_sample(study, "CPS, trimmed", survey, "cps", COVARIATES)

    model = DRPolicyTree(max_depth=2, min_samples_per_treatment=SMALLEST, random_state=0)
    study.step("the tree of the 445 men")
    model.fit(**experiment)
    study.heading("3. Optimism: worth on the men who chose a rule less worth on others (experiment, dollars)")
    show_optimism(study, model, experiment, n_repeats=1 if study.quick else 3, cv=2 if study.quick else 5)

    study.heading(f"4. Another sample: the whole pipeline on {RESAMPLES} bootstrap samples of the experiment")
    show_stability(study, model, experiment, "The experiment, depth 2", RESAMPLES, "men")
