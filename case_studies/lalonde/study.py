"""LaLonde's job training: label trees of the treatment-regime paper beside exact policy trees, and who really gains.

Public interface used: load_dataset, MatchingRewards, row_costs, OptimalTreeClassifier (solvers direct, duplication,
sampling; guessed thresholds), RewardEstimator, PolicyTree, DRPolicyTree, heterogeneity_test, cross_val_policy_value,
policy_value, leaf_summary, PolicyValueDisplay. The second half of the study is in
comparison.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from lalonde.comparison import forest_effects, read_surveys, show_surveys, show_who_gains
from lalonde.men import men_of
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from policytree import (
    DRPolicyTree,
    OptimalTreeClassifier,
    PolicyTree,
    RewardEstimator,
    cross_val_policy_value,
    heterogeneity_test,
    leaf_summary,
    load_dataset,
    policy_value,
)
from policytree.plotting.values import PolicyValueDisplay
from policytree.weighting import MatchingRewards, row_costs

# Behrouz, Lecuyer, Rudin & Seltzer (2022): labels by estimated effect on 1978 earnings, and what a wrong label costs.
GAINS, LOSES = 2_000.0, -5_000.0
COSTS = {0: lambda d: 200 + 3 * d["age"], 1: lambda d: 100 + 3 * d["age"], 2: 300}
DEPTHS = (2, 3, 4)
SOLVERS = {"direct": None, "duplication": {"factor": 100}, "sampling": None}
NEIGHBOURS = 10
SMALLEST = 20  # men of each arm in a leaf of a policy tree
LEAF_PRICE = 200.0  # dollars of mean earnings that a leaf must bring; not tuned
TRAIN = "training"
COLORS = {TRAIN: "#009E73", "control": "#BBBBBB", 2: "#009E73", 1: "#BBBBBB", 0: "#D55E00"}


@dataclass
class Sample:
    """One sample of the experiment.

    Attributes
    ----------
    everything : DataFrame
        All covariates: what the paper's trees split on.
    allowed : DataFrame
        Without race: what our policy trees split on. Race is for the nuisance models only (W).
    """

    name: str
    Y: pd.Series
    T: pd.Series
    everything: pd.DataFrame
    allowed: pd.DataFrame
    race: pd.DataFrame

    def rows(self, which) -> Sample:
        """Return the sample with these rows only."""
        parts = (self.Y, self.T, self.everything, self.allowed, self.race)
        return Sample(self.name, *(part.iloc[which] for part in parts))

    def rewards(self, seed: int) -> RewardEstimator:
        """Doubly robust scores, nuisances cross-fitted."""
        return RewardEstimator(random_state=seed).fit(self.Y, self.T, X=self.allowed, W=self.race)

    def matching(self, n_neighbors: int = NEIGHBOURS, estimate: str = "mean", seed: int = 0) -> MatchingRewards:
        """Potential outcomes by matching after learning to stretch."""
        matching = MatchingRewards(n_neighbors, estimate=estimate, random_state=seed)
        return matching.fit(self.Y, self.T, X=self.everything)


def load(study, name: str) -> Sample:
    """LaLonde's 722 men, or Dehejia and Wahba's 445 with earnings of 1974."""
    given = men_of("lalonde" if name == "722" else "nsw")
    everything = pd.concat([given["X"], given["W"]], axis=1)
    return Sample(name, given["Y"], given["T"], everything, given["X"], given["W"])


def effects(rewards: pd.DataFrame) -> np.ndarray:
    """Return training's effect on everybody's earnings, dollars."""
    return (rewards[TRAIN] - rewards["control"]).to_numpy()


def labels(effect: np.ndarray) -> np.ndarray:
    """The paper's labels: 2 gains, 1 neither, 0 loses."""
    return np.select([effect > GAINS, effect < LOSES], [2, 0], 1)


def weights(sample: Sample, label: np.ndarray) -> np.ndarray:
    """Return the cost of a wrong prediction for every man: by his label and age, scaled to 1 .. 100."""
    table = row_costs(sample.everything, COSTS, scale=(1, 100))
    return table.to_numpy()[np.arange(len(label)), label]


def label_trees(sample: Sample, label, weight, *, guessed: bool = True) -> dict:
    """Trees of every depth by every solver and CART, by (depth, solver, thresholds)."""
    trees = {}
    for depth in DEPTHS:
        for solver, options in SOLVERS.items():
            for guesses in (None, "thresholds") if guessed else (None,):
                tree = OptimalTreeClassifier(
                    depth, 0.0, solver=solver, solver_options=options, guesses=guesses, random_state=0
                )
                key = (depth, solver, "all" if guesses is None else "guessed")
                trees[key] = tree.fit(sample.everything, label, sample_weight=weight)
        cart = DecisionTreeClassifier(max_depth=depth, random_state=0)
        trees[depth, "CART", "all"] = cart.fit(sample.everything, label, sample_weight=weight)
    return trees


def policy_tree(sample: Sample, rewards: pd.DataFrame, depth: int, leaf_price: float = 0.0) -> PolicyTree:
    """The exact policy tree: no labels, no costs, no race; the rewards themselves."""
    tree = PolicyTree(max_depth=depth, min_samples_per_treatment=SMALLEST, regularization=leaf_price)
    return tree.fit(sample.allowed, rewards, sample.T)


def show_experiment(study, samples) -> None:
    """Raw difference in means: what everybody agrees on."""
    study.heading("1. The experiment: earnings in 1978, dollars")
    rows = []
    for sample in samples:
        trained, control = (sample.Y[sample.T.eq(arm)] for arm in (TRAIN, "control"))
        error = np.sqrt(trained.var() / len(trained) + control.var() / len(control))
        rows.append({"sample": sample.name, "trained": len(trained), "controls": len(control),
                     "mean trained": trained.mean(), "mean controls": control.mean(),
                     "difference": trained.mean() - control.mean(), "std. error": error})  # fmt: skip
    study.table(pd.DataFrame(rows), "experiment", digits=0, index=False)
    study.show("The paper counts 723 rows: the public file has that many lines, and the first is its header.\n")


def show_matching(study, samples) -> None:
    """Labels by matching, and how they depend on the number of matches and the estimate."""
    study.heading("2. Effects by matching, and the labels they give")
    study.show(
        f"Label 2: effect above {GAINS:,.0f} dollars; 0: below {LOSES:,.0f}; 1: between. A wrong label costs "
        "200 + 3 age\nfor men of label 0, 100 + 3 age for label 1, 300 for label 2, scaled linearly to 1 .. 100.\n"
    )
    rows = []
    for sample in samples:
        for n_neighbors in (5, 10, 20):
            for estimate in ("mean", "linear"):
                effect = effects(sample.matching(n_neighbors, estimate).rewards_)
                counts = np.bincount(labels(effect), minlength=3)
                rows.append({"sample": sample.name, "neighbours": n_neighbors, "estimate": estimate,
                             "mean effect": effect.mean(), "std. deviation": effect.std(),
                             "label 2": counts[2], "label 1": counts[1], "label 0": counts[0]})  # fmt: skip
    study.table(pd.DataFrame(rows), "labels", digits=0, index=False)
    stretch = samples[0].matching().stretch_.mean().to_frame("stretch").T
    study.show("Learnt stretch per standard deviation, mean over splits (722): what makes two men alike")
    study.table(stretch, "stretch", digits=2)


def show_seeds(study, sample: Sample) -> None:
    """The same matching with other draws of its splits: labels, and what the exact tree of depth 3 then says."""
    rows, first = [], None
    for seed in range(3 if study.quick else 6):
        label = labels(effects(sample.matching(seed=seed).rewards_))
        tree = OptimalTreeClassifier(3, 0.0).fit(sample.everything, label, sample_weight=weights(sample, label))
        predicted = tree.predict(sample.everything)
        first = (label, predicted) if first is None else first
        rows.append({"seed of matching": seed, "label 2": int(np.sum(label == 2)),
                     "same label as seed 0 %": 100 * np.mean(label == first[0]),
                     "root of the tree": tree.export_text().partition("?")[0],
                     "same tree decision %": 100 * np.mean((predicted == 2) == (first[1] == 2))})  # fmt: skip
    study.show(f"Other draws of the splits, {sample.name} men (exact label tree of depth 3):")
    study.table(pd.DataFrame(rows), "matching_seeds", digits=0, index=False)


def show_label_trees(study, sample: Sample) -> None:
    """The paper's trees on the whole sample: weighted error, size, and on what they agree."""
    study.heading(f"3. Label trees on the {sample.name} men: weighted error, per cent of all weight")
    label = labels(effects(sample.matching().rewards_))
    weight = weights(sample, label)
    study.step(f"label trees, {sample.name} men")
    trees = label_trees(sample, label, weight)
    rows = []
    for (depth, solver, thresholds), tree in trees.items():
        predicted = tree.predict(sample.everything)
        exact = trees[depth, "direct", "all"].predict(sample.everything)
        row = {"depth": depth, "solver": solver, "thresholds": thresholds}
        row["error %"] = 100 * np.average(predicted != label, weights=weight)
        row["proved bound %"] = np.nan if solver == "CART" else 100 * tree.objective_bound_
        row["leaves"] = tree.get_n_leaves()
        row["label as exact %"] = 100 * np.mean(predicted == exact)
        row["training as exact %"] = 100 * np.mean((predicted == 2) == (exact == 2))
        row["trained %"] = 100 * np.mean(predicted == 2)
        rows.append(row)
    study.table(pd.DataFrame(rows), f"label_trees_{sample.name}", index=False)
    kept = trees[3, "direct", "guessed"].guesses_.thresholds
    every = sum(column.nunique() - 1 for _, column in sample.everything.items())
    study.show(f"Thresholds: {every} in all, {sum(len(t) for t in kept)} guessed.")
    study.show(f"One label for all (label 2, the commonest by weight): error "
               f"{100 * np.average(label != 2, weights=weight):.1f} %.\n")  # fmt: skip
    for depth in (2, 3):
        tree = trees[depth, "direct", "all"]
        study.show(f"Exact label tree of depth {depth} ({tree.status_.name.lower()}, gap {tree.optimality_gap_:g}):")
        study.show(tree.export_text() + "\n")
        title = f"Label tree, depth {depth} ({sample.name} men): 2 gains, 1 neither, 0 loses"
        colors = {k: COLORS[k] for k in tree.classes_.tolist()}
        display = tree.plot(title=title, treatment_colors=colors, unit="men", value_name="share of weight")
        study.figure(display.figure_, f"label_tree_{depth}_{sample.name}")


def show_policy_trees(study, sample: Sample) -> None:
    """Exact policy trees on doubly robust rewards, race out of the rule."""
    study.heading(f"4. Exact policy trees on the {sample.name} men (doubly robust rewards, no race)")
    rewards = sample.rewards(0).rewards_
    rows = []
    for depth in (1, 2, 3):
        tree = policy_tree(sample, rewards, depth)
        arms = tree.predict(sample.allowed)
        gain = tree.objective_value_ - rewards.mean().max()
        rows.append({"depth": depth, "mean earnings (flattered)": tree.objective_value_,
                     "over the best arm for all (flattered)": gain, "leaves": tree.get_n_leaves(),
                     "trained %": 100 * np.mean(arms == TRAIN), "gap": tree.optimality_gap_})  # fmt: skip
        if depth == 2:
            study.show(tree.export_text() + "\n")
            summary = leaf_summary(tree.apply(sample.allowed), arms, rewards)
            title = f"Policy tree, depth 2 ({sample.name} men): 1978 earnings (training rows)"
            study.figure(tree.plot(leaf_summary=summary, title=title, unit="men",
                                   treatment_colors={k: COLORS[k] for k in (TRAIN, "control")}).figure_,
                         f"policy_tree_{sample.name}")  # fmt: skip
    study.table(pd.DataFrame(rows), f"policy_trees_{sample.name}", digits=0, index=False)


def held_out(study, sample: Sample):
    """Everything learnt without a fold, applied to the fold: rewards (n, 2), arms by rule, effects by estimator."""
    n_folds = 3 if study.quick else 10
    splits = StratifiedKFold(n_folds, shuffle=True, random_state=0).split(sample.everything, sample.T)
    pieces = []
    for fold, (train, test) in enumerate(splits, start=1):
        study.step(f"{sample.name} men, held out: fold {fold} of {n_folds}")
        pieces.append(one_fold(sample.rows(train), sample.rows(test), fold))
    order = np.argsort(np.concatenate([piece[0].index for piece in pieces]))
    frames = (pd.concat(parts, ignore_index=True) for parts in zip(*pieces, strict=True))
    return tuple(frame.iloc[order].reset_index(drop=True) for frame in frames)


def one_fold(seen: Sample, new: Sample, seed: int):
    """Learn from the seen men; scores, recommendations and effects for the new ones, as three frames."""
    estimator = seen.rewards(seed)
    rewards = estimator.predict_rewards(new.Y, new.T, X=new.allowed, W=new.race)
    matching = seen.matching()
    effect = {
        "matching": effects(matching.predict_outcomes(X=new.everything)),
        "causal forest": forest_effects(seen, new),
        "outcome models": effects(estimator.predict_outcomes(X=new.allowed, W=new.race)),
    }
    label = labels(effects(matching.rewards_))
    arms = {"always training": np.full(len(new.Y), TRAIN), "always control": np.full(len(new.Y), "control")}
    for depth in (1, 2, 3):
        arms[f"policy tree, depth {depth}"] = policy_tree(seen, estimator.rewards_, depth).predict(new.allowed)
    priced = policy_tree(seen, estimator.rewards_, 2, LEAF_PRICE)
    arms[f"policy tree, depth 2, a leaf costs {LEAF_PRICE:g}"] = priced.predict(new.allowed)
    for (depth, solver, thresholds), tree in label_trees(seen, label, weights(seen, label)).items():
        name = f"{solver}, depth {depth}" + (", guessed" if thresholds == "guessed" else "")
        arms[name] = np.where(tree.predict(new.everything) == 2, TRAIN, "control")
    for name, values in effect.items():
        arms[f"plug-in: {name}"] = np.where(values > 0.0, TRAIN, "control")
    return rewards, pd.DataFrame(arms, index=new.Y.index), pd.DataFrame(effect, index=new.Y.index)


def show_values(study, sample: Sample, rewards, arms) -> None:
    """Held-out earnings of every rule, and against training for all."""
    study.heading(f"5. Held-out earnings of the rules, {sample.name} men (dollars in 1978)")
    rows = {}
    for rule in arms:
        value = policy_value(arms[rule].to_numpy(), rewards)
        rows[rule] = {"value": value.value, "lower": value.lower, "upper": value.upper}
        if rule != "always training":
            difference = policy_value(arms[rule].to_numpy(), rewards, baseline=TRAIN)
            rows[rule] |= {"minus always training": difference.value, "diff. lower": difference.lower,
                           "diff. upper": difference.upper}  # fmt: skip
        rows[rule]["trained %"] = 100 * (arms[rule] == TRAIN).mean()
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("rule")
    study.table(table, f"held_out_values_{sample.name}", digits=0)
    deep = policy_value(arms["direct, depth 4"].to_numpy(), rewards, baseline=arms["direct, depth 2"].to_numpy())
    study.show(f"Exact label trees, depth 4 minus depth 2: {deep.value:,.0f} dollars a man "
               f"[{deep.lower:,.0f}, {deep.upper:,.0f}].\n")  # fmt: skip
    shown = table[~table.index.str.contains("guessed")].rename(
        columns={"minus always training": "difference", "diff. lower": "difference_lower",
                 "diff. upper": "difference_upper"})  # fmt: skip
    title = f"Held-out 1978 earnings, {sample.name} men"
    study.figure(
        PolicyValueDisplay(shown).plot(title=title, xlabel="dollars").figure_, f"held_out_values_{sample.name}"
    )


def show_tutorial(study) -> None:
    """Print what the tutorial's own lines give, on the 445 men that come with causaldata."""
    study.heading("8. The tutorial's own lines (445 men)")
    study.step("the tutorial's lines")
    men = load_dataset("nsw").study()
    model = DRPolicyTree(max_depth=2, min_samples_per_treatment=SMALLEST, random_state=0).fit(men)
    study.show(heterogeneity_test(men, random_state=0))
    study.show()
    study.show(model.export_text())
    study.show(f"{model.status_.name} {model.optimality_gap_:g}\n")
    folds = {"cv": 3, "n_repeats": 1} if study.quick else {"cv": 5}
    study.show(cross_val_policy_value(model, men, **folds, random_state=0))


def main(study) -> None:
    """Run the study."""
    samples, surveys = [load(study, name) for name in ("722", "445")], read_surveys(study)
    show_experiment(study, samples)
    study.step("matching with 5, 10, 20 neighbours")
    show_matching(study, samples)
    study.step("matching with other seeds")
    show_seeds(study, samples[0])
    asked = samples[:1] if study.quick else samples
    for sample in asked:
        show_label_trees(study, sample)
        show_policy_trees(study, sample)
    for sample in asked:
        rewards, arms, effect = held_out(study, sample)
        show_values(study, sample, rewards, arms)
        show_who_gains(study, sample, rewards, effect)
    show_surveys(study, surveys)
    show_tutorial(study)
