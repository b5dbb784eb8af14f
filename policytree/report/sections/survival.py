"""Times to an event: curves by treatment and by leaf, restricted means, and who was censored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from policytree.evaluation.estimates import Estimate, mean_estimate
from policytree.evaluation.formatting import decimals, rows_text
from policytree.evaluation.leaves.honest import HonestLeaves
from policytree.evaluation.leaves.summary import HELD_OUT, TRAINING_ROWS
from policytree.plotting.survival import GroupCurve, curves_data, group_curves, risk_times, shown_until
from policytree.report.content import Block, Facts, Fold, Picture, Section, Table, Words
from policytree.report.described import Described
from policytree.report.material import Material, capitalised
from policytree.report.outline import outline, rules
from policytree.report.sections.missing import extreme_words
from policytree.weighting.completion import unadjusted
from policytree.weighting.time_to_event.outcome import INCIDENCE, RMST, SURVIVAL, YEARS_LOST, TimeToEvent

MOST_LEAVES = 12  # with a picture each: the largest
MEANING = {
    RMST: "Values are restricted means: the mean time without event up to the horizon, {until}, and so at most that.",
    SURVIVAL: "Values are shares of people without event up to the horizon, {until}; when one came does not count.",
    YEARS_LOST: "Values are the mean time lost to events of the cause: from such an event to the horizon, {until}, and "
    "none for everybody else.",
    INCIDENCE: "Values are shares of people with an event of the cause by the horizon, {until}; who has an event of "
    "another cause before cannot have it any more.",
}
ASSUMED = (
    "Curves and means as observed assume that censoring is unrelated to the event within each arm. Rewards, and so the "
    "values of rules, assume it only among people with the same covariates. No data can show either."
)
LATER = " Time after the horizon does not count."


def survival_section(material: Material) -> Section | None:
    """Curves, restricted means and censoring; None where outcomes are no times."""
    study = material.study
    if study.times is None:
        return None
    said = MEANING[study.times.target.name].format(until=study.times.until(study.about.unit)) + LATER
    blocks = (Words(said), _by_arm(study), *_arms(study), *_censoring(material), *_by_leaf(material))
    return Section("survival", "Time to event", blocks)


def _curves(study: Described, rows: np.ndarray) -> tuple[GroupCurve, ...]:
    """Curves of some rows, by treatment."""
    seen, times = study.seen, _times(study).rows(rows)
    weight, groups = (None if part is None else part[rows] for part in (seen.sample_weight, seen.groups))
    return group_curves(
        times, seen.arm[rows], seen.treatments.tolist(), min(shown_until(_times(study)), float(times.time.max())),
        risk_times(times.horizon), weight=weight, groups=groups,
    )  # fmt: skip


def _picture(study: Described, curves: Sequence[GroupCurve], about: str, caption: str, **options: Any) -> Picture:
    """Curves as a picture; ``options``: the treatment to stress, and whether there are intervals."""
    times, unit = _times(study), study.about.unit
    strong, intervals = options.get("strong"), options.get("intervals", True)
    data = curves_data(curves, risk_times(times.horizon), times.horizon, times.target.by_cause, intervals)
    places = {str(label): k for k, label in enumerate(study.seen.treatments)}
    for line in data["lines"]:
        line |= {"place": places[line["name"]], "strong": line["name"] == strong}
        line["name"] += " (recommended)" * line["strong"]
    data["xlabel"] = study.about.outcome if unit in ("", study.about.outcome) else f"{study.about.outcome}, {unit}"
    data["ylabel"] = "share with an event of the cause" if times.target.by_cause else "share without event"
    shown = "; ".join(f"{each.name} {_at_horizon(each, times.horizon, intervals)}" for each in curves)
    return Picture("survival", data, f"{about} {data['ylabel'].capitalize()} at the horizon: {shown}.", caption)


def _at_horizon(each: GroupCurve, horizon: float, intervals: bool) -> str:
    """A curve's share at the horizon, in words."""
    k = int(np.searchsorted(each.curve.time, horizon, side="right")) - 1
    low, high = each.curve.lower[k], each.curve.upper[k]
    interval = f" (95% interval {low:.1%} to {high:.1%})" if intervals and np.isfinite(low) else ""
    return f"{each.curve.share[k]:.1%}{interval}"


def _by_arm(study: Described) -> Picture:
    kind = "Cumulative incidences" if _times(study).target.by_cause else "Curves of Kaplan and Meier"
    caption = (
        f"{kind} by {study.about.treatment}, as observed in all {study.seen.n:,} rows, with pointwise 95% intervals. "
        "Number at risk: rows that are still followed and have had no event."
    )
    return _picture(study, _curves(study, np.arange(study.seen.n)), f"{kind} by {study.about.treatment}.", caption)


def _arms(study: Described) -> tuple[Block, ...]:
    """The mean of the target in every arm with its standard error; who had the event and who was censored."""
    times, seen = _times(study), study.seen
    early = times.time <= times.horizon
    counted = {"events": (times.code == 1) & early}
    if times.target.by_cause:
        counted = {"events of the cause": (times.code == 1) & early, "other events": (times.code == 2) & early}
    counted |= {"censored before": times.censored, "followed to it": times.free}
    own = [np.flatnonzero(seen.arm == k) for k in range(seen.n_arms)]
    means = [arm_mean(study, rows) for rows in own]
    by_arm = list(zip(map(str, seen.treatments), own, means, strict=True))
    found = [
        {"arm": label, "rows": len(rows), **{name: int(which[rows].sum()) for name, which in counted.items()},
         "mean": mean.value, "standard_error": mean.standard_error}
        for label, rows, mean in by_arm
    ]  # fmt: skip
    said = f"{capitalised(study.mean_outcome)} by arm, as observed, with its standard error:"
    caption = f"Up to the horizon, {times.until(study.about.unit)}"
    table = Table.of(found, {"arm": "{arm}"} | {name: f"{{{name}:,}}" for name in ("rows", *counted)}, caption)
    return Words(said), Facts(tuple((label, target_text(study, mean, means)) for label, _, mean in by_arm)), table


def arm_mean(study: Described, rows: np.ndarray) -> Estimate:
    """Mean of the target over rows of one arm, by their own curve."""
    part = study.observed.rows(rows)
    alone = unadjusted(replace(part, arm=np.zeros(part.n, dtype=np.int64), treatments=part.treatments[:1]))
    return mean_estimate(alone.y, groups=alone.groups, sample_weight=alone.sample_weight)


def target_text(
    study: Described, mean: Estimate, beside: Sequence[Estimate], unit: bool = True, error: bool = True
) -> str:
    """A mean of the target in words, such as "828 days of 1,000 (12)", with the decimals of those beside it."""
    times = _times(study)
    scale, named = (1.0, f" {times.value_unit(study.about.unit)}") if times.target.per_horizon else (100.0, "%")
    digits = decimals(scale * each.standard_error for each in beside)
    shown = f"{scale * mean.value:,.{digits}f}" + named * (unit or named == "%")
    # An error of zero is no certainty: it comes from rows that all had the event, or none of which had.
    known = error and 0.0 < mean.standard_error < np.inf
    return shown + (f" ({scale * mean.standard_error:,.{digits}f})" if known else "")


def _censoring(material: Material) -> list[Words]:
    """State the assumptions about censoring, and how many probabilities were raised."""
    rewards, blocks = material.rewards, [Words(ASSUMED, "note")]
    if rewards is None or rewards.horizon_ is None:
        return blocks
    n, raised, floor = len(rewards.rewards_), rewards.n_raised_, rewards.min_observed
    of = "" if n == material.study.seen.n else " that the tree was learnt from"
    below = f"an estimated probability of not being censored below {floor:g} (min_observed)"
    if raised:
        what = f"{raised:,} of the {n:,} rows{of} had {below} at the end of their follow-up, and were held there: "
        words = "they would weigh too much otherwise, and what they stand for rests on the model of events."
        blocks += [Words(what + words, "warning" if raised > 0.01 * n else "note")]
    else:
        blocks += [Words(f"None of the {n:,} rows{of} had {below}.", "note")]
    return [*blocks, *extreme_words(material)]


def _by_leaf(material: Material) -> list[Block]:
    """Within every leaf: the treatment that it recommends beside the others, as observed."""
    study, tree = material.study, material.tree
    honest = material.only(HonestLeaves)
    rows = material.learning if honest is None else honest.rows
    kind = TRAINING_ROWS if honest is None else HELD_OUT
    leaves = tree.apply(material.encoded)[rows]
    ids = np.flatnonzero(tree.is_leaf)
    if len(ids) < 2 or material.to_target:  # whose people are not all in the study
        return []
    # of the leaves from the top, the yes side first, as ids
    found = [each[:2] for each in rules(outline(tree, material.encoded, {}).root)]
    inside = {int(leaf): rows[leaves == leaf] for leaf in ids}
    table = _leaf_table(study, inside, dict(zip(inside, found, strict=True)), kind)
    largest = sorted(inside, key=lambda leaf: -len(inside[leaf]))[:MOST_LEAVES]
    pictures = []
    for (leaf, own), (rule, arm) in zip(inside.items(), found, strict=True):
        if leaf not in largest or not len(own):
            continue
        held_out = honest is not None
        about = f"Leaf {leaf}: {rule}. Recommended: {arm}. {rows_text(len(own), held_out)}, as observed."
        pictures.append(_picture(study, _curves(study, own), about, about, strong=arm, intervals=held_out))
    words = (
        f"By {len(rows):,} {_which(kind)}: {study.mean_outcome}{_in_unit(study)}"
        f"{', with standard errors,' if honest is not None else ''} of those in the leaf who got each treatment. As "
        "observed and unadjusted: they may differ in more than their treatment. "
    )
    words += (
        "The picture of every leaf has the treatment that it recommends in bold. Values of leaves, adjusted and "
        "with intervals for all leaves at once, stand under Policy tree."
        if honest is not None
        else "These rows chose the tree, which flatters its leaves, so that there are no errors and no intervals."
    )
    if len(largest) < len(inside):
        words += f" Pictures are of the {MOST_LEAVES} largest leaves."
    return [Fold(f"Curves within the leaves, by {_which(kind)}", (Words(words, "note"), table, *pictures))]


def _in_unit(study: Described) -> str:
    unit = _times(study).value_unit(study.about.unit)
    return f" ({unit})" if _times(study).target.per_horizon else ""


def _which(kind: str) -> str:
    return "held-out rows" if kind == HELD_OUT else "rows that chose the tree"


def _leaf_table(study: Described, inside: dict[int, np.ndarray], found: dict[int, tuple[str, str]], kind: str) -> Table:
    """The target's mean in every leaf, by treatment, as observed."""
    seen, cells, numbers = study.seen, [], []
    arms = [str(label) for label in seen.treatments]
    means: dict[tuple[int, int], Estimate] = {}
    for leaf, rows in inside.items():
        for k in range(seen.n_arms):
            own = rows[seen.arm[rows] == k]
            if len(own) and (seen.sample_weight is None or seen.sample_weight[own].any()):
                means[leaf, k] = arm_mean(study, own)
    every = list(means.values())
    for leaf, rows in inside.items():
        row = [str(leaf), found[leaf][1], f"{len(rows):,}"]
        for k in range(seen.n_arms):
            mean = means.get((leaf, k))
            row.append("-" if mean is None else target_text(study, mean, every, unit=False, error=kind == HELD_OUT))
        cells.append(tuple(row))
        values = {arms[k]: mean.value for (of, k), mean in means.items() if of == leaf}
        numbers.append({"leaf": leaf, "rows": len(rows), **values})
    columns = ("leaf", "recommended", "rows", *arms)
    error = " (std. error)" if kind == HELD_OUT else f" ({TRAINING_ROWS})"
    caption = f"By leaf and treatment received, as observed: {study.mean_outcome}{error}"
    return Table(columns, tuple(cells), caption, numbers=tuple(numbers))


def _times(study: Described) -> TimeToEvent:
    assert study.times is not None, "outcomes are times"
    return study.times
