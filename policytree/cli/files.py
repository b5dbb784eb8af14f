"""The files of a designed tree: made in memory, then written whole."""

from __future__ import annotations

import io
import json
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from policytree import __version__
from policytree.cli.records import Job, Result
from policytree.cli.study import OUTCOME_OPTIONS, options_of
from policytree.cli.study_options import StudyOptions
from policytree.common.validation import is_real
from policytree.estimators.doubly_robust import DRPolicyTree
from policytree.evaluation.instruments.offer_rule import OfferRule
from policytree.evaluation.leaves.summary import TRAINING_ROWS, LeafValue, leaf_values
from policytree.evaluation.policy_value.verdict import Reason, recommends
from policytree.evaluation.stability.tables import fragile_text
from policytree.exceptions import InputError
from policytree.plotting.trees import PolicyTreeDisplay
from policytree.regimes.export import FORMAT as REGIME
from policytree.regimes.export import regime_from_dict
from policytree.report.content import Content, Picture
from policytree.report.sections.answer import NO_VALUE
from policytree.report.sections.offers import summary_of
from policytree.report.sections.people import BASELINE
from policytree.report.sections.tree import flat_leaves
from policytree.report.study_report import StudyReport
from policytree.serialization import from_dict, settle, to_dict, write_together
from policytree.serialization.checksums import refuse_changed, text_with_checksum, with_checksum
from policytree.serialization.parsing import MALFORMED, parse_json
from policytree.serialization.together import refuse_other_kinds
from policytree.study.assignments import Combined
from policytree.study.study import Study, columns_in
from policytree.trees.text import action_label
from policytree.trees.tree import Tree

PNG_DPI = 200
OF_VALUES = ("value", "standard_error", "gain")  # columns of a leaf summary
FORMULA = re.compile(r"[=@\t\r]|[+-](?![\d.\s])")
PURPOSES = {
    "report.html": "the whole report as one page for a browser, a phone or a printer",
    "tree.png": "the tree as a picture, under the verdict",
    "tree.pdf": "the same for print",
    "tree.json": "the tree for `policytree predict`, `show` and `plot`",
    "trees.png": "the trees of all decisions as a picture, under the verdict",
    "trees.pdf": "the same for print",
    "regime.json": "the rules of all decisions for `policytree predict`",
    "rule.txt": "the rules as text",
    "rule.sql": "the rules as SQL, for a table with one row per person and decision",
    "rule.py": "the rules as Python",
    "leaves.csv": "who is in each leaf, and every treatment's value there",
    "sequences.csv": "how many people followed each sequence of treatments",
    "values.csv": "the tables of held-out values and of optimism",
    "people.csv": "who was studied, by treatment (Table 1)",
    "tables.tex": "the tables of the report for a paper",
    "report.txt": "the report as text",
    "report.json": "the report as data, for `policytree report` and for programs",
}


def check_folder(folder: str) -> Path:
    """Refuse a folder that files cannot be written to, before any work; makes nothing.

    Raises
    ------
    InputError
    """
    path = Path(folder)
    try:
        there = Path(os.path.realpath(folder))
        if there.is_symlink():
            raise InputError(f"Cannot write to '{folder}': it is a link that leads to itself; choose another --output.")
        while not there.exists() and there != there.parent:
            there = there.parent
        if not there.is_dir():
            raise InputError(f"Cannot write to '{folder}': '{there}' is a file; choose another --output.")
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise InputError(f"Cannot write to '{folder}': {error.strerror or error}; choose another --output.") from error
    except ValueError as error:  # a letter that no name can have
        raise InputError(f"'{folder}' cannot be the name of a folder ({error}); choose another --output.") from error
    refuse_other_kinds(path, PURPOSES)
    return path


def result_files(job: Job, result: Result, report: StudyReport) -> dict[str, bytes]:
    """Contents of all files by name."""
    study = result.study
    verdict = NO_VALUE if report.verdict is None else str(report.verdict)
    event = options_of(study).event
    what = study.outcome.column + (f" = {event}" if event else "")
    if study.observed.times is not None or study.observed.instrument is not None:
        what = study.value
    title = " ".join(f"{study.treatment.column} to {study.ways.way} {what}".split())
    if report.verdict is not None and not recommends(report.verdict.rule, report.verdict.reason, [report.tree]):
        title += "\nNot recommended."
    title += f"\n{verdict}"
    files = {}
    if report.tree.node_count > 1:
        # Values on the rows that chose the tree are too optimistic: without others the picture shows none.
        values = {} if result.honest is None else leaf_values(report.tree, result.leaves)
        shown = next(block for block in report.content.section("tree").blocks if isinstance(block, Picture))
        limits = tuple(shown.data["limits"])
        fragile = {int(leaf): text for leaf, text in shown.data["fragile"].items()}
        display = PolicyTreeDisplay(from_dict(shown.data["tree"]), values, fragile).plot(
            title=title, unit="rows", limits=limits
        )
        files = {f"tree.{kind}": picture(display.figure_, kind) for kind in ("png", "pdf")}
    files |= {
        "tree.json": _json(job, result, report),
        "leaves.csv": for_spreadsheets(leaf_file(result.leaves)),
        "report.html": report.to_html().encode(),
        "report.txt": report.to_text().encode(),
        "tables.tex": report.to_latex().encode(),
        "report.json": (text_with_checksum(report.to_dict(), indent=1) + "\n").encode(),
    }
    for caption, table in report.tables():
        if caption == BASELINE:
            files["people.csv"] = for_spreadsheets(table)
    if result.values is not None:
        optimism = result.values.optimism_frame().drop(columns="held_out_value")
        files["values.csv"] = for_spreadsheets(result.values.to_frame().join(optimism))
    return files


def leaf_file(summary: pd.DataFrame) -> pd.DataFrame:
    """A leaf summary with one name per column; names mark the columns that come from the training rows."""
    if not (summary["rows", ""] == TRAINING_ROWS).all():
        return flat_leaves(summary)
    return flat_leaves(summary.rename(columns={name: f"training_{name}" for name in OF_VALUES}, level=0))


def for_spreadsheets(table: pd.DataFrame) -> bytes:
    """A table as CSV that spreadsheets show unchanged: texts do not become formulas, and letters keep their encoding.

    Texts that would be formulas get an apostrophe; where there are other letters than ASCII, the file begins with the
    mark by which Excel knows UTF-8 (pandas skips it).
    """

    def safe(cell: Any) -> Any:
        formula = isinstance(cell, str) and FORMULA.match(cell)
        return f"'{cell}" if formula else cell

    plain = table.rename(index=safe, columns=safe).map(safe)
    text = plain.to_csv()
    return text.encode("ascii" if text.isascii() else "utf-8-sig")


def picture(figure, kind: str) -> bytes:
    """A matplotlib figure as the bytes of a png, pdf or svg file; pyplot need not keep it any longer."""
    import matplotlib.pyplot as plt

    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=PNG_DPI)
    plt.close(figure)
    return buffer.getvalue()


def _json(job: Job, result: Result, report: StudyReport) -> bytes:
    """The tree, and beside it how it came about (which readers of the format ignore)."""
    study, origin, estimator, tree = result.study, result.origin, result.estimator, report.tree
    said = options_of(study)
    data: dict[str, Any] = to_dict(tree)
    data["design"] = {
        "policytree": __version__,
        "source": study.name,
        "treatment": study.treatment.column,
        "factors": list(study.treatment.of) if isinstance(study.treatment, Combined) else [],
        "outcome": study.outcome.column,
        "direction": study.direction,
        "event": said.event,
        **_outcome_data(said),
        "arm_costs": {str(label): cost for label, cost in study.arm_costs.items()},
        "offer_costs": {str(label): cost for label, cost in origin.offer_costs.items()},
        "taker_cost": origin.taker_cost,
        **origin.limits.saved(),
        "covariates": list(study.covariates),
        "confounders": list(study.confounders),
        "cluster": study.cluster,
        "strata": list(study.strata),
        "weights": study.weights,
        "propensity": study.propensity_text,
        "reading": origin.reading.saved,
        "propensity_option": said.propensity,
        "propensity_columns": columns_in(study.propensity),
        "propensity_arms": [str(label) for label in study.assigned.treatments.tolist()],
        "options": {
            **job.tree,
            "budget_costs": {str(label): cost for label, cost in study.budget_costs.items()} or None,
            "constraints": [each.to_dict() for each in job.tree["constraints"]],
            "cv": job.cv,
            "validation": job.validation,
            "repeats": job.repeats,
            "honest": job.honest,
            "seed": job.seed,
            "control": None if study.control is None else job.control,
        },
    }
    data["design"]["rows"] = rows_of(origin.gross or study, study.covariates)
    data["certificate"] = certificate_data(estimator)
    data["fragile_leaves"] = {str(leaf): share for leaf, share in report.fragile_leaves.items()}
    if result.values is not None:
        assert report.verdict is not None, "values have a verdict"
        data["verdict"] = report.verdict.to_dict()
    if result.honest is not None:
        data["held_out_leaf_values"] = {
            str(leaf): asdict(value) for leaf, value in leaf_values(tree, result.leaves).items()
        }
    fields = (f" {json.dumps(name)}: {json.dumps(value)}" for name, value in with_checksum(data).items())
    return ("{\n" + ",\n".join(fields) + "\n}\n").encode()  # one line a field, for people and for diff


def certificate_data(estimator: DRPolicyTree) -> dict[str, Any]:
    """Return the certificate of a tree as plain values."""
    return {
        "status": estimator.status_.value,
        "objective": float(estimator.objective_value_),
        "bound": float(estimator.objective_bound_),
        "gap": float(estimator.optimality_gap_),
        "expected_cost": estimator.expected_cost_,
        "seconds": round(estimator.solution_.seconds, 3),
    }


def design_data(job: Job, result: Result, report: StudyReport, written: list[tuple[Path, str]]) -> dict[str, Any]:
    """Collect a design's results for scripts: verdict, tree, certificate, values, warnings, files."""
    values = result.values
    return {
        "verdict": None if report.verdict is None else report.verdict.to_dict(),
        "second_opinions": [] if values is None else [each.to_dict() for each in values.second_opinions],
        "values": None if values is None else values.to_frame().reset_index().to_dict("records"),
        "control": job.control,
        "outcome": {
            "column": result.study.outcome.column,
            "value": result.study.value,
            **_outcome_data(options_of(result.study)),
            "n_raised": result.estimator.reward_estimator_.n_raised_,
        },
        "offers": _offers_data(result),
        "tree": to_dict(report.tree),
        "certificate": certificate_data(result.estimator),
        "further_outcomes": None if values is None else values.further_frame().reset_index().to_dict("records"),
        "limits": _limits_data(result),
        "groups": None
        if values is None or values.group_values is None
        else values.group_values.reset_index().to_dict("records"),
        "leaves": leaf_file(result.leaves).reset_index().to_dict("records"),
        "warnings": list(result.warnings),
        "files": {path.name: str(path) for path, _ in written},
    }


def _outcome_data(said: StudyOptions) -> dict[str, Any]:
    """How outcomes and treatments were observed, by the names of the options."""
    return {name: getattr(said, name) for name in OUTCOME_OPTIONS}


def _limits_data(result: Result) -> dict[str, Any]:
    """Return the price of limits, means of outcomes on the rows of the fit, and the confidence that each is kept."""
    model, values = result.estimator, result.values
    kept = {} if values is None else values.kept_probabilities()
    return {
        "price": getattr(model, "price_of_limits_", None),
        "outcome_means": model.outcome_means_,
        "kept_probability": kept,
    }


def _offers_data(result: Result) -> dict[str, Any] | None:
    """Collect offers, the effect on those who follow them, and the tree over offers; None without an instrument."""
    if result.study.observed.instrument is None:
        return None
    seen, honest = result.study.observed, result.honest
    rows = np.arange(seen.n) if honest is None else np.setdiff1d(np.arange(seen.n), honest.rows)
    found = summary_of(seen, result.estimator.reward_estimator_, rows)
    data = {
        "table": found.offers.reset_index().to_dict("records"),
        "effect_on_compliers": {**found.effect.numbers, "robust_interval": list(found.robust_interval)},
        "compliers": found.compliers.numbers,
        "f_statistic": found.f_statistic,
        "overidentification": None if found.overidentification is None else list(found.overidentification),
        "small_compliance": found.small_compliance,
        "rule": None,
    }
    rule = next((answer for answer in result.answers if isinstance(answer, OfferRule)), None)
    if rule is not None:
        values = rule.values
        data["rule"] = {
            "tree": to_dict(rule.estimator.tree_),
            "certificate": certificate_data(rule.estimator),
            "verdict": None if values is None else values.verdict.to_dict(),
            "values": None if values is None else values.to_frame().reset_index().to_dict("records"),
        }
    return data


def rows_digest(frame: pd.DataFrame, columns: list[str]) -> str | None:
    """A digest that is equal for two tables with the same rows, in any order; None if a column is missing.

    It is a sum of hashes and does not reveal any row.
    """
    if not set(columns) <= set(frame.columns):
        return None
    same = frame[columns].apply(lambda c: c.astype(float) if pd.api.types.is_numeric_dtype(c) else c.astype(str))
    total = int(pd.util.hash_pandas_object(same, index=False).to_numpy().sum(dtype=np.uint64))
    return f"{len(frame)} rows, {total:016x}"


def rows_of(study: Study, covariates: Sequence[str]) -> str | None:
    """The digest of a study's outcomes, treatments and covariates."""
    treatment, table = study.treatment.column, study.table
    if isinstance(study.treatment, Combined):
        table = table.assign(**{treatment: study.observed.treatments[study.observed.arm]})
    return rows_digest(table, [study.outcome.column, treatment, *covariates])


def write_files(folder: Path, files: dict[str, bytes]) -> list[tuple[Path, str]]:
    """Write all files, or none; returns paths and purposes. Files of an earlier run that this one lacks are removed.

    Raises
    ------
    InputError
        If they cannot be written.
    """
    ordered = {name: files[name] for name in PURPOSES if name in files}
    return [(path, PURPOSES[path.name]) for path in write_together(folder, ordered, PURPOSES)]


def saved_values(saved: dict[str, Any]) -> dict[int, LeafValue]:
    """Held-out values by leaf, if a tree file has them.

    Raises
    ------
    InputError
        If the file has other values in their place.
    """
    values = saved.get("held_out_leaf_values")
    try:
        return {int(leaf): LeafValue.from_dict(fields) for leaf, fields in (values or {}).items()}
    except MALFORMED as problem:
        raise InputError("Field 'held_out_leaf_values' of the saved tree must hold a value for each leaf.") from problem


def saved_fragile(saved: dict[str, Any], tree: Tree) -> dict[int, str]:
    """Of leaves that other people would not have given, what is said of them, if a tree file has them.

    Raises
    ------
    InputError
        If the file has something else in their place.
    """
    shares = saved.get("fragile_leaves") or {}
    leaves = {str(leaf) for leaf in np.flatnonzero(tree.is_leaf)}
    if not isinstance(shares, dict) or not set(shares) <= leaves or not all(map(is_real, shares.values())):
        raise InputError("Field 'fragile_leaves' of the saved tree must hold a share of resamples by leaf.")
    return {int(leaf): fragile_text(share, action_label(tree, int(leaf))) for leaf, share in shares.items()}


def read_saved(path: str | os.PathLike) -> Any:
    """Read a file of a tree, or of a regime, as JSON.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    return _read_json(path, "tree", "`policytree design` writes tree.json")


def is_regime(data: Any) -> bool:
    """Whether what was read from a file is a regime, and no tree."""
    return isinstance(data, dict) and data.get("format") == REGIME


def read_tree(path: str | os.PathLike) -> tuple[Tree, dict[str, Any]]:
    """A tree file: the tree, and all that the file says.

    Raises
    ------
    InputError
        If it cannot be read or is no tree.
    """
    data = read_saved(path)
    try:
        if is_regime(data):
            raise InputError("this is a regime of several decisions, which `policytree predict` and `show` take.")
        return from_dict(data), data
    except InputError as error:
        raise InputError(f"'{path}': {error}") from error


def saved_verdict(data: dict[str, Any]) -> str:
    """Return a tree's saved verdict, after "Not recommended." where it applies; "" if the file holds none."""
    verdict = data.get("verdict")
    if not isinstance(verdict, dict) or not isinstance(verdict.get("sentence"), str):
        return ""
    reason = next((each for each in Reason if each.value == verdict.get("reason")), Reason.UNCLEAR)
    trees = [tree for _, tree in regime_from_dict(data)] if is_regime(data) else [from_dict(data)]
    return ("" if recommends(verdict.get("rule"), reason, trees) else "Not recommended. ") + verdict["sentence"]


def read_report(path: str | os.PathLike) -> Content:
    """A report file.

    Raises
    ------
    InputError
        If it cannot be read or is no report.
    """
    data = _read_json(path, "report", "`policytree design` writes report.json")
    try:
        if isinstance(data, dict):
            refuse_changed(data, "saved report")
        return Content.from_dict(data)
    except InputError as error:
        raise InputError(f"'{path}': {error}") from error


def _read_json(path: str | os.PathLike, what: str, remedy: str) -> Any:
    try:
        try:
            content = Path(path).read_bytes()
        except FileNotFoundError:
            if not settle(Path(path).parent, PURPOSES):
                raise
            content = Path(path).read_bytes()
        return parse_json(content)
    except FileNotFoundError as error:
        raise InputError(f"There is no file '{path}'; {remedy}.") from error
    except OSError as error:
        raise InputError(f"'{path}' cannot be read ({error.strerror}).") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"'{path}' is not a saved {what}: it is not valid JSON ({error}).") from error
