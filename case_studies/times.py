"""Shared code of studies of times to an event: follow-up by arm, curves, careless answers, horizons, who was lost.

``data`` is a :class:`policytree.Study` whose outcome is a ``TimeToEvent``; it counts as the restricted mean (RMST).
"""

from __future__ import annotations

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from policytree import (
    DRPolicyTree,
    PolicyTree,
    RewardEstimator,
    Study,
    cross_val_policy_value,
    policy_value,
)
from policytree.evaluation.estimates import Estimate, influence_estimate, mean_estimate
from policytree.weighting.completion import unadjusted
from policytree.weighting.time_to_event.product_limit import numbers_at_risk, product_limit

FOLDS, REPEATS = 5, 2
COUNTS = ("people", "events", "censored before", "followed to the horizon")
COLORS = ("#0072B2", "#E69F00", "#009E73", "#999999")


def without_covariates(data: Study) -> np.ndarray:
    """Outcomes in place of censored ones, (n,); an arm's mean is the area under its curve of Kaplan and Meier."""
    return unadjusted(data.observed).y


def parts(data: Study) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Times, whether the event was seen, arms, and the horizon."""
    outcome = data.outcome
    time, event, arms = (data.table[name].to_numpy() for name in (outcome.time, outcome.event, data.treatment.column))
    return time, event == 1, arms, outcome.horizon


def show_follow_up(study, data: Study, fitted: RewardEstimator, name: str = "follow_up") -> None:
    """Who was followed, who was lost before the horizon, and how many weights of censoring were raised."""
    time, event, arms, horizon = parts(data)
    rows = {}
    for arm in fitted.treatments_:
        own = arms == arm
        lost = own & ~event & (time < horizon)
        rows[arm] = {
            "people": own.sum(),
            "events": (own & event & (time <= horizon)).sum(),
            "censored before": lost.sum(),
            "% censored": 100 * lost.sum() / own.sum(),
            "followed to the horizon": numbers_at_risk(time[own], np.array([horizon]))[0],
        }
    study.table(pd.DataFrame(rows).T.astype(dict.fromkeys(COUNTS, int)), name)
    study.show(f"Rows whose probability of not being censored was raised to {fitted.min_observed:g}: "
               f"{fitted.n_raised_}; rows whose propensity was raised: {fitted.n_clipped_}.")  # fmt: skip


def show_arms(study, data: Study, fitted: RewardEstimator, unit: str, digits: int, name: str = "arms") -> None:
    """Restricted means by curve and doubly robust, with their errors, and two careless answers."""
    time, event, arms, horizon = parts(data)
    of_curves, rows = without_covariates(data), {}
    for arm in fitted.treatments_:
        own = arms == arm
        complete = own & (event | (time >= horizon))
        by_curve, robust = mean_estimate(of_curves[own]), policy_value(arm, fitted.rewards_)
        rows[arm] = {
            "Kaplan-Meier": by_curve.value,
            "s.e.": by_curve.standard_error,
            "doubly robust": robust.value,
            "its s.e.": robust.standard_error,
            "time as a number": time[own].mean(),
            "complete cases": np.minimum(time[complete], horizon).mean(),
        }
    study.show(f"Mean {unit} without the event, of {horizon:g}; and what two careless analyses call the mean:")
    study.table(pd.DataFrame(rows).T, name, digits=digits)


def show_contrast(
    study, data: Study, fitted: RewardEstimator, arm: str, baseline: str, digits: int, name: str = "contrast"
) -> None:
    """One arm against another: by four analyses, and if those who were lost differ as much as they can."""
    time, event, arms, horizon = parts(data)
    complete, capped = event | (time >= horizon), np.minimum(time, horizon)
    free = np.where(complete, capped, horizon)  # whoever was lost lived to the horizon without the event
    estimates = {
        "doubly robust": policy_value(arm, fitted.rewards_, baseline=baseline),
        "Kaplan-Meier": raw_difference(without_covariates(data), arms, arm, baseline),
        "time as a number": raw_difference(time, arms, arm, baseline),
        "complete cases": raw_difference(capped[complete], arms[complete], arm, baseline),
        f"lost: events at once in {arm}, none in {baseline}": raw_difference(
            np.where(arms == arm, capped, free), arms, arm, baseline
        ),
        f"lost: none in {arm}, events at once in {baseline}": raw_difference(
            np.where(arms == arm, free, capped), arms, arm, baseline
        ),
    }
    table = pd.DataFrame({how: [e.value, e.lower, e.upper] for how, e in estimates.items()}).T
    study.show(f"{arm} less {baseline}, with 95 % intervals:")
    study.table(table.set_axis(["difference", "lower", "upper"], axis=1), name, digits=digits)


def raw_difference(values: np.ndarray, arms: np.ndarray, arm: str, baseline: str) -> Estimate:
    """Difference of two arms' plain means, with its error."""
    influence, means = np.zeros(len(values)), []
    for label, sign in ((arm, 1.0), (baseline, -1.0)):
        own = arms == label
        means.append(values[own].mean())
        influence[own] = sign * (values[own] - means[-1]) * len(values) / own.sum()
    return influence_estimate(means[0] - means[1], influence)


def draw_curves(study, data: Study, title: str, unit: str, name: str = "curves") -> None:
    """Curves of Kaplan and Meier with the numbers at risk, up to the horizon."""
    time, event, arms, horizon = parts(data)
    labels = sorted(set(arms))
    at = np.linspace(0.0, horizon, 6)
    figure, (ax, below) = plt.subplots(
        2,
        1,
        figsize=(6.4, 4.4),
        layout="constrained",
        sharex=True,
        gridspec_kw={"height_ratios": [4, 0.35 * len(labels)]},
    )
    for k, (arm, color) in enumerate(zip(labels, COLORS, strict=False)):
        own = arms == arm
        curve = product_limit(time[own], event[own])
        grid = np.concatenate([[0.0], curve.times[curve.times <= horizon], [horizon]])
        ax.step(grid, curve.at(grid), where="post", color=color, label=arm)
        for x, count in zip(at, numbers_at_risk(time[own], at), strict=True):
            below.text(x, -k, str(count), ha="center", va="center", color=color, fontsize=8)
    ax.set(ylabel="share without the event", ylim=(0.0, 1.02), title=title)
    ax.legend(frameon=False)
    below.set(ylim=(-len(labels) + 0.4, 0.6), yticks=[-k for k in range(len(labels))], yticklabels=labels,
              xlabel=f"{unit}; below the curves: people still followed")  # fmt: skip
    below.tick_params(length=0, labelsize=8)
    below.spines[:].set_visible(False)
    study.figure(figure, name)


def at_horizon(data: Study, horizon: float) -> Study:
    """The same study up to another horizon."""
    return data.replace(outcome=replace(data.outcome, horizon=horizon))


def show_horizons(
    study, data: Study, horizons: tuple[float, ...], tree: PolicyTree, digits: int, name="horizons"
) -> None:
    """The arms at other horizons, and whom the tree of each treats as the tree does."""
    rows, chosen = [], tree.predict(data.X)
    for horizon in horizons[:1] if study.quick else horizons:
        study.step(f"horizon {horizon:g}")
        rewards = RewardEstimator(random_state=0).fit_predict(at_horizon(data, horizon))
        means = {arm: policy_value(arm, rewards) for arm in rewards}
        best, second = sorted(means, key=lambda arm: -means[arm].value)[:2]
        lead = policy_value(best, rewards, baseline=second)
        other = PolicyTree(**tree.get_params()).fit(data.X, rewards, parts(data)[2]).predict(data.X)
        rows.append({"horizon": horizon, **{arm: mean.value for arm, mean in means.items()}, "best": best,
                     "its lead": lead.value, "lower": lead.lower, "upper": lead.upper,
                     "% treated as by the tree": 100 * np.mean(other == chosen)})  # fmt: skip
    study.show(
        "The same at other horizons (the lead is that over the second best arm, which was chosen after the fact):"
    )
    study.table(pd.DataFrame(rows), name, digits=digits, index=False)


def show_values(
    study, data: Study, smallest: int, title: str, xlabel: str, digits: int, name="held_out_values"
) -> None:
    """Held-out values of depth two, depth one and depth zero (one arm for everybody), refitted in every fold."""
    model = DRPolicyTree(max_depth=2, min_samples_per_treatment=smallest, random_state=0)
    folds = {"cv": 2, "n_repeats": 1} if study.quick else {"cv": FOLDS, "n_repeats": REPEATS}
    table = cross_val_policy_value(
        model, data, rivals={"depth 1": PolicyTree(max_depth=1, min_samples_per_treatment=smallest)}, random_state=0,
        progress=lambda done, total: study.step(f"held-out values: refit {done} of {total}"), **folds,
    )  # fmt: skip
    study.show(f"{table.verdict}\n")
    shown = table.to_frame().drop(columns=["standard_error", "difference_standard_error"])
    study.table(shown, name, digits=digits)
    study.show("'policy tree' has depth 2; depth 0 is one arm for everybody; a difference is the tree less the rule.")
    study.figure(table.plot(title=title, xlabel=xlabel).figure_, name)
