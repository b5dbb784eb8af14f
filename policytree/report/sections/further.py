"""Further outcomes and their limits, the value of the tree by group of people, and what limits cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from policytree.constraints.amounts import Limit
from policytree.constraints.checks import asked, is_limited
from policytree.constraints.people import MAXIMIZE
from policytree.evaluation.estimates import Estimate
from policytree.evaluation.formatting import BOUNDS, NUMBER, Columns, decimals, of_column, size_text
from policytree.evaluation.policy_value.further import (
    WITHOUT_LIMITS,
    GroupGap,
    gap_statement,
    gaps_by_limit,
    group_columns,
    limit_statement,
    several_outcomes,
)
from policytree.evaluation.policy_value.rule_names import POLICY
from policytree.evaluation.policy_value.tables import PolicyValueTable
from policytree.evaluation.targeting.pareto_path import ParetoPath
from policytree.plotting.pareto import ParetoPathDisplay, front_in_words, points_of
from policytree.report.content import Block, Fold, Picture, Section, Table, Words
from policytree.report.material import Material

FLATTERED = (
    "A tree keeps to its limits on the rows that chose it, and such rows flatter the tree in this as in its value. A "
    "stricter limit leaves room for that."
)
MOST_POINTS = 80  # of a front, beside its corners
BY_GROUP = (
    "Value: the mean outcome of the group if everybody in it follows the rule. The intervals of all groups hold at "
    "once (Bonferroni): whether two groups differ cannot be read from whether their intervals overlap."
)


def further_outcomes_section(material: Material) -> Section | None:
    """Further outcomes under every rule, whether limits are kept, and what limits cost; None where none was named."""
    values = material.only(PolicyValueTable)
    price = [*_price(material, values), *_path(material)]
    if values is None or not values.further:
        title = "Cost of the limits" if is_limited(material.model) else "Cost of possible limits"
        return Section("further", title, tuple(price)) if price else None
    return further_section(values.further, values.limits, price)


def further_section(
    further: Mapping[str, Mapping[str, Estimate]], limits: Mapping[str, Limit], price: Sequence[Block] = ()
) -> Section | None:
    """Held-out means of further outcomes under every rule; None if there are no such outcomes."""
    if not further:
        return None
    blocks: list[Block] = []
    for name, limit in limits.items():
        found = further[name][POLICY]
        blocks.append(Words(limit_statement(name, limit, found), "plain" if limit.kept_by(found.value) else "warning"))
    if any(not limit.kept_by(further[name][POLICY].value) for name, limit in limits.items()):
        blocks.append(Words(FLATTERED))
    blocks += price
    blocks += [_outcome(name, rules, limits.get(name)) for name, rules in further.items()]
    blocks.append(Words(several_outcomes(len(further))))
    return Section("further", "Other outcomes", tuple(blocks))


def _outcome(name: str, rules: Mapping[str, Estimate], limit: Limit | None) -> Table:
    """The means of one outcome under every rule."""
    columns = {"rule": "{rule}", f"mean {name}": NUMBER, f"{100 * rules[POLICY].level:g}% interval": BOUNDS}
    asked = "" if limit is None else f", limit {limit.bound}"
    return Table.of(
        ({"rule": rule} | e.numbers for rule, e in rules.items()), columns,
        f"{name} under every rule, held out{asked}; by {size_text(rules[POLICY])}",
        strong=(list(rules).index(POLICY),), digits=decimals(e.standard_error for e in rules.values()),
    )  # fmt: skip


def by_group_section(material: Material) -> Section | None:
    """Value of the tree by group of people, held out; None where no groups were named."""
    values = material.only(PolicyValueTable)
    if values is None or values.group_values is None:
        return None
    return groups_section(values.group_values, values.gaps, values.estimates[POLICY].level)


def groups_section(frame: pd.DataFrame, gaps: Sequence[GroupGap], level: float) -> Section:
    """Value of the tree, and who gets what, by group; and whether limits on differences are kept."""
    blocks: list[Block] = []
    for found in gaps_by_limit(gaps):
        kept = all(abs(gap.estimate.value) <= gap.limit for gap in found)
        blocks.append(Words(gap_statement(found), "plain" if kept else "warning"))
    columns = {"group": "{column} = {group}"} | group_columns(frame, level)
    caption = "Value of the tree by group, held out; all intervals hold at once"
    blocks += [Table.of(frame, columns, caption, digits=decimals(frame["standard_error"])), Words(BY_GROUP)]
    return Section("groups", "By group of people", tuple(blocks))


def _price(material: Material, values: PolicyValueTable | None) -> list[Block]:
    """State the cost of limits on outcomes and groups, in the outcome's unit: on the rows of the fit, and held out."""
    model = material.model
    if not is_limited(model):
        return []
    said = []
    price, unit = getattr(model, "price_of_limits_", None), material.study.value_unit
    of = f" ({unit})" if unit else ""
    if price is not None:
        proved = "proved" if model.status_.proved else "not proved: a better tree within the limits may exist"
        said.append(
            f"On the {len(material.learning):,} rows that chose the tree, the limits cost {price:,.4g} of the "
            f"{material.study.value}{of}, against the best tree without them ({proved})."
        )
    if values is not None and WITHOUT_LIMITS in values.differences:
        lost = values.differences[WITHOUT_LIMITS]
        digits, sign = decimals([lost.standard_error]), -1.0 if material.study.direction == "maximize" else 1.0
        ends = sorted((sign * lost.lower, sign * lost.upper))
        said.append(
            f"Held out they cost {sign * lost.value:,.{digits}f}{of}, {100 * lost.level:g}% interval "
            f"[{ends[0]:,.{digits}f}, {ends[1]:,.{digits}f}]: the value of the {WITHOUT_LIMITS}, learnt from the same "
            "rows, less that of this one."
        )
    if beside := material.study.about.further.get("further"):
        said.append(beside)
    return [Words(" ".join(said))] if said else []


def _path(material: Material) -> list[Block]:
    """All trees that no other is as good as in both outcomes: what other limits would cost."""
    path = material.only(ParetoPath)
    if path is None:
        return []
    more = path.outcome_direction == MAXIMIZE
    limits = [each.settled(more) for each in asked(material.model) if isinstance(each, Limit)]
    kept = [each.value for each in limits if each.outcome == path.outcome and each.kept_by(path.outcome_means[0])]
    chosen = path.within(kept[0]) if kept else None
    corners = np.flatnonzero(np.isfinite(path.low)).tolist()
    evenly = np.linspace(0, len(path) - 1, min(MOST_POINTS, len(path))).round().astype(int).tolist()
    shown = sorted({*corners, *evenly, *([] if chosen is None else [chosen])})
    study, less = material.study, "more" if more else "less"
    data = points_of(path, shown, chosen) | {
        "numbered": [] if chosen is None else [chosen],
        "xlabel": f"mean {path.outcome} ({less} is better)",
        "ylabel": f"{study.value}{f', {study.value_unit}' if study.value_unit else ''}",
        "titles": ParetoPathDisplay(path, chosen=chosen).titles(shown),
    }
    of = "every tree" if path.every else "the trees that are best at some weight, of those"
    depth = material.model.max_depth_
    caption = (
        f"Which limits cost what: {of} of depth {depth} or less that no other is as good as in both, on the rows that "
        f"chose them{'' if path.proved else ' (not proved: some may be lacking)'}. Point at one to see its rule."
        + ("" if len(shown) == len(path) else f" {len(shown)} of {len(path)} are drawn.")
    )
    digits = [decimals(np.abs(np.diff(each[corners]))) for each in (path.outcome_means, path.values)]
    columns: Columns = [
        (f"mean {path.outcome}", of_column(path.outcome, f",.{digits[0]}f")),
        (study.value, f"{{value:,.{digits[1]}f}}"), (f"a unit of {path.outcome} buys", "{low:,.3g}"),
    ]  # fmt: skip
    table = Table.of(
        path.to_frame()[[path.outcome, "value", "low"]].iloc[corners], columns, "Both outcomes under each tree",
        strong=tuple(i for i, k in enumerate(corners) if k == chosen),
    )  # fmt: skip
    return [
        Picture("pareto", data, front_in_words(path), caption),
        Fold("Trees that are best at some weight, on the rows that chose them", (table,)),
    ]
