"""ACTG 175: four HIV treatments, CD4 cells after 20 weeks; which for whom if side effects cost something.

Public interface used: load_dataset, RewardEstimator, PolicyTree, DRPolicyTree, cross_val_policy_value,
policy_value; in priorities.py rankings and cost curves.
"""

from __future__ import annotations

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from actg175.priorities import show_priorities
from econml.policy import PolicyTree as GreedyPolicyTree
from sklearn.base import BaseEstimator

from policytree import (
    DRPolicyTree,
    PolicyTree,
    RewardEstimator,
    Study,
    cross_val_policy_value,
    load_dataset,
    policy_value,
)

# Our assumption, not the trial's: how many CD4 cells per cubic mm a patient would give up to be spared each drug.
DRUG_COSTS = {"zidovudine": 10.0, "didanosine": 20.0, "zalcitabine": 20.0}
FACTORS = (0.0, 1.0, 2.0, 3.0, 4.0)
SMALLEST = 50  # patients of every arm in a leaf
LEAF_PRICE = 5.0  # CD4 cells a leaf must bring on average; not tuned
PRICED = f"depth 2, a leaf costs {LEAF_PRICE:g}"
SHORT = {
    "didanosine": "ddI",
    "zidovudine": "ZDV",
    "zidovudine + didanosine": "ZDV+ddI",
    "zidovudine + zalcitabine": "ZDV+ddC",
}
COLORS = {"ddI": "#56B4E9", "ZDV": "#999999", "ZDV+ddI": "#E69F00", "ZDV+ddC": "#009E73"}


class GreedyTree(BaseEstimator):
    """EconML's tree, grown split by split, with our labels: EconML answers with column numbers."""

    def __init__(self, max_depth=2, min_samples_leaf=4 * SMALLEST, honest=False, random_state=0):
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.honest = honest
        self.random_state = random_state

    def fit(self, X, rewards):
        """Grow the tree on rewards with one column per arm."""
        self.treatments_ = rewards.columns.to_numpy()
        self.tree_ = GreedyPolicyTree(**self.get_params()).fit(X.to_numpy(dtype=float), rewards.to_numpy())
        return self

    def predict(self, X):
        """Arm of every row."""
        return self.treatments_[self.tree_.predict(X.to_numpy(dtype=float))]


def trial(study, outcome: str | None = None) -> Study:
    """The trial, with short names of the arms."""
    data = load_dataset("actg175", data_dir=study.data_dir).study(outcome)
    chances = {SHORT[arm]: chance for arm, chance in data.propensity.items()}
    return data.replace(table=data.table.assign(arm=data.table["arm"].map(SHORT)), propensity=chances)


def arm_costs(factor: float = 1.0) -> dict[str, float]:
    """Cost of every arm: the sum over its drugs."""
    return {short: factor * sum(DRUG_COSTS[drug] for drug in arm.split(" + ")) for arm, short in SHORT.items()}


def tree_of_all(study) -> tuple[Study, DRPolicyTree]:
    """The trial with its costs, and the tree of depth two of all patients."""
    data = trial(study).replace(arm_costs=arm_costs())
    model = DRPolicyTree(max_depth=2, min_samples_per_treatment=SMALLEST, random_state=0)
    study.step("the tree of all patients")
    return data, model.fit(data)


def show_arms(study, data: Study, rewards) -> None:
    """Raw and doubly robust means, overall and by prior therapy (the trial's stratum)."""
    study.heading("1. The arms (CD4 cells per cubic mm at 20 weeks)")
    groups = data.table.groupby("arm")["cd420"]
    table = pd.DataFrame({"patients": groups.size(), "raw mean": groups.mean()})
    estimates = {arm: policy_value(arm, rewards) for arm in rewards}
    table["doubly robust"] = {arm: e.value for arm, e in estimates.items()}
    table["std. error"] = {arm: e.standard_error for arm, e in estimates.items()}
    table["cost"] = arm_costs()
    study.table(table, "arms")
    strata = {1: "never treated before", 2: "treated up to 52 weeks", 3: "treated longer"}
    rows = []
    for code, name in strata.items():
        here = (data.table["strat"] == code).to_numpy()
        values = {arm: policy_value(arm, rewards[here]) for arm in rewards}
        rows.append({"before the trial": name, "patients": int(here.sum())})
        rows[-1] |= {arm: e.value for arm, e in values.items()}
        rows[-1]["largest std. error"] = max(e.standard_error for e in values.values())
    study.show("Doubly robust mean of every arm by prior antiretroviral therapy:")
    study.table(pd.DataFrame(rows), "arms_by_prior_therapy", index=False)


def show_trees(study, data, rewards) -> dict[int, PolicyTree]:
    """The best trees of depth 2 and 3 net of costs, with their proof and a picture."""
    study.heading(f"2. The best trees net of side effects, at least {SMALLEST} patients of every arm in a leaf")
    trees = {}
    for depth in (2, 3):
        study.step(f"exact tree of depth {depth}")
        tree = PolicyTree(max_depth=depth, min_samples_per_treatment=SMALLEST, n_jobs=2)
        tree.fit(data.X, rewards, data.table["arm"], sample_treatment_costs=arm_costs())
        study.show(tree.export_text())
        study.show(f"depth {depth}: {tree.status_.name.lower()}, gap {tree.optimality_gap_:g}; mean on the rows that "
                   f"chose it (flattered) {tree.objective_value_:.1f}\n")  # fmt: skip
        title = f"ACTG 175, depth {depth}: CD4 at 20 weeks net of side effects"
        picture = tree.tree_.plot(title=title, treatment_colors=COLORS, unit="patients")
        study.figure(picture.figure_, f"tree_depth_{depth}")
        trees[depth] = tree
    priced = PolicyTree(max_depth=2, min_samples_per_treatment=SMALLEST, regularization=LEAF_PRICE)
    priced.fit(data.X, rewards, data.table["arm"], sample_treatment_costs=arm_costs())
    study.show(f"{PRICED}:\n{priced.export_text()}\n")
    return trees


def show_values(study, data) -> None:
    """Held-out values of trees and rules, nuisances and trees refitted in every fold."""
    study.heading("3. What each rule is worth on patients it has not seen (CD4 net of side effects)")
    model = DRPolicyTree(max_depth=2, min_samples_per_treatment=SMALLEST, random_state=0)
    rivals = {
        "depth 2, no arm minimum": PolicyTree(max_depth=2),
        PRICED: PolicyTree(max_depth=2, min_samples_per_treatment=SMALLEST, regularization=LEAF_PRICE),
        "EconML greedy, depth 2": GreedyTree(2),
        "EconML greedy, depth 2, honest": GreedyTree(2, honest=True),
        "EconML greedy, depth 3": GreedyTree(3),
    }
    if not study.quick:
        rivals["depth 3"] = PolicyTree(max_depth=3, min_samples_per_treatment=SMALLEST, n_jobs=2)
    folds = {"cv": 2, "n_repeats": 2} if study.quick else {"cv": 5}
    table = cross_val_policy_value(
        model, data.replace(arm_costs=arm_costs()), rivals=rivals, **folds, random_state=0,
        n_jobs=2, progress=lambda done, total: study.step(f"held-out values: refit {done} of {total}"),
    )  # fmt: skip
    study.show(f"{table.verdict}\n")
    study.table(table.to_frame().drop(columns=["standard_error", "difference_standard_error"]), "held_out_values")
    study.show("'policy tree' is the exact tree of depth 2; 95 % intervals; a difference is the tree's value minus the "
               "rule's, on the same patients.")  # fmt: skip
    study.show("\n".join(table.statements()))
    for name in ("EconML greedy, depth 2", "EconML greedy, depth 2, honest", "EconML greedy, depth 3"):
        same = float(np.mean([np.mean(r.rivals[name] == r.policy) for r in table.repetitions]))
        study.show(f"{name}: the same arm as the exact tree of depth 2 for {same:.0%} of held-out patients")
    gain = table.difference(PRICED, "always ZDV+ddI")
    study.show(f"'{PRICED}' minus ZDV+ddI for all: {gain.value:.1f} [{gain.lower:.1f}, {gain.upper:.1f}]")
    title = "ACTG 175: CD4 at 20 weeks net of side effects, held out"
    study.figure(table.plot(title=title).figure_, "held_out_values")


def show_greedy_gap(study, data, rewards, trees) -> None:
    """How much of the training objective greedy growth leaves on the table."""
    study.heading("4. Exact and greedy on the same rewards (mean on the training rows)")
    net = rewards - pd.Series(arm_costs())
    rows = []
    for depth, tree in trees.items():
        greedy = GreedyTree(depth).fit(data.X, net)
        by_greedy = net.to_numpy()[np.arange(len(net)), net.columns.get_indexer(greedy.predict(data.X))]
        unrestricted = PolicyTree(max_depth=depth, min_samples_leaf=4 * SMALLEST, n_jobs=2).fit(data.X, net)
        rows.append({
            "depth": depth,
            f"exact, {SMALLEST} of every arm a leaf": tree.objective_value_,
            f"exact, {4 * SMALLEST} patients a leaf": unrestricted.objective_value_,
            f"EconML greedy, {4 * SMALLEST} patients a leaf": by_greedy.mean(),
            "best arm for all": net.mean().max(),
        })  # fmt: skip
    study.table(pd.DataFrame(rows), "exact_against_greedy", index=False)


def show_costs(study, data, rewards) -> None:
    """Shares of patients per arm as side effects weigh more."""
    study.heading("5. As side effects weigh more (depth 2; share of patients per arm)")
    rows = []
    for factor in FACTORS:
        tree = PolicyTree(max_depth=2, min_samples_per_treatment=SMALLEST)
        tree.fit(data.X, rewards, data.table["arm"], sample_treatment_costs=arm_costs(factor))
        shares = pd.Series(tree.predict(data.X)).value_counts(normalize=True)
        best = (rewards - pd.Series(arm_costs(factor))).mean()
        rows.append({"factor": factor, **{arm: shares.get(arm, 0.0) for arm in COLORS}})
        rows[-1] |= {
            "best single arm": best.idxmax(),
            "tree - best arm (flattered)": tree.objective_value_ - best.max(),
        }
    table = pd.DataFrame(rows)
    study.table(table, "costs", digits=2, index=False)
    figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    bottom = np.zeros(len(table))
    for arm, color in COLORS.items():
        ax.bar(table["factor"], table[arm], bottom=bottom, color=color, label=arm, width=0.7)
        bottom += table[arm].to_numpy()
    costs = ", ".join(f"{arm} {cost:g}" for arm, cost in arm_costs().items())
    ax.set(xlabel=f"side effects, as a multiple of {costs} CD4 cells", ylabel="share of patients")
    ax.set_title("ACTG 175: arms given by the best tree of depth 2")
    ax.legend(ncols=4, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.22))
    study.figure(figure, "costs")


def show_seeds(study, data) -> None:
    """How far the tree depends on the draw of folds and learners."""
    study.heading("6. The same trial, other seeds of the nuisance models")
    n_seeds = 3 if study.quick else 8
    arms, rows = {}, []
    for repeats in (1,) if study.quick else (1, 5):
        for seed in range(n_seeds if repeats == 1 else 3):
            study.step(f"seed {seed}, nuisances cross-fitted {repeats} time(s)")
            rewards = RewardEstimator(n_repeats=repeats, random_state=seed).fit_predict(data)
            for depth in (2,) if study.quick else (2, 3):
                tree = PolicyTree(max_depth=depth, min_samples_per_treatment=SMALLEST, n_jobs=2)
                tree.fit(data.X, rewards, data.table["arm"], sample_treatment_costs=arm_costs())
                arms[repeats, depth, seed] = tree.predict(data.X)
                splits = sorted(tree.get_used_features())
                rows.append({"cross-fitted": repeats, "depth": depth, "seed": seed, "objective": tree.objective_value_,
                             "splits on": ", ".join(splits)})  # fmt: skip
    study.table(pd.DataFrame(rows), "seeds", index=False)
    study.show("Share of patients to whom two seeds give the same arm (mean and smallest over pairs of seeds):")
    agreement = []
    for repeats, depth in dict.fromkeys(key[:2] for key in arms):
        runs = [value for key, value in arms.items() if key[:2] == (repeats, depth)]
        same = [float(np.mean(a == b)) for a, b in combinations(runs, 2)]
        agreement.append({"cross-fitted": repeats, "depth": depth, "seeds": len(runs), "mean": np.mean(same),
                          "smallest": min(same)})  # fmt: skip
    study.table(pd.DataFrame(agreement), "seed_agreement", digits=2, index=False)


def main(study) -> None:
    """Run the study."""
    data = trial(study)
    study.show(f"ACTG 175: {data.n:,} patients, {len(data.covariates)} covariates to split on, 4 arms")
    study.step("nuisance models and rewards")
    rewards = RewardEstimator(random_state=0).fit_predict(data)
    show_arms(study, data, rewards)
    trees = show_trees(study, data, rewards)
    show_values(study, data)
    show_greedy_gap(study, data, rewards, trees)
    show_costs(study, data, rewards)
    show_seeds(study, data)
    show_priorities(study, data, arm_costs(), SMALLEST)
