"""Another population: whom the results are about, and whether the study knows such people."""

from __future__ import annotations

from dataclasses import replace

from policytree.diagnostics.population_overlap import TargetOverlap
from policytree.evaluation.sensitivity.transport import TransportSensitivity
from policytree.report.content import Block, Fold, Section, Table, Words
from policytree.report.material import Material
from policytree.weighting.target_support import LARGE_SHARE

TABLES = ("columns", "balance")
ABOUT = (
    "Values, differences, leaves and the tree are about the people of the target, not about those of the study. "
    "Effects were learnt from the study; its residuals are weighted by the odds of being of the target, given the "
    "covariates. This is right if the outcome models are, or if the odds and the propensities are, provided that "
    "people with the same covariates have the same effects in both. No data of the study can show that. Treatments "
    "and outcomes are told of the study alone; the status quo is what the study's way of assigning treatments "
    "would bring in the target. Where rows and their shares stand in the tree, they are of both."
)


def target_section(material: Material) -> Section | None:
    """Overlap of study and target, and how wrong transportability may be; None without a target."""
    if not material.to_target:
        return None
    overlap, sensitivity = material.only(TargetOverlap), material.of(TransportSensitivity)
    blocks: list[Block] = [Words(ABOUT)]
    if overlap is not None:
        tables = {name: getattr(overlap, name).rename(index=material.study.about.called) for name in TABLES}
        overlap = replace(overlap, **tables)
        lines = str(overlap).splitlines()
        far = max(overlap.outside - overlap.outside_by_chance, overlap.rare) > LARGE_SHARE
        blocks += [Words(line, "warning" if far and k == 1 else "plain") for k, line in enumerate(lines)]
        blocks.append(Fold("All covariates", (_balance(overlap), _columns(overlap))))
    blocks += [Words(str(found)) for found in sensitivity]
    return Section("target", "The people this is about", tuple(blocks))


def _balance(overlap: TargetOverlap) -> Table:
    columns = {
        "covariate": "{covariate}", "as they are": "{difference_before:,.2f}",
        "study weighted to the target": "{difference_after:,.2f}",
    }  # fmt: skip
    caption = "Means of the target less those of the study, in standard deviations of the target"
    return Table.of(overlap.balance, columns, caption)


def _columns(overlap: TargetOverlap) -> Table:
    columns = {
        "column": "{column}", "lowest in study": "{lowest:g}", "highest in study": "{highest:g}",
        "target outside": "{outside:.1%}", "missing in study": "{missing_in_study:.1%}",
        "missing in target": "{missing_in_target:.1%}",
    }  # fmt: skip
    caption = "Shares of the target outside the study's range, or with a value that it lacks"
    return Table.of(overlap.columns, columns, caption)
