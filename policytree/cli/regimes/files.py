"""The files of a regime: made in memory, then written whole with those of other designs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from policytree import __version__
from policytree.cli.files import certificate_data, for_spreadsheets, picture
from policytree.cli.records import Job
from policytree.cli.regimes.visits import Visits
from policytree.evaluation.policy_value.verdict import recommends
from policytree.evaluation.regimes.tables import RegimeValueTable
from policytree.plotting.regimes import RegimeDisplay
from policytree.regimes.export import regime_dict, regime_python, regime_rules, regime_sql, regime_text
from policytree.regimes.treatment_regime import TreatmentRegime
from policytree.report.content import Picture
from policytree.report.regime_report import RegimeReport
from policytree.serialization import to_dict
from policytree.serialization.checksums import text_with_checksum, with_checksum
from policytree.serialization.labels import label_to_json


def regime_files(
    job: Job, visits: Visits, regime: TreatmentRegime, values: RegimeValueTable | None, report: RegimeReport
) -> dict[str, bytes]:
    """Contents of all files by name."""
    shown = next(block for block in report.content.section("tree").blocks if isinstance(block, Picture))
    eligible = [stage["eligible"] for stage in shown.data["stages"]]
    title = f"{visits.treatment} to {visits.direction} {visits.outcome}"
    if values is not None:
        used = recommends(values.verdict.rule, values.verdict.reason, [tree for _, tree in report.trees])
        title += "" if used else "\nNot recommended."
        title += f"\n{values.verdict}"
    files = {f"trees.{kind}": _drawn(report, eligible, title, kind) for kind in ("png", "pdf")}
    sequences = regime.sequences_ if values is None else values.sequences
    files |= {
        "regime.json": _json(job, visits, regime, values, report),
        "rule.txt": (regime_text(report.trees) + "\n").encode(),
        "rule.sql": (regime_sql(report.trees, visits.stage, visits.times) + "\n").encode(),
        "rule.py": regime_python(report.trees, "policy").encode(),
        "leaves.csv": for_spreadsheets(regime_rules(report.trees).set_index("stage")),
        "sequences.csv": for_spreadsheets(sequences),
        "report.html": report.to_html().encode(),
        "report.txt": report.to_text().encode(),
        "report.json": (text_with_checksum(report.to_dict(), indent=1) + "\n").encode(),
    }
    if values is not None:
        files["values.csv"] = for_spreadsheets(values.to_frame())
    return files


def _drawn(report: RegimeReport, eligible: list[str], title: str, kind: str) -> bytes:
    return picture(RegimeDisplay(report.trees, eligible).plot(title=title).figure_, kind)


def _json(
    job: Job, visits: Visits, regime: TreatmentRegime, values: RegimeValueTable | None, report: RegimeReport
) -> bytes:  # fmt: skip
    """The trees, how they came about, and where the columns that they ask about stand in a table of visits."""
    data = regime_dict(report.trees)
    data["design"] = {
        "policytree": __version__,
        "source": visits.source,
        "id": visits.person,
        "stage": visits.stage,
        "times": [label_to_json(time) for time in visits.times],
        "treatment": visits.treatment,
        "outcome": visits.outcome,
        "direction": visits.direction,
        "covariates": list(visits.covariates),
        "confounders": list(visits.confounders),
        "strata": list(visits.strata),
        "propensity": visits.propensity_text,
        "history": [
            [[str(name), r, column if isinstance(column, str) else list(column)] for name, r, column in
             visits.course.sources(s)]
            for s in range(len(visits.course))
        ],
        "options": {
            **{name: value for name, value in job.tree.items() if value not in (None, ())},
            "cv": job.cv, "validation": job.validation, "repeats": job.repeats, "seed": job.seed,
            "control": job.control,
        },
    }  # fmt: skip
    data["certificates"] = [certificate_data(model) for model in regime.stages_]
    if values is not None:
        data["verdict"] = values.verdict.to_dict()
    fields = (f" {json.dumps(name)}: {json.dumps(value)}" for name, value in with_checksum(data).items())
    return ("{\n" + ",\n".join(fields) + "\n}\n").encode()  # one line a field, for people and for diff


def regime_data(
    regime: TreatmentRegime, values: RegimeValueTable | None, report: RegimeReport, warnings: tuple[str, ...],
    written: list[tuple[Path, str]],
) -> dict[str, Any]:  # fmt: skip
    """Collect the results for scripts: verdict, trees, certificates, values, sequences, warnings, files."""
    sequences = regime.sequences_ if values is None else values.sequences
    return {
        "verdict": None if values is None else values.verdict.to_dict(),
        "decide_once": None if values is None else values.against_once_text(),
        "values": None if values is None else values.to_frame().reset_index().to_dict("records"),
        "stages": [
            {"name": name, "eligible": given, "tree": to_dict(tree), "certificate": certificate_data(model)}
            for (name, tree), given, model in zip(report.trees, regime.eligibility_, regime.stages_, strict=True)
        ],
        "sequences": sequences.reset_index().to_dict("records"),
        "warnings": list(warnings),
        "files": {path.name: str(path) for path, _ in written},
    }
