"""Threats to the answer: a hidden confounder, another sample, other trees with the same value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace

import numpy as np
import pandas as pd

from policytree.data.features import shown
from policytree.evaluation.formatting import Form, decimals, interval_text, of_column, records, share_columns
from policytree.evaluation.sensitivity.marginal import MarginalSensitivity
from policytree.evaluation.sensitivity.omitted_variables import OmittedVariableBounds
from policytree.evaluation.stability.rashomon_tables import NearTies
from policytree.evaluation.stability.resamples import splits_of
from policytree.evaluation.stability.tables import PolicyStability
from policytree.report.content import Block, Choices, Fold, Section, Table, Words
from policytree.report.material import Material
from policytree.report.outline import outline
from policytree.trees.labels import labelled
from policytree.trees.short_thresholds import readable
from policytree.trees.text import split_label

NOTHING_HIDDEN = (
    "Treatment was {drawn}, so that nothing hidden can have driven it: a hidden confounder is no concern, as long as "
    "the assignment was kept to"
)
BY_LOT, KNOWN = "drawn by lot", "assigned with known probabilities"

OFFERS = (
    "Why people take a treatment may depend on anything hidden: that is what the offers are for, and bounds on hidden "
    "confounding of treatments have no meaning here. {chance}The answer could be overturned if an offer bears on "
    "the outcome by another way than the treatment, see Offers and who takes them."
)
BY_COVARIATES = "Offers are taken to be as good as random given the covariates and confounders named above. "
COMPLETE = " and outcomes are not missing."
CENSORED = ". Hidden causes of censoring are another matter, see Time to event."
MISSING = ". Hidden causes of missing outcomes are another matter, see Missing outcomes."
ESTIMATED = (
    "Everything here assumes that, given the covariates and confounders named above, treatment was as good as random. "
    "No data can show that. How strong a hidden confounder would have to be was not computed: pass the results of "
    "marginal_sensitivity or omitted_variable_bounds."
)


MOST_CHOICES = 6  # near-ties that a page shows side by side


def sensitivity_section(material: Material) -> Section:
    """Bounds under hidden confounding, or why there are none."""
    blocks: list[Block] = []
    for marginal in material.of(MarginalSensitivity):
        blocks += _marginal(marginal)
    for omitted in material.of(OmittedVariableBounds):
        blocks += _omitted(omitted, material.study.about.called)
    if not blocks:
        blocks.append(Words(_without_bounds(material)))
    return Section("sensitivity", "Hidden confounding", tuple(blocks))


def _without_bounds(material: Material) -> str:
    """Why there are no bounds."""
    study = material.study
    if study.by_offers:
        return OFFERS.format(chance="" if material.known_propensity else BY_COVARIATES)
    rest = CENSORED if study.times is not None else COMPLETE if study.missing is None else MISSING
    if study.by_lot or material.known_propensity:
        return NOTHING_HIDDEN.format(drawn=BY_LOT if study.by_lot else KNOWN) + rest
    return ESTIMATED


def _marginal(result: MarginalSensitivity) -> list[Block]:
    meaning = (
        f"Bounds of {result.what} ({result.rows}). Gamma: given everything that matters, the odds of the treatment "
        "that a person got may differ from the estimated odds by up to this factor, either way."
    )
    texts = result.texts()
    columns = {name.replace("gamma", "Gamma"): of_column(name) for name in texts}
    table = Table.of(texts, columns, "Marginal sensitivity model")
    table = replace(table, numbers=tuple(records(result.to_frame())))
    return [*map(Words, result.statements()), table, Words(meaning)]


def _omitted(result: OmittedVariableBounds, called: Callable[[str], str]) -> list[Block]:
    digits = decimals([result.estimate.standard_error])
    estimate = f"{result.estimate.value:+,.{digits}f} {interval_text(result.estimate, digits)}"
    text = f"An omitted variable ({result.what}, {result.rows}): {estimate} if nothing is omitted"
    if result.robustness_value == result.robustness_value:
        text += f"; it may be zero once a variable explains {result.robustness_value:.1%} of both outcome and weights"
    if not result.benchmarks:
        return [Words(text + ".")]
    columns: dict[str, Form] = {
        "as strong as": lambda row: shown(called(row["name"])), "of the outcome": "{outcome_gain:.3f}",
        "of the weights": "{treatment_gain:.3f}", "the estimate moves by": "{change:+,.{digits}f}",
    }  # fmt: skip
    caption = "Covariates to compare an omitted variable with"
    return [Words(text + "."), Table.of(map(asdict, result.benchmarks), columns, caption, digits=digits)]


def stability_section(material: Material) -> Section | None:
    """Show splits that recur over resamples, and other trees that are as good; None without such results."""
    blocks: list[Block] = []
    stability, ties = material.only(PolicyStability), material.only(NearTies)
    if stability is not None:
        blocks += _stability(material, stability)
    if ties is not None:
        blocks += _near_ties(material, ties)
    if further := material.study.about.further.get("stability"):
        blocks.append(Words(further, "note"))
    return Section("stability", "Would the tree come again?", tuple(blocks)) if blocks else None


def _stability(material: Material, stability: PolicyStability) -> list[Block]:
    how = "bootstrap samples" if stability.method == "bootstrap" else f"samples of {stability.share:.0%} of the rows"
    blocks: list[Block] = [Words(f"The whole pipeline again on {stability.n_resamples} {how}.")]
    blocks += [Words(text) for text in stability.statements(unit="rows")]
    if stability.shown_splits:
        frame = stability.shown_split_shares()
        if stability.shown_splits == splits_of(material.model.tree_):
            tree = material.tree  # as the page shows it elsewhere
            frame["split"] = [split_label(tree, int(node), missing=False) for node in np.flatnonzero(~tree.is_leaf)]
        blocks.append(Table.of(frame, share_columns(frame), "How often the splits of this tree recur"))
    features = stability.feature_shares()[["anywhere"]]
    features = _called(features[features["anywhere"] > 0], material)
    if len(features):
        table = Table.of(features, {"covariate": "{covariate}", "of the trees": "{anywhere:.0%}"}, "Covariates")
        blocks.append(Fold("Covariates that trees ask about", (table,)))
    return blocks


def _called(frame: pd.DataFrame, material: Material) -> pd.DataFrame:
    """The frame with what columns are called as its index."""
    names = [shown(material.study.about.called(name)) for name in frame.index]
    return frame.set_axis(pd.Index(names, name="covariate"))


def _near_ties(material: Material, ties: NearTies) -> list[Block]:
    blocks: list[Block] = [Words(text) for text in ties.statements(unit="rows")]
    frame = ties.variables()
    frame = _called(frame[frame["trees"] > 0], material)
    columns = {
        "covariate": "{covariate}", "of the trees": "{trees:.0%}", "of the decisions need it": "{decisions:.0%}"
    }  # fmt: skip
    if len(frame):
        blocks.append(Table.of(frame, columns, "Covariates that near-ties ask about"))
    return [*blocks, _choices(material, ties)]


def _choices(material: Material, ties: NearTies) -> Choices:
    """Near-ties side by side: the best ones that decide differently, and the simplest."""
    found = ties.decisions().head(MOST_CHOICES)
    trees = [(f"near-tie {k}" if k else "the best", ties.trees[int(at)]) for k, at in enumerate(found["tree"])]
    trees.append(("the simplest", ties.simplest))
    first, cells, outlines = None, [], []
    rows, rewards = material.encoded[material.learning], getattr(material.model, "rewards_", None)
    for name, tree in trees:
        given = tree.action[tree.apply(rows)]
        first = given if first is None else first
        tree = labelled(readable(tree, material.encoded), material.study.about.labels)
        value = "-"
        if rewards is not None and len(rewards) == len(rows):
            brings = np.asarray(rewards, dtype=float)[np.arange(len(rows)), given]
            weight = material.study.seen.sample_weight
            weight = None if weight is None else weight[material.learning]
            value = f"{np.average(brings, weights=weight):,.5g}"
        asks = ", ".join(shown(tree.features[j].name) for j in tree.used_features) or "nothing"
        cells.append((name, str(tree.n_leaves), asks, value, f"{np.mean(given != first):.0%}"))
        outlines.append(outline(tree, material.encoded, {}, form=False))
    columns = ("tree", "leaves", "asks about", "value, chosen on these rows", "people treated otherwise")
    return Choices(
        Table(columns, tuple(cells), "Near-ties side by side; the best one allows for the price of leaves"),
        tuple(outlines),
    )
