"""What `policytree design` prints: the data, the tree, its certificate, its value; and the same as plain text."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from policytree.binning import bin_matrix
from policytree.cli.records import Result
from policytree.cli.study import Study
from policytree.evaluation import POLICY, HonestLeaves, PolicyValueTable, mean_estimate
from policytree.evaluation.numbers import decimals, interval_text
from policytree.evaluation.tables import OPTIMISM
from policytree.types import Status

TEXT_WIDTH = 96  # columns of report.txt
INDENT = (0, 0, 0, 2)


class Printer:
    """Prints sections as they come, and keeps them for the report file."""

    def __init__(self, console: Console):
        self._console = console
        self._parts: list[RenderableType] = []

    def add(self, *parts: RenderableType) -> None:
        """Print and keep."""
        for part in parts:
            self._console.print(part)
        self._parts += parts

    def text(self, *more: RenderableType) -> str:
        """Everything so far, and more, as plain text."""
        plain = io.StringIO()
        console = Console(file=plain, width=TEXT_WIDTH, color_system=None, highlight=False)
        for part in (*self._parts, *more):
            console.print(part)
        return "\n".join(line.rstrip() for line in plain.getvalue().splitlines()) + "\n"


def number(value: float, digits: int = 5) -> str:
    """A number with so many significant digits, thousands separated; powers of ten only for extreme sizes."""
    if value == 0 or not np.isfinite(value):
        return f"{value:g}"
    size = int(np.floor(np.log10(abs(value))))
    if not -5 <= size < 9:
        return f"{value:.{digits}g}"
    return f"{value:,.{max(0, digits - 1 - size)}f}"


def merge_warnings(heard: list[warnings.WarningMessage], into: dict[str, str], where: str = "") -> None:
    """Add one sentence per kind of warning; repetitions are counted, not repeated."""
    kinds: dict[str, list[str]] = {}
    for warning in heard:
        kinds.setdefault(warning.category.__name__, []).append(" ".join(str(warning.message).split()))
    for kind, messages in kinds.items():
        times = f", {len(messages)} times" if len(messages) > 1 else ""
        likewise = f" (Likewise {where}{times}.)" if where else ""
        if kind in into:
            into[kind] += likewise
        else:
            into[kind] = messages[0] + likewise


def data_section(study: Study) -> list[RenderableType]:
    """What the data are, before the long computation."""
    seen = study.observed
    rows = f"{seen.n:,}"
    if seen.groups is not None:
        rows += f" in {seen.groups.max() + 1:,} clusters ({study.cluster})"
    better = "higher" if study.direction == "maximize" else "lower"
    unit = f", {study.unit}" if study.unit else ""
    facts = {
        "data": study.source,
        "rows": rows,
        "outcome": f"{study.outcome}{unit}; {better} is better",
        "treatment": f"{study.treatment}, {seen.n_arms} treatments",
        "covariates": ", ".join(study.covariates),
    }
    if study.confounders:
        facts["confounders"] = f"{', '.join(study.confounders)} (adjusted for; the tree does not see them)"
    if study.strata:
        facts["strata"] = f"{', '.join(study.strata)} (folds are balanced over them)"
    if study.weights:
        facts["weights"] = study.weights
    facts["propensity"] = study.propensity_text
    parts: list[RenderableType] = [_heading("Data"), _facts(facts), Text(), _arms(study)]
    return [*parts, *(_note(note) for note in study.notes)]


def _arms(study: Study) -> RenderableType:
    """Rows and mean outcome of every arm as observed."""
    seen = study.observed
    estimates = []
    for k in range(seen.n_arms):
        rows = np.flatnonzero(seen.arm == k)
        part = (None if values is None else values[rows] for values in (seen.groups, seen.sample_weight))
        groups, weight = part
        estimates.append(mean_estimate(seen.y[rows], groups=groups, sample_weight=weight))
    digits = decimals([e.standard_error for e in estimates])
    table = _table("arm", "rows", "share", f"mean {study.outcome}", "std. error")
    for label, count, estimate in zip(seen.treatments, np.bincount(seen.arm), estimates, strict=True):
        table.add_row(
            str(label), f"{count:,}", f"{count / seen.n:.1%}", f"{estimate.value:,.{digits}f}",
            f"{estimate.standard_error:,.{digits}f}",
        )  # fmt: skip
    return Padding(table, INDENT, expand=False)


def result_sections(result: Result) -> list[RenderableType]:
    """Verdict, tree, certificate, leaves, value and warnings."""
    tree = Text(result.estimator.export_text(), no_wrap=True, overflow="fold")
    parts = [
        Text(), _heading("Verdict"), Padding(Text(verdict_text(result)), INDENT, expand=False),
        Text(), _heading("Policy tree"), Padding(tree, INDENT, expand=False),
        Text(), _heading("Certificate"), _facts(certificate(result)),
        *(leaf_section(result.honest) if result.honest is not None else ()),
        Text(), _heading("Value, held out"), _values(result), *_optimism(result),
    ]  # fmt: skip
    if result.warnings:
        parts += [
            Text(),
            _heading("Warnings"),
            *(Padding(Text(text), INDENT, expand=False) for text in result.warnings),
        ]
    return parts


def verdict_text(result: Result) -> str:
    """Which rule to use, or that nobody knows."""
    if result.values is None:
        return "None: without held-out values (--no-value) nobody knows whether this tree is worth using."
    return str(result.values.verdict)


def leaf_section(honest: HonestLeaves) -> list[RenderableType]:
    """Every leaf's treatment, judged by the rows that did not choose the tree."""
    leaves = honest.leaves
    digits = decimals(leaves["gain", "standard_error"])
    table = _table(
        "leaf", "treatment", "rows", "value", "gain over best other", f"{100 * honest.value.level:g}% interval"
    )
    for leaf, row in leaves.iterrows():
        gain, arm = row["gain_over_best"], row["arm", ""]
        table.add_row(
            str(leaf), str(arm), f"{row['n', '']:,}", f"{row['value', arm]:,.{digits}f}",
            f"{gain['value']:+,.{digits}f}", f"[{gain['lower']:,.{digits}f}, {gain['upper']:,.{digits}f}]",
        )  # fmt: skip
    words = (
        f"By {honest.value.n:,} rows that did not choose the tree; the intervals hold for all leaves at once. Leaves "
        "are numbered as in leaves.csv: from the top, the yes side first."
    )
    few = [f"leaf {leaf} has {text}" for leaf, text in leaves["warning", ""].items() if text]
    if few:
        words += f" Where an arm has few rows the outcome model decides: {'; '.join(few)}."
    parts: list[RenderableType] = [Text(), _heading("Leaves, held out"), Padding(table, INDENT, expand=False), Text()]
    return [*parts, Padding(Text(words), INDENT, expand=False)]


def certificate(result: Result) -> dict[str, str]:
    """What the search proved, in words."""
    study, estimator = result.study, result.estimator
    tree = estimator.policy_tree_
    data = bin_matrix(tree.encoder_.encode(study.X), tree.encoder_.features, max_bins=tree.max_bins)
    splits, features = int((data.n_bins - 1).sum()), len({column.feature for column in data.columns})
    among = f"{splits:,} possible splits of {features} covariates"
    if not data.exact:
        among += " (thinned to the quantiles of very long columns)"
    allowed = _allowed(estimator)
    words = {
        Status.OPTIMAL: f"optimal: no tree {allowed} is better, among {among}",
        Status.OPTIMAL_GIVEN_GUESSES: f"optimal for these thresholds: no tree {allowed} is better, among {among}",
        Status.TIME_LIMIT: f"time limit: a better tree {allowed} may exist, but none beyond the bound; {among}",
    }
    prices = [f"{estimator.regularization:g} per leaf"] * bool(estimator.regularization)
    most = estimator.max_expected_cost
    prices += ["what its questions cost"] * bool(estimator.feature_costs and most is None)
    price = (", plus " if study.direction == "minimize" else ", less ") + " and ".join(prices) if prices else ""
    facts = {
        "status": words.get(estimator.status_, estimator.status_.value),
        "objective": f"{number(estimator.objective_value_)} (mean {study.outcome} on the rows that chose the "
        f"tree{price}: flattered)",
        "bound": number(estimator.objective_bound_),
        "gap": number(estimator.optimality_gap_, 3),
    }
    if estimator.feature_costs:
        within = "" if most is None else f", within {number(most)} (these rows; others may differ)"
        facts["questions"] = f"cost {number(estimator.expected_cost_)} a row on average{within}"
        facts["questions"] += "; held-out values leave it out"
    facts |= _limits(estimator)
    facts["search"] = f"{estimator.solution_.seconds:.2g} s"
    if estimator.solution_.compile_seconds:
        facts["compiling"] = f"{estimator.solution_.compile_seconds:.2g} s, once on this machine, before the search"
    return facts


def _limits(estimator) -> dict[str, str]:
    """What the tree spends, and whom it gives what, where that was limited."""
    said: dict[str, str] = {}
    if estimator.budget is not None:
        said["spend"] = f"{number(estimator.spend_)} a row, within {number(estimator.budget)} (these rows; others may "
        said["spend"] += "differ)"
    if estimator.max_share or estimator.min_share:
        said["shares"] = ", ".join(f"{arm} {share:.1%}" for arm, share in estimator.shares_.items())
    return said


def _allowed(estimator) -> str:
    """The trees that were searched, in words."""
    words = f"of depth {estimator.max_depth} or less"
    amounts = (estimator.budget, estimator.max_expected_cost)
    if any(most is not None for most in amounts) or estimator.max_share or estimator.min_share:
        words += " within the limits"
    if estimator.max_leaf_nodes is not None:
        words += f" and at most {estimator.max_leaf_nodes} leaves"
    if estimator.root_feature:
        words += f" that begins with {' or '.join(estimator.root_feature)}"
    return words


def _values(result: Result) -> RenderableType:
    values = result.values
    if values is None:
        return Padding(Text("Not computed (--no-value)."), INDENT, expand=False)
    policy = values.estimates[POLICY]
    interval = f"{100 * policy.level:g}% interval"
    table = _table("rule", "value", interval, "tree - rule", interval)
    digits = decimals(e.standard_error for e in [*values.estimates.values(), *values.differences.values()])
    for rule, estimate in values.estimates.items():
        difference = values.differences.get(rule)
        table.add_row(
            rule, f"{estimate.value:,.{digits}f}", interval_text(estimate, digits),
            "" if difference is None else f"{difference.value:+,.{digits}f}",
            "" if difference is None else interval_text(difference, digits),
            style="bold" if rule == POLICY else None,
        )  # fmt: skip
    return Group(
        Padding(table, INDENT, expand=False),
        Text(),
        Padding(Text(_explanation(values, result.study)), INDENT, expand=False),
    )


def _optimism(result: Result) -> list[RenderableType]:
    """What rules seem to be worth on the rows that chose them, beside what they are worth."""
    values = result.values
    if values is None or not values.optimism:
        return []
    digits = decimals(found.difference.standard_error for found in values.optimism.values())
    level = next(iter(values.optimism.values())).difference.level
    table = _table("rule", "on its own rows", "held out", "optimism", f"{100 * level:g}% interval")
    for rule, found in values.optimism.items():
        gap = found.difference
        table.add_row(
            rule, f"{found.training_value:,.{digits}f}", f"{values.estimates[rule].value:,.{digits}f}",
            f"{gap.value:+,.{digits}f}", interval_text(gap, digits), style="bold" if rule == POLICY else None,
        )  # fmt: skip
    words = (
        "On its own rows: on those that chose the rule, by the rewards that chose it. Optimism: that less held out. "
    )
    words += OPTIMISM
    shown = (Padding(table, INDENT, expand=False), Text(), Padding(Text(words), INDENT, expand=False))
    return [Text(), _heading("Optimism"), *shown]


def _explanation(values: PolicyValueTable, study: Study) -> str:
    better, sign = ("higher", "above") if study.direction == "maximize" else ("lower", "below")
    return " ".join(
        (
            f"Mean {study.outcome} if everybody followed the rule; {better} is better, and a difference {sign} zero",
            "speaks for the tree. Status quo: what people got. Plug-in rule: no tree, everybody gets the treatment",
            "predicted to be best.",
            *values.statements(),
        )
    )


def files_section(written: list[tuple[Path, str]]) -> list[RenderableType]:
    """The files and what they are for."""
    folder = written[0][0].parent
    return [Text(), _heading(f"Files in {folder}"), _facts({path.name: purpose for path, purpose in written})]


def _heading(text: str) -> Text:
    return Text(text, style="bold")


def _note(text: str) -> RenderableType:
    return Padding(Text(f"Note: {text}"), INDENT, expand=False)


def _facts(facts: dict[str, str]) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in facts.items():
        grid.add_row(Text(name), Text(text))
    return Padding(grid, INDENT, expand=False)


def _table(first: str, *columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="", collapse_padding=True)
    table.add_column(first, overflow="fold")
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table
