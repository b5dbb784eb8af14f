"""Second half of the Lalonde study: do estimators agree on who gains, and what survey controls do to the answer.

Public interface used: cate_effects, RewardEstimator (estimand), overlap_table, crump_trimming,
balance_table, PolicyTree, policy_value.
"""

from __future__ import annotations

import warnings
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from econml.dml import CausalForestDML
from lalonde.men import men_of
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from policytree import PolicyTree, RewardEstimator, policy_value
from policytree.diagnostics import balance_table, crump_trimming, overlap_table
from policytree.exceptions import BalanceWarning, OverlapWarning
from policytree.weighting import cate_effects

SURVEYS = {"lalonde": "experiment", "lalonde-psid": "PSID", "lalonde-cps": "CPS"}
TRAIN = "training"
FLOOR = 0.01  # of estimated propensities, the library's default


def forest_effects(seen, new) -> np.ndarray:
    """Effects for new men by EconML's causal forest, fitted to the seen ones."""
    forest = CausalForestDML(
        model_y=RandomForestRegressor(200, min_samples_leaf=10, random_state=0),
        model_t=RandomForestClassifier(200, min_samples_leaf=10, random_state=0),
        discrete_treatment=True, n_estimators=400, min_samples_leaf=10, random_state=0, n_jobs=2, inference=False,
    )  # fmt: skip
    forest.fit(seen.Y.to_numpy(), seen.T.to_numpy(), X=seen.everything)
    return cate_effects(forest, new.everything).effects[TRAIN].to_numpy()


def show_who_gains(study, sample, rewards, effect) -> None:
    """Agreement of held-out effects between estimators, and each estimator's thirds judged by doubly robust scores."""
    study.heading(f"6. Who gains? Held-out effects by three estimators, {sample.name} men")
    rows = []
    for a, b in combinations(effect, 2):
        gains = effect[[a, b]] > 2_000.0
        lower, upper = resampled_correlation(effect[a], effect[b])
        rows.append({"estimators": f"{a} / {b}", "rank correlation": effect[a].corr(effect[b], method="spearman"),
                     "lower": lower, "upper": upper,
                     "same sign": np.mean((effect[a] > 0) == (effect[b] > 0)), "label 2 by the first": gains[a].mean(),
                     "by the second": gains[b].mean(), "by both": gains.all(axis=1).mean(),
                     "by both if independent": gains[a].mean() * gains[b].mean()})  # fmt: skip
    study.table(pd.DataFrame(rows), f"agreement_{sample.name}", digits=2, index=False)
    study.show("Doubly robust effect (dollars) in the thirds of each estimator's effects, and top minus bottom third:")
    study.table(thirds(rewards, effect), f"thirds_{sample.name}", digits=0, index=False)
    scores = (rewards[TRAIN] - rewards["control"]).to_numpy()
    said = []
    for name in effect:
        lower, upper = resampled_correlation(pd.Series(scores), effect[name])
        rank = pd.Series(scores).corr(effect[name], method="spearman")
        said.append(f"{name} {rank:.2f} [{lower:.2f}, {upper:.2f}]")
    study.show("Rank correlation with one man's own doubly robust score (mostly noise): " + ", ".join(said))
    draw_agreement(study, sample, effect)


def resampled_correlation(a: pd.Series, b: pd.Series, n_draws: int = 1_000) -> np.ndarray:
    """95 % percentile interval of a rank correlation, men drawn with replacement; the estimators are not refitted."""
    rng = np.random.default_rng(0)
    ranks = np.column_stack([a.rank(), b.rank()])
    draws = [np.corrcoef(ranks[rng.integers(len(ranks), size=len(ranks))].T)[0, 1] for _ in range(n_draws)]
    return np.quantile(draws, [0.025, 0.975])


def thirds(rewards, effect) -> pd.DataFrame:
    """Doubly robust effect in the thirds of every estimator's effects."""
    rows = []
    for name in effect:
        third = pd.qcut(effect[name].rank(method="first"), 3, labels=False).to_numpy()
        row = {"estimator": name}
        parts = {}
        for k, label in enumerate(("bottom", "middle", "top")):
            here = third == k
            parts[k] = policy_value(TRAIN, rewards[here], baseline="control")
            row |= {label: parts[k].value, f"{label} SE": parts[k].standard_error}
        row["top - bottom"] = parts[2].value - parts[0].value
        row["its SE"] = float(np.hypot(parts[2].standard_error, parts[0].standard_error))
        rows.append(row)
    return pd.DataFrame(rows)


def draw_agreement(study, sample, effect) -> None:
    """Scatter of held-out effects, pair by pair."""
    pairs = list(combinations(effect, 2))
    figure, axes = plt.subplots(1, len(pairs), figsize=(9.6, 3.4), layout="constrained")
    for ax, (a, b) in zip(axes, pairs, strict=True):
        ax.scatter(effect[a] / 1000, effect[b] / 1000, s=7, color="#0072B2", alpha=0.5, linewidth=0)
        ax.axhline(2, color="#D55E00", linewidth=0.8, linestyle="--")
        ax.axvline(2, color="#D55E00", linewidth=0.8, linestyle="--")
        ax.set(xlabel=f"{a}, 1000 dollars", ylabel=f"{b}, 1000 dollars")
        ax.set_title(f"rank correlation {effect[a].corr(effect[b], method='spearman'):.2f}", fontsize=10)
    figure.suptitle(f"Held-out effects of training, {sample.name} men (dashed: label 2 begins)", fontsize=11)
    study.figure(figure, f"agreement_{sample.name}")


def read_surveys(study) -> dict[str, dict]:
    """The trained men with the controls of each survey, by its name; a missing file is told before any work."""
    labels = {label: name for name, label in SURVEYS.items() if not (study.quick and label == "CPS")}
    return {label: men_of(name, None if name == "lalonde" else study.data_dir) for label, name in labels.items()}


def show_surveys(study, surveys: dict[str, dict]) -> None:
    """The same trained men with other controls: propensity, overlap, trimming, effect and tree."""
    study.heading("7. Controls from a survey instead of the experiment (297 trained men in each)")
    judge = men_of("lalonde")
    judged = RewardEstimator(random_state=0).fit_predict(**judge)
    rows, said = [], []
    for label, data in surveys.items():
        study.step(f"controls from: {label}")
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always", OverlapWarning)
            warnings.simplefilter("always", BalanceWarning)
            rows += survey_rows(study, label, data, judge, judged)
        said += [f"{label}: {type(w.message).__name__}: {w.message}" for w in heard[:2] if label != "experiment"]
    study.table(pd.DataFrame(rows).set_index(["controls", "rows"]).T, "surveys", digits=2)
    study.show("What the library said on the way (first two each):")
    for sentence in said:
        study.show(f"- {sentence}")


def survey_rows(study, label: str, data: dict, judge: dict, judged: pd.DataFrame) -> list[dict]:
    """One row for all men, one for those that trimming keeps."""
    unclipped = RewardEstimator(min_propensity=0.0, random_state=0).fit(**data)
    trimming = crump_trimming(unclipped.propensity_, data["T"])
    if label != "experiment":
        display = unclipped.plot_overlap(data["T"])
        display.figure_.suptitle(f"297 trained men and controls from {label}", fontsize=10)
        study.figure(display.figure_, f"overlap_{label}")
    everybody = np.ones(len(data["T"]), dtype=bool)
    kinds = {"all": everybody} if trimming.keep.all() else {"all": everybody, "trimmed": trimming.keep}
    return [survey_row(label, kind, keep, data, judge, judged) for kind, keep in kinds.items()]


def survey_row(label: str, kind: str, keep: np.ndarray, data: dict, judge: dict, judged: pd.DataFrame) -> dict:
    """Overlap, balance, effects and tree on the kept men."""
    here = {key: None if part is None else part[keep] for key, part in data.items()}
    estimator = RewardEstimator(random_state=0).fit(**here)
    rewards, T = estimator.rewards_, here["T"]
    overlap = overlap_table(estimator.propensity_, T)
    covariates = pd.concat([here["X"], here["W"]], axis=1)
    balance = balance_table(T, X=covariates, propensity=estimator.propensity_)
    means = here["Y"].groupby(T).mean()
    effects = {"all": policy_value(TRAIN, rewards, baseline="control")}
    for estimand, treated in (("treated", TRAIN), ("overlap", None)):
        other = RewardEstimator(estimand=estimand, treated=treated, random_state=0).fit(**here)
        effects[estimand] = policy_value(TRAIN, other.rewards_, baseline="control", population=other.population_)
    # Not an effect on anybody: scores with floored propensities, weighed by the floored propensities.
    weight = estimator.propensity_[TRAIN]
    wrong = policy_value(TRAIN, rewards, baseline="control", sample_weight=weight)
    tree = PolicyTree(max_depth=2, min_samples_leaf=40).fit(here["X"], rewards)
    sent = tree.predict(judge["X"])
    own = label == "experiment"  # its tree would be judged on the rows that chose it
    worth = None if own else policy_value(sent, judged, baseline=TRAIN)
    return {
        "controls": label,
        "rows": kind,
        "trained": int((T == TRAIN).sum()),
        "control": int((T != TRAIN).sum()),
        "effective controls": overlap.loc["control", "effective_rows"],
        "effective trained": overlap.loc[TRAIN, "effective_rows"],
        "share at propensity floor": overlap["share_at_floor"].max(),
        "largest difference before (SD)": balance["difference_before"].abs().max(),
        "largest difference after (SD)": balance["difference_after"].abs().max(),
        "raw difference ($)": means[TRAIN] - means["control"],
        **with_interval("effect on all ($)", effects["all"]),
        **with_interval("effect on the trained ($)", effects["treated"]),
        **with_interval("effect in the overlap ($)", effects["overlap"]),
        **with_interval("NO effect: floored scores by floored weights ($)", wrong),
        "share of that weight at the floor": weight[weight <= FLOOR].sum() / weight.sum(),
        "tree sends to training, of the 722": float(np.mean(sent == TRAIN)),
        "tree's value in the experiment ($)": np.nan if own else policy_value(sent, judged).value,
        **with_interval("minus training for all ($)", worth),
    }


def with_interval(name: str, estimate) -> dict:
    """Value, standard error and the ends of the 95 % interval; missing for None."""
    parts = ("value", "standard_error", "lower", "upper")
    names = (name, f"{name}: SE", f"{name}: lower", f"{name}: upper")
    return {
        key: np.nan if estimate is None else getattr(estimate, part) for key, part in zip(names, parts, strict=True)
    }
