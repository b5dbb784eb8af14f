"""Learning one's HIV status in Malawi: who should be offered how much money to fetch the result.

Public interface used: RewardEstimator, policy_value, heterogeneity_test; prices and trees are in ../worth.py. Offers
are the arms: what counts is what an offer does, taken up or not, and money is paid to those only who come.
"""

from __future__ import annotations

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from worth import Worths, show_prices, show_trees, show_values

from policytree import RewardEstimator, Study, heterogeneity_test, policy_value
from policytree.exceptions import InputError

OFFERS = ("none", "up to $1", "up to $2", "up to $3")  # by the amount that was drawn; they sort as they cost
CUTS = (0.0, 1.0, 2.0)  # dollars; 100 and 200 of 300 kwacha
STEPS = [(offer, OFFERS[0]) for offer in OFFERS[1:]] + list(zip(OFFERS[2:], OFFERS[1:-1], strict=True))
WORTHS = Worths("a result", moved=(0.5, 1.0, 2.0, 3.0, 5.0, 10.0), judged=(1.0, 3.0, 10.0), smallest=40)
COLORS = dict(zip(OFFERS, ("#999999", "#56B4E9", "#0072B2", "#D55E00"), strict=True))


def people() -> pd.DataFrame:
    """Those tested whose offer is known, one row each; the file has 4,820 rows with everybody sampled."""
    try:
        from causaldata import thornton_hiv
    except ImportError:
        raise InputError("This study's data come with the package causaldata: `pip install causaldata`.") from None
    return usable(thornton_hiv.load_pandas().data)


def usable(raw: pd.DataFrame) -> pd.DataFrame:
    """Rows of the file with an offer, a result that could be fetched, and a village."""
    kept = raw.dropna(subset=["got", "tinc", "villnum"]).reset_index(drop=True)
    offer = np.array(OFFERS)[np.searchsorted(CUTS, kept["tinc"].to_numpy(float).round(4))]
    return pd.DataFrame({
        "offer": offer,
        "dollars": kept["tinc"].to_numpy(float),
        "learnt": kept["got"].to_numpy(float),
        "paid": (kept["tinc"] * kept["got"]).to_numpy(float),
        "distance": kept["distvct"].to_numpy(float),
        "age": kept["age"].to_numpy(float),
        "village": kept["villnum"].astype(int).to_numpy(),
    })  # fmt: skip


def as_study(frame: pd.DataFrame, outcome: str) -> Study:
    """Make the study: villages are kept together, since neighbours share a centre and news."""
    return Study(
        frame, treatment="offer", outcome=outcome, direction="maximize", covariates=["distance", "age"],
        cluster="village",
    )  # fmt: skip


def net(frame: pd.DataFrame, worth: float) -> pd.Series:
    """Dollars a person: what a learnt result is worth, less what was paid, to those who came."""
    return worth * frame["learnt"] - frame["paid"]


def show_offers(study, frame: pd.DataFrame, rewards: dict[str, pd.DataFrame]) -> None:
    """Show every offer's gain and cost per person offered, with intervals by village."""
    study.heading("1. The offers: share that learnt the result, and dollars paid per person offered")
    rows = {}
    for offer, part in frame.groupby("offer"):
        learnt, paid = (policy_value(offer, rewards[o], groups=frame["village"]) for o in ("learnt", "paid"))
        rows[offer] = {
            "people": len(part), "villages": part["village"].nunique(), "mean offer, $": part["dollars"].mean(),
            "learnt, raw": part["learnt"].mean(), "learnt": learnt.value, "lower": learnt.lower, "upper": learnt.upper,
            "paid, $": paid.value,
        }  # fmt: skip
    table = pd.DataFrame(rows).T.astype({"people": int, "villages": int})
    study.table(table, "offers", digits=3)


def draw(study, frame: pd.DataFrame, rewards: dict[str, pd.DataFrame]) -> None:
    """Share that learnt by distance and offer: where money matters."""
    figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    edges = np.quantile(frame["distance"], np.linspace(0.0, 1.0, 6))
    part = np.clip(np.searchsorted(edges, frame["distance"], side="right") - 1, 0, 4)
    middle = frame["distance"].groupby(part).mean()
    for k, offer in enumerate(OFFERS):
        found = [
            policy_value(offer, rewards["learnt"][part == j], groups=frame["village"][part == j]) for j in range(5)
        ]
        error = np.array([[e.value - e.lower, e.upper - e.value] for e in found]).T
        ax.errorbar(
            middle + 0.03 * (k - 1.5), [e.value for e in found], error, fmt="o-", capsize=2, color=COLORS[offer],
            label=offer,
        )  # fmt: skip
    ax.set(
        xlabel="kilometres to the centre (fifths of people)", ylabel="share that learnt the result", ylim=(0.0, 1.05)
    )
    ax.legend(frameon=False, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    study.figure(figure, "distance")


def main(study) -> None:
    """Run the study."""
    frame = people()
    if study.quick:
        frame = frame[frame["village"].isin(sorted(frame["village"].unique())[::2])].reset_index(drop=True)
    study.show(
        f"Thornton: {len(frame):,} people with an offer in {frame['village'].nunique()} villages; two covariates to "
        f"split on (distance in kilometres, age; {int(frame['age'].isna().sum())} ages missing)"
    )
    rewards = {}
    for outcome in ("learnt", "paid"):
        study.step(f"nuisance models: {outcome}")
        fitted = RewardEstimator(random_state=0).fit(as_study(frame, outcome))
        rewards[outcome] = fitted.rewards_
    show_offers(study, frame, rewards)
    study.heading("2. What one more learnt result costs, dollars")
    show_prices(study, rewards["learnt"], rewards["paid"], STEPS, frame["village"], "learnt")
    study.step("do effects differ?")
    study.show(f"Learnt the result: {heterogeneity_test(as_study(frame, 'learnt'), random_state=0)}")
    draw(study, frame, rewards)
    ask = replace(WORTHS, smallest=WORTHS.smallest // 4) if study.quick else WORTHS
    study.heading(
        f"3. Who gets which offer as the worth of a result moves (at least {ask.smallest} of every offer a leaf)"
    )
    data = as_study(frame, "learnt")
    show_trees(study, data, rewards["learnt"], rewards["paid"], OFFERS, ask)
    study.heading("4. On villages that the tree has not seen (dollars a person)")
    show_values(study, data, lambda worth: net(frame, worth), ask, 3, "Malawi: held out")
