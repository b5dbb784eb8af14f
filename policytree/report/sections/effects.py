"""Whether effects differ, whom to treat first, and what a budget buys."""

from __future__ import annotations

from typing import Any

import numpy as np

from policytree.evaluation.formatting import BOUNDS, NUMBER, Form, decimals, p_text, rows_text
from policytree.evaluation.heterogeneity.global_tests import HeterogeneityTest
from policytree.evaluation.targeting.budget_path import BudgetPath
from policytree.evaluation.targeting.qini import QiniCurve
from policytree.evaluation.targeting.rate import Ranking
from policytree.report.content import Block, Picture, Section, Table, Words
from policytree.report.material import Material

MOST_POINTS = 100  # of a curve
_MORE = "how much more those put first gain than the average person, averaged over all shares that might be treated"
AVERAGE = ["effect", "standard_error"]
SLOPE = ["slope", "slope_error", "slope_z", "slope_p_value", "slope_p_adjusted"]
HETEROGENEITY = "Do effects differ between people?"
NOT_TESTED = "Not tested here: pass the result of heterogeneity_test among the results."
NO_TEST = (
    "Not tested: the test is about treatments that were given, and people chose theirs. Whether the effects of offers "
    "differ can be tested by heterogeneity_test with the offers as treatments."
)
MEANING = {
    "AUTOC": f"AUTOC: {_MORE}; zero for an order that knows nothing.",
    "QINI": f"QINI: {_MORE}, larger shares with more weight; zero for an order that knows nothing.",
}


def heterogeneity_section(material: Material) -> Section:
    """The test of one and the same effect for everybody, and average effects."""
    test = material.only(HeterogeneityTest)
    if test is None:
        words = NO_TEST if material.study.by_offers else NOT_TESTED
        return Section("heterogeneity", HETEROGENEITY, (Words(words),))
    average: dict[str, Form] = {
        "effect of": "{treatment} - {baseline}", "average": "{effect:+,.{digits}f}",
        "std. error": "{standard_error:,.{digits}f}",
    }  # fmt: skip
    slope: dict[str, Form] = {
        "predicted effect of": "{treatment} - {baseline}", "slope": "{slope:.2f}", "std. error": "{slope_error:.2f}",
        "p (Holm)": lambda row: p_text(row["slope_p_adjusted"]),
    }  # fmt: skip
    told: dict[str, Any] = {"baseline": test.baseline, "digits": decimals(test.table["standard_error"])}
    caption = f"Average effects{material.of_whom}, by {_of_all(test.n, material)}"
    of_slopes = f"Slopes of observed effects on predicted ones, by {test.n:,} rows"
    tables = (
        Table.of(test.table[AVERAGE], average, caption, **told), Table.of(test.table[SLOPE], slope, of_slopes, **told)
    )  # fmt: skip
    study = material.study
    speaks, costs = ("above" if study.direction == "maximize" else "below"), _before_costs(material)
    words = (
        f"Average: {study.mean_outcome} under the first treatment less that under the second{costs}"
        f"{_of_target(material)}; {speaks} zero favours the first. Two tests, by {test.n:,} rows: of predicted "
        f"effects, each block by models of the blocks before it (p = {test.p_predicted:.2g}), and of effects that are "
        f"linear in the covariates (p = {test.p_linear:.2g}). Slope: how observed effects go with predicted ones, 1 if "
        "these are right in size and 0 if they carry no information; its p value tests it against 0, and says nothing "
        "about the average effect."
    )
    blocks: tuple[Block, ...] = (Words(str(test), "lead"), *tables, Words(words))
    return Section("heterogeneity", HETEROGENEITY, blocks)


def _of_target(material: Material) -> str:
    """Whom averages are over, and whom slopes and tests are about, where these are not the same people."""
    if not material.to_target:
        return ""
    return ", over the people of the target (tests and slopes are of the study's rows)"


def _of_all(n: int, material: Material) -> str:
    """The number of rows as text, and whether they are the whole study."""
    every = f"all {n:,} rows" if n == material.study.seen.n else f"{n:,} rows"
    return f"{every} of the study" if material.to_target else every


def _before_costs(material: Material) -> str:
    return ", before what treatments cost" if material.study.about.costs else ""


def ranking_section(material: Material) -> Section | None:
    """Priorities and budgets; None without such results."""
    blocks: list[Block] = []
    for ranking in material.of(Ranking):
        blocks += _ranking(ranking, material)
    for curve in material.of(QiniCurve):
        blocks += _curve(curve, material)
    for path in material.of(BudgetPath):
        blocks += _path(path)
    if blocks and (further := material.study.about.further.get("ranking")):
        blocks.append(Words(further, "note"))
    budgets = bool(material.of(QiniCurve)) or bool(material.of(BudgetPath))
    title = "Whom first, and what a budget buys" if budgets else "Whom first?"
    return Section("ranking", title, tuple(blocks)) if blocks else None


def _ranking(ranking: Ranking, material: Material) -> list[Block]:
    frame, level = ranking.to_frame(), next(iter(ranking.estimates.values())).level
    curves = [
        _line(part, "share", name if ranking.held_out else f"{name} ({ranking.rows})")
        for name, part in ranking.toc.groupby("priority", sort=False)
    ]
    judged = rows_text(ranking.average_gain.n, ranking.held_out)
    columns = {
        "priority": "{priority}", ranking.target: NUMBER,
        f"{100 * level:g}% interval": BOUNDS if ranking.held_out else ranking.rows,
    }  # fmt: skip
    table = Table.of(frame, columns, f"Priorities, by {judged}", digits=decimals(frame["standard_error"]))
    ylabel = f"gain over the average, {_measured(material)}"
    data = {"lines": curves, "xlabel": "share treated, by priority", "ylabel": ylabel}
    picture = Picture("curves", data, f"TOC curves. {ranking}")
    first, *others = _sentences(str(ranking))
    of_target = [Words("Gains are those of people of the target.", "note")] if material.to_target else []
    return [
        first,
        *of_target,
        *_beside_effects(ranking, material),
        *others,
        picture,
        table,
        Words(MEANING[ranking.target]),
    ]


def _beside_effects(ranking: Ranking, material: Material) -> list[Block]:
    """Why an average gain is not the average effect that the report has elsewhere, where rows or signs differ."""
    test, n, smaller = material.only(HeterogeneityTest), ranking.average_gain.n, ranking.direction == "minimize"
    if test is None:
        return []
    single = ranking.treatment in map(str, test.table.index)
    if test.n == n and single and not smaller:
        return []
    whose = f"everybody{material.of_whom}, by {_of_all(test.n, material)}{_before_costs(material)}"
    text = f"The average effects under “{HETEROGENEITY}” are of one treatment for {whose}."
    if test.n != n:
        text += f" Here {n:,} rows judge the order, so that averages differ by chance."
    if not single:
        text += " Here everybody has a treatment of their own."
    if smaller:
        study = material.study
        less = study.about.outcome if study.times is None else f"of the {study.mean_outcome}"
        text += f" A gain above zero is so much less {less}."
    return [Words(text, "note")]


def _curve(curve: QiniCurve, material: Material) -> list[Block]:
    lines, by_lot = [_line(curve.to_frame(), "budget", f"targeted ({curve.rows})")], ""
    if len(curve.untargeted.spend) > 1:
        lines.append(_line(curve.untargeted.to_frame(), "budget", f"without telling people apart ({curve.rows})"))
    else:
        by_lot = " Without telling people apart nothing is predicted to be worth its cost."
    ylabel = f"gain over {curve.baseline} for all, {_measured(material)}"
    data = {"lines": lines, "xlabel": "budget per person", "ylabel": ylabel}
    words = f"Targeted: those first who are predicted to gain most for the money. Budgets are per person.{by_lot}"
    return [*_sentences(str(curve)), Picture("curves", data, f"Gain of every budget. {curve}"), Words(words)]


def _measured(material: Material) -> str:
    """The unit of a gain."""
    return material.study.value_unit or material.study.about.outcome


def _path(path: BudgetPath) -> list[Block]:
    frame = path.to_frame().assign(tree=range(1, len(path.estimators) + 1))
    columns = {
        "tree": "{tree}", "spend per person": "{spend:,.5g}", "value (training rows)": "{value:,.5g}",
        "leaves": "{n_leaves}",
    }  # fmt: skip
    table = Table.of(frame, columns, "Best trees by budget")
    return [Words("The best trees for all budgets, on the rows that chose them."), table]


def _line(frame, x: str, label: str) -> dict:
    """A curve as data, thinned; intervals only where there are any."""
    kept = frame.iloc[np.unique(np.linspace(0, len(frame) - 1, min(MOST_POINTS, len(frame))).astype(int))]
    out = {"label": label, "x": kept[x].astype(float).tolist(), "y": kept["value"].astype(float).tolist()}
    if np.isfinite(kept["lower"]).any():
        out |= {end: [float(v) if np.isfinite(v) else None for v in kept[end]] for end in ("lower", "upper")}
    return out


def _sentences(text: str) -> list[Block]:
    return [Words(line) for line in text.splitlines()]
