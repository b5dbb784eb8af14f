"""The data of a regime, stage by stage; how it was learnt, for a paper; and how to do it again."""

from __future__ import annotations

import numpy as np

from policytree import __version__
from policytree.evaluation.estimates import mean_estimate
from policytree.evaluation.formatting import decimals
from policytree.regimes.course import Decision
from policytree.report.content import Block, Code, Facts, Section, Steps, Table, Words
from policytree.report.regime_material import RegimeMaterial
from policytree.report.sections.proof import (
    ATHEY_WAGER,
    CROSS_FITTING,
    ROBINS,
    ZHOU,
    References,
    settings,
    versions_text,
)

NORDLAND = (
    "Nordland A, Holst KK (2026). Policy learning with the polle package. Journal of Statistical Software 116(4)."
)
ZHANG = (
    "Zhang B, Tsiatis AA, Laber EB, Davidian M (2013). Robust estimation of optimal dynamic treatment regimes for "
    "sequential treatment decisions. Biometrika 100(3), 681-694."
)
MURPHY = (
    "Murphy SA (2003). Optimal dynamic treatment regimes. Journal of the Royal Statistical Society B 65(2), 331-355."
)


def question_section(material: RegimeMaterial) -> Section:
    """People, outcome and stages; what people got at every stage, and how they fared from then on."""
    about, course = material.about, material.course
    people = f"{course.n:,}"
    if course.groups is not None:
        people += f" in {len(np.unique(course.groups)):,} clusters{f' ({about.cluster})' if about.cluster else ''}"
    unit = f", {about.unit}" if about.unit else ""
    facts = {
        "data": about.source,
        "people": people,
        "outcome": f"{about.outcome}{unit}, summed over all stages; {material.better} is better",
        "strata": ", ".join(about.strata) or ("" if course.strata is None else "folds are balanced over blocks"),
        "propensity": about.propensity,
        "weights": "" if course.sample_weight is None else about.weights or "sampling weights",
        "costs": f"{about.costs} (values are net of them)" if about.costs else "",
        "control": about.control,
    }
    for s, each in enumerate(course.decisions):
        facts[each.name] = _stage_text(material, s, each)
    shown = tuple((name, text) for name, text in facts.items() if text)
    notes = [Words(note, "note") for note in about.notes]
    raw = "Means as observed compare people as they came: unless treatment was randomised they are no effects."
    if any(each.propensity is None for each in course.decisions):
        notes.insert(0, Words(raw, "note"))
    return Section("question", "Data", (Facts(shown), _observed(material), *notes))


def _stage_text(material: RegimeMaterial, s: int, each: Decision) -> str:
    """Who decides what at a stage, and what is known by then."""
    columns = [*material.regime.known(material.course, s, material.rows(s)[:1]).X.columns]
    lost = int(np.isnan(each.outcome).sum())
    before = int(np.isnan(material.course.decisions[s - 1].outcome).sum()) if s else 0
    parts = [
        f"{material.eligible[s]}; {each.n_arms} treatments ({', '.join(map(str, each.treatments))})",
        "chances known" if each.propensity is not None else "chances estimated",
        f"the rule may look at {', '.join(map(material.about.called, columns))}",
    ]
    if each.allowed is not None:
        parts.append("not everybody may get every treatment")
    if lost > before:
        parts.append(f"{lost - before:,} people were lost after it")
    return "; ".join(parts)


def _observed(material: RegimeMaterial) -> Table:
    """People and mean outcome from this decision on, by stage and treatment, as observed."""
    course = material.course
    to_go, outcomes, found = np.zeros(course.n), list[np.ndarray](), []
    for each in reversed(course.decisions):
        to_go = to_go + each.outcome
        outcomes.insert(0, to_go)
    for each, outcome in zip(course.decisions, outcomes, strict=True):
        for k, label in enumerate(each.treatments):
            rows = np.flatnonzero((each.arm == k) & ~np.isnan(outcome))
            parts = (None if part is None else part[rows] for part in (course.groups, course.sample_weight))
            groups, weight = parts
            weighed = len(rows) and (weight is None or weight.any())
            mean = mean_estimate(outcome[rows], groups=groups, sample_weight=weight) if weighed else None
            people = (each.arm == k).sum()
            found.append({
                "stage": each.name, "treatment": str(label), "people": people, "share": people / each.eligible.sum(),
                "mean": np.nan if mean is None else mean.value,
                "standard_error": np.nan if mean is None else mean.standard_error,
            })  # fmt: skip
    digits = decimals(row["standard_error"] for row in found if np.isfinite(row["standard_error"]))
    columns = {
        "at": "{stage}", "treatment": "{treatment}", "people": "{people:,}", "share": "{share:.1%}",
        f"{material.value} from then on": "{mean:,.{digits}f}", "std. error": "{standard_error:,.{digits}f}",
    }  # fmt: skip
    return Table.of(found, columns, "Treatments as observed", digits=digits)


def methods_section(material: RegimeMaterial) -> Section:
    """A paragraph for a paper, with the references that it needs."""
    regime, course, values = material.regime, material.course, material.values
    goal = "largest" if material.direction == "maximize" else "smallest"
    references = References()
    cite = references.cite
    first = regime.stages_[0].reward_estimator_
    folds = f"{first.cv}-fold " if isinstance(first.cv, int | np.integer) else ""
    known = ["known by design" if each.propensity is not None else "estimated" for each in course.decisions]
    chances = known[0] if len(set(known)) == 1 else ", ".join(
        f"{text} at {each.name}" for text, each in zip(known, course.decisions, strict=True)
    )  # fmt: skip
    sentences = [
        f"We looked for a treatment regime of {len(course)} decisions such that the {material.value} is {goal}, from "
        f"{course.n:,} people {cite(MURPHY)}.",
        f"Stages were learnt backwards: the score of every treatment was estimated by {folds}cross-fitted augmented "
        "inverse probability weighting of the outcome of the stage and the scores of what the later rules bring "
        f"{cite(NORDLAND, ZHANG, ROBINS, CROSS_FITTING)}, with probabilities of treatment {chances}.",
    ]
    proved = "proved" if all(model.status_.proved for model in regime.stages_) else "not proved at every stage"
    if regime.joint_value_ is not None:
        sentences.append(
            f"Among all pairs of trees of depth one, policytree {__version__} searched for the pair of the best mean "
            "score of the whole regime."
        )
    sentences.append(
        f"At every stage policytree {__version__} searched for the tree of the best mean score "
        f"{cite(ATHEY_WAGER, ZHOU)}; that none is better given the scores was {proved}."
    )
    if values is not None:
        sentences.append(
            "The value of the regime was estimated on people who had no part in learning it, by "
            f"{values.validation.describe(len(values.scores))}; intervals have a nominal coverage of "
            f"{100 * values.level:g} %."
        )
    return Section("methods", "Methods, for a paper", (Words(" ".join(sentences)), Steps(tuple(references.texts))))


def reproduce_section(material: RegimeMaterial) -> Section:
    """Versions, seeds, settings and the command."""
    regime = material.regime
    facts = [("versions", versions_text()), ("seed", str(regime.random_state))]
    facts += [(name, text) for name, text in settings(regime) if name != "stages"]
    facts += [
        (f"{stage}: {name}", text)
        for stage, model in zip(regime.stage_names_, regime.stages_, strict=True)
        for name, text in settings(model)
    ]
    blocks: tuple[Block, ...] = (Facts(tuple(facts)),)
    if material.about.command:
        blocks = (*blocks, Code(material.about.command))
    return Section("reproduce", "To do it again", blocks)
