"""RegimeReport: what was found out about rules for several decisions, as a page, text or data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from policytree.common.typing import Column, Table
from policytree.evaluation.regimes.tables import RegimeValueTable
from policytree.exceptions import InputError, quoted
from policytree.plotting.regimes import regime_to_show
from policytree.regimes.checking import check_stages
from policytree.regimes.course import Course
from policytree.regimes.stages import Stage
from policytree.regimes.treatment_regime import TreatmentRegime
from policytree.report.base import Report
from policytree.report.content import Content, Section, Words
from policytree.report.described import About
from policytree.report.material import headings
from policytree.report.regime_material import RegimeMaterial, named_after
from policytree.report.sections.regimes.evidence import (
    check_section,
    gates,
    score_checks,
    sequences_section,
    values_section,
    verdict_section,
)
from policytree.report.sections.regimes.proof import certificate_section, limits_section
from policytree.report.sections.regimes.question import methods_section, question_section, reproduce_section
from policytree.report.sections.regimes.rule import example_section, rule_section, trees_section
from policytree.trees.labels import labelled
from policytree.weighting.study_data import WEIGHT


class RegimeReport(Report):
    """A report of a treatment regime: verdict, trees of all stages, checklist over time, values, overlap, proof.

    The content is computed once, from the fitted regime, its people and the table of values, and is the same in every
    form. A report fits nothing.

    Parameters
    ----------
    regime : fitted TreatmentRegime
    stages : list of Stage
        Those of the fit.
    values : RegimeValueTable, optional
        Of :func:`policytree.regimes.cross_val_regime_value` for these stages; without it there is no verdict.
    sample_weight, groups, strata : optional
        Those of the fit, as :meth:`TreatmentRegime.fit` takes them.
    about : mapping, optional
        Names, units, warnings and the command, which data and results do not contain.

    Attributes
    ----------
    content : Content
        Sections of paragraphs, facts, tables, trees and pictures, as data.
    trees : list of (str, Tree)
        Name and tree of every stage, with the shortest thresholds that send all people the same way.
    values : RegimeValueTable or None
        The table, its verdict being that these people cannot say what to do where the scores of a stage are beyond
        belief.

    Raises
    ------
    InputError
        If the regime is not fitted, or to other stages, or the table is about other people.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from policytree import DRPolicyTree
    >>> from policytree.regimes import RegimeReport, Stage, TreatmentRegime
    >>> rng = np.random.default_rng(0)
    >>> severity, first, second = rng.normal(size=200), rng.integers(2, size=200), rng.integers(2, size=200)
    >>> outcome = first * severity + second + rng.normal(size=200)
    >>> X = pd.DataFrame({"severity": severity})
    >>> stages = [Stage(first, X=X, propensity=0.5), Stage(second, Y=outcome, propensity=0.5)]
    >>> regime = TreatmentRegime(DRPolicyTree(max_depth=1, cv=2), random_state=0).fit(stages)
    >>> report = RegimeReport(regime, stages)
    >>> report.content.section("rule").blocks[0].text
    'At stage 1, everybody:'
    """

    def __init__(
        self,
        regime: TreatmentRegime,
        stages: Sequence[Stage],
        values: RegimeValueTable | None = None,
        *,
        sample_weight: Column | None = None,
        groups: Column | None = None,
        strata: Column | Table | None = None,
        about: Mapping[str, Any] | About | None = None,
    ):
        if not isinstance(regime, TreatmentRegime):
            raise InputError(f"regime must be a TreatmentRegime; got {quoted(regime)}. Of one tree, use StudyReport.")
        check_is_fitted(regime, "stages_")
        course = check_stages(stages, sample_weight=sample_weight, groups=groups, strata=strata, missing_outcome=WEIGHT)
        _refuse_others(regime, course, values)
        named = About.of(about)
        if named.instrument:
            raise InputError("A regime has no instrument; leave instrument out of about.")
        histories = [
            regime.known(course, s, np.flatnonzero(each.eligible)).X for s, each in enumerate(course.decisions)
        ]
        named = named_after(named, stages, pd.concat(histories, ignore_index=True))
        self.trees, eligible = regime_to_show(regime, course)
        shown = [(name, labelled(tree, named.labels)) for name, tree in self.trees]
        encoded = [model.encoder_.encode(history) for model, history in zip(regime.stages_, histories, strict=True)]
        checks = score_checks(regime, course)
        if values is not None:
            values = replace(values, verdict=values.verdict.through(gates(checks)))
        self.values = values
        material = RegimeMaterial(regime, course, named, shown, eligible, encoded, values)
        self.content = make_content(material, check_section(checks))


def _refuse_others(regime: TreatmentRegime, course: Course, values: RegimeValueTable | None) -> None:
    """Refuse stages that are not those of the fit, and a table about other people."""
    names = tuple(each.name for each in course.decisions)
    if names != regime.stage_names_ or course.n != len(regime.scores_):
        raise InputError(
            f"The stages ({', '.join(names)}; {course.n:,} people) are not those of the fit "
            f"({', '.join(regime.stage_names_)}; {len(regime.scores_):,} people); pass those."
        )
    for each, known in zip(course.decisions, regime.treatments_, strict=True):
        if list(map(str, each.treatments)) != list(map(str, known)):
            raise InputError(f"The treatments of {each.name} are not those of the fit; pass the stages of the fit.")
    if values is None:
        return
    if not isinstance(values, RegimeValueTable):
        raise InputError(
            f"values must be the table of cross_val_regime_value; got {quoted(values)}. Of one decision, use "
            "StudyReport."
        )
    if len(values.observed.arm) != course.n or values.direction != regime.direction:
        raise InputError("The table of values is not about these people; compute it from the same stages.")


def make_content(material: RegimeMaterial, check: Section | None = None) -> Content:
    """All sections that have content, in their order; ``check``: what is suspicious about the scores."""
    about = material.about
    rule = [trees_section(material), rule_section(material), example_section(material)]
    heard = tuple(Words(text, "warning") for text in about.warnings)
    warnings = Section("warnings", "Warnings", heard) if heard else None
    first = [
        verdict_section(material), *(rule if material.recommended else ()), check, warnings, question_section(material),
        limits_section(material),
    ]  # fmt: skip
    behind = [
        values_section(material), *(() if material.recommended else rule), sequences_section(material),
        certificate_section(material), methods_section(material), reproduce_section(material),
    ]  # fmt: skip
    sections = [*first, *(None if section is None else replace(section, folded=True) for section in behind)]
    sections = [
        replace(section, blocks=(*section.blocks, Words(about.further[section.key], "note")))
        if section is not None and section.key in about.further
        else section
        for section in sections
    ]
    number = len(material.trees)
    what = "A rule" if number == 1 else f"Rules for {number} decisions"
    question = f"Which {about.treatment} for whom, and when"
    title, subtitle = headings(about, question, material.aim, what, judged=material.values is not None)
    return Content(title, subtitle, tuple(section for section in sections if section is not None))
