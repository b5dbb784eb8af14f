"""Proved and unproved claims about a regime, and the limits of the data."""

from __future__ import annotations

from policytree.estimators.certificate import certificate
from policytree.report.content import Block, Facts, Section, Steps, Words
from policytree.report.regime_material import RegimeMaterial
from policytree.trees.text import format_number

BACKWARD = (
    "A tree whose status is optimal is proved given its stage's scores: no allowed tree has a better mean score on "
    "these people. The scores of a stage depend on the trees of later stages and on estimated models, so that the "
    "regime as a whole has no proof: another set of trees, worse at some stage given its scores, could be better "
    "together."
)
JOINT = (
    "Proved are both trees together: no pair of trees of depth one has a better mean score of the whole regime than "
    "{} on the people who chose them."
)
ELSEWHERE = (
    "No proof says anything about other people: what the regime is worth for them is estimated, under Value, held out."
)


def certificate_section(material: RegimeMaterial) -> Section:
    """The proof of every stage's tree, and what it does not imply."""
    regime = material.regime
    whole = BACKWARD if regime.joint_value_ is None else JOINT.format(format_number(regime.joint_value_))
    blocks: list[Block] = [Words(f"{whole} {ELSEWHERE}")]
    for name, model in zip(regime.stage_names_, regime.stages_, strict=True):
        blocks += [Words(f"At {name}:"), Facts(tuple(certificate(model.policy_tree_, "mean score").items()))]
    return Section("certificate", "Proof, and its limits", tuple(blocks))


def limits_section(material: RegimeMaterial) -> Section:
    """List the limits of the data."""
    course = material.course
    items = []
    estimated = [each.name for each in course.decisions if each.propensity is None]
    if estimated:
        items.append(
            f"Treatment was not said to be randomised at {' and '.join(estimated)}: the numbers hold if all that bore "
            "on both the treatment and later outcomes is among the columns, at every stage. No test can show that."
        )
    if len(course) > 1:
        items.append(
            "Later scores hold for people treated by the earlier rules only as far as what differs between them and "
            "others is in their histories."
        )
    if not all(each.eligible.all() for each in course.decisions):
        items.append(
            "People for whom there was nothing to decide at a stage bring what they brought; who will be eligible "
            "under the regime is learnt from who was."
        )
    if any(each.outcome is not None and _some_lost(each.outcome) for each in course.decisions):
        items.append("People who were lost are taken to be like others with the same history and treatment.")
    items.append(
        "With every stage fewer people have followed the regime, and the product of their weights grows: look at "
        "Overlap of sequences before a difference between late treatments is believed."
    )
    items.append("The intervals are about people like these, treated in the same way; not about other places or times.")
    return Section("limits", "Limits", (Steps(tuple(items)),))


def _some_lost(outcome) -> bool:
    return bool((outcome != outcome).any())
