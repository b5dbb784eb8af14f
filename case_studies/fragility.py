"""Shared code of the parts called fragility: a rule on unseen rows, hidden confounding, resamples, optimism."""

from __future__ import annotations

import numpy as np

from policytree import Study, cross_val_policy_value
from policytree.evaluation import marginal_sensitivity, policy_stability

GAMMAS = (1.0, 1.1, 1.25, 1.5, 2.0)


def of_people(function, model, data: Study | dict, **options):
    """Call a function with a study, or with its arrays by name."""
    if isinstance(data, Study):
        return function(model, data, random_state=0, **options)
    return function(model, **data, random_state=0, **options)


def show_optimism(study, model, data: Study | dict, *, n_repeats: int = 2, cv: int = 5):
    """Show the apparent value of rules on the rows that chose them; return the table of held-out values."""
    table = of_people(
        cross_val_policy_value, model, data, cv=cv, n_repeats=n_repeats,
        progress=lambda done, total: study.step(f"held-out values: refit {done} of {total}"),
    )  # fmt: skip
    study.table(table.optimism_frame(), "optimism", digits=2)
    study.show("\n".join(table.optimism_statements()))
    return table


def show_confounding(study, policy, baseline, data: dict, nuisances, name: str, **options):
    """Bounds of an advantage under the marginal sensitivity model: the table, and the curve as a picture."""
    given = {"groups": data.get("groups"), "baseline": baseline, "random_state": 0, "regression": nuisances.regression_}
    given |= {"propensity": nuisances.propensity_, **options}
    found = marginal_sensitivity(policy, data["Y"], data["T"], gammas=GAMMAS, **given)
    study.show(f"{name}:\n{found}\n")
    return found


def draw_confounding(study, policy, baseline, data: dict, nuisances, file: str, ylabel: str, **options) -> None:
    """The curve of the same bounds."""
    given = {"groups": data.get("groups"), "baseline": baseline, "random_state": 0, "regression": nuisances.regression_}
    given |= {"propensity": nuisances.propensity_, **options}
    grid = np.exp(np.linspace(0.0, np.log(3.0), 8 if study.quick else 16))
    curve = marginal_sensitivity(policy, data["Y"], data["T"], gammas=grid, **given)
    study.figure(curve.plot(ylabel=ylabel).figure_, file)


def show_stability(study, model, data: Study | dict, title: str, n_resamples: int, unit: str):
    """The rule on bootstrap samples: tables and the heat map."""
    found = of_people(
        policy_stability, model, data, n_resamples=4 if study.quick else n_resamples,
        progress=lambda done, total: study.step(f"bootstrap sample {done} of {total}"),
    )  # fmt: skip
    study.show(f"{found.to_text(unit=unit)}\n")
    ranges = found.threshold_shares().reset_index()[["covariate", "range", "share", "standard_error", "median"]]
    study.show("Where thresholds fall (tenths of the rows; at least a tenth of the samples):")
    study.table(ranges[ranges["share"] >= 0.1], "thresholds", digits=2, index=False)
    study.figure(found.plot(title=title, unit=unit).figure_, "stability")
    return found
