"""The certificate, the methods, and how to reproduce the report."""

from __future__ import annotations

import math
import platform
from importlib import metadata
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from policytree import __version__
from policytree.estimators.certificate import certificate
from policytree.evaluation.heterogeneity.global_tests import HeterogeneityTest
from policytree.evaluation.instruments.offer_rule import OfferRule
from policytree.evaluation.leaves.honest import HonestLeaves
from policytree.evaluation.policy_value.tables import PolicyValueTable
from policytree.evaluation.sensitivity.marginal import MarginalSensitivity
from policytree.evaluation.sensitivity.omitted_variables import OmittedVariableBounds
from policytree.evaluation.stability.tables import PolicyStability
from policytree.problem.types import Status
from policytree.report.content import Block, Code, Facts, Section, Steps, Words
from policytree.report.material import Material
from policytree.weighting.instrument import COMPLIERS

PACKAGES = ("numpy", "numba", "scipy", "pandas", "scikit-learn", "econml", "statsmodels")
ELSEWHERE = " It says nothing about other people: what the rule is worth for them is estimated, under Value, held out."
SCOPE = {
    Status.OPTIMAL: "The proof is about these rows and the rewards estimated for them: no allowed tree has a better "
    "objective.",
    Status.OPTIMAL_GIVEN_GUESSES: "The proof is about these rows, the rewards estimated for them and what was guessed: "
    "no allowed tree within the guesses has a better objective.",
}
BOUNDED = "Only the bound is proved: on these rows and rewards no allowed tree has an objective better than it."
PROVED = {Status.OPTIMAL: "proved", Status.OPTIMAL_GIVEN_GUESSES: "proved within what was guessed"}
ATHEY_WAGER = "Athey S, Wager S (2021). Policy learning with observational data. Econometrica 89(1), 133-161."
ZHOU = (
    "Zhou Z, Athey S, Wager S (2023). Offline multi-action policy learning: generalization and optimization. "
    "Operations Research 71(1), 148-183."
)
ROBINS = (
    "Robins JM, Rotnitzky A, Zhao LP (1994). Estimation of regression coefficients when some regressors are not always "
    "observed. Journal of the American Statistical Association 89(427), 846-866."
)
CROSS_FITTING = (
    "Chernozhukov V, Chetverikov D, Demirer M, Duflo E, Hansen C, Newey W, Robins J (2018). Double/debiased machine "
    "learning for treatment and structural parameters. Econometrics Journal 21(1), C1-C68."
)
RUBIN = (
    "Rubin D, van der Laan MJ (2007). A doubly robust censoring unbiased transformation. International Journal of "
    "Biostatistics 3(1), article 4."
)
CUI = (
    "Cui Y, Kosorok MR, Sverdrup E, Wager S, Zhu R (2023). Estimating heterogeneous treatment effects with "
    "right-censored data via causal survival forests. Journal of the Royal Statistical Society B 85(2), 179-211."
)
HONEST = "Athey S, Imbens G (2016). Recursive partitioning for heterogeneous causal effects. PNAS 113(27), 7353-7360."
SEQUENTIAL = "Wager S (2024). Sequential validation of treatment heterogeneity. arXiv:2405.05534."
MARGINAL = (
    "Dorn J, Guo K (2023). Sharp sensitivity analysis for inverse propensity weighting via quantile balancing. Journal "
    "of the American Statistical Association 118(544), 2645-2657."
)
OMITTED = (
    "Chernozhukov V, Cinelli C, Newey W, Sharma A, Syrgkanis V (2022). Long story short: omitted variable bias in "
    "causal machine learning. NBER working paper 30302."
)
IMBENS = (
    "Imbens GW, Angrist JD (1994). Identification and estimation of local average treatment effects. Econometrica "
    "62(2), 467-475."
)
TAN = (
    "Tan Z (2006). Regression and weighting methods for causal inference using instrumental variables. Journal of the "
    "American Statistical Association 101(476), 1607-1618."
)
DAHABREH = (
    "Dahabreh IJ, Robertson SE, Steingrimsson JA, Stuart EA, Hernán MA (2020). Extending inferences from a randomized "
    "trial to a new target population. Statistics in Medicine 39(14), 1999-2014."
)
BOOTSTRAP = "Efron B, Tibshirani R (1993). An Introduction to the Bootstrap. Chapman & Hall."


def certificate_section(material: Material) -> Section:
    """The proof, the splits that it covers, and what it does not imply."""
    facts = certificate(material.model, material.study.value)
    return Section(
        "certificate",
        "Certificate",
        (Facts(tuple(facts.items())), Words(SCOPE.get(material.model.status_, BOUNDED) + ELSEWHERE)),
    )


def methods_section(material: Material) -> Section:
    """A paragraph for a paper, with the references that it needs."""
    sentences, references = _methods(material)
    return Section("methods", "Methods, for a paper", (Words(" ".join(sentences)), Steps(tuple(references))))


class References:
    """The references of a text, in the order in which they are cited.

    Attributes
    ----------
    texts : list of str
    """

    def __init__(self) -> None:
        self.texts: list[str] = []

    def cite(self, *texts: str) -> str:
        """Their numbers, as they stand in the text."""
        self.texts.extend(text for text in texts if text not in self.texts)
        return "[" + ", ".join(str(self.texts.index(text) + 1) for text in texts) + "]"


def _methods(material: Material) -> tuple[list[str], list[str]]:
    study, model = material.study, material.model
    references = References()
    cite = references.cite

    seen = study.seen
    arms = ", ".join(str(label) for label in seen.treatments)
    goal = "largest" if study.direction == "maximize" else "smallest"
    sentences = [
        f"We looked for a rule that assigns one of {seen.n_arms} treatments ({arms}) such that the "
        f"{study.value} is {goal}, from {seen.n:,} rows" + _clusters(material) + "."
    ]
    if study.by_offers:
        sentences += _by_offers(material, cite)
    elif material.rewards is not None:
        known = "known by design" if material.known_propensity else "estimated"
        folds = f"{material.rewards.cv}-fold " if isinstance(material.rewards.cv, int | np.integer) else ""
        sentences.append(
            f"Rewards of every treatment were estimated by {folds}cross-fitted augmented inverse propensity weighting "
            f"{cite(ROBINS, CROSS_FITTING)}, with propensities {known}."
        )
        if material.learnt_from:
            sentences.append(
                "These judge rules; the tree was learnt from rewards of the same rows by the method "
                f"{material.learnt_from}."
            )
        if material.to_target:
            n_target = int((material.rewards.population_ > 0.0).sum())
            sentences.append(
                f"Values and effects are those of another population, {n_target:,} people of whom covariates are "
                "known: rewards are the outcome models' predictions for these people, and residuals of the study "
                f"weighted by the estimated odds of belonging to them {cite(DAHABREH)}. People with the same "
                "covariates are taken to have the same effects in both (transportability)."
            )
    if material.rewards is not None:
        if study.times is not None:
            sentences.append(
                "Censored outcomes were replaced by their augmented inverse probability of censoring weighted "
                f"counterparts, from cross-fitted models of the hazards of events and of censoring {cite(RUBIN, CUI)}."
            )
        elif study.missing is not None:
            sentences.append(
                f"Outcomes were missing in {study.missing.sum():,} rows; residuals were weighted by the inverse of the "
                f"estimated probability of being seen as well {cite(ROBINS)}."
            )
    size = getattr(model, "max_depth_", model.max_depth)
    depth = "without a limit on its depth" if size is None else f"of depth at most {size}"
    best = "best mean of the rewards that it learnt from" if material.learnt_from else "best mean reward"
    proved = PROVED.get(model.status_, "not proved")
    sentences.append(
        f"Among all trees {depth} on {model.search_grid_}, policytree {__version__} searched for the one with the "
        f"{best} {cite(ATHEY_WAGER, ZHOU)}; that none is better was {proved} (optimality gap "
        f"{model.optimality_gap_:.3g})."
    )
    return sentences + _evidence(material, cite), references.texts


def _by_offers(material: Material, cite) -> list[str]:
    """How rewards were learnt from offers."""
    study, rewards = material.study, material.rewards
    instrument = study.observed.instrument
    assert instrument is not None, "there are offers"
    first, second = study.seen.treatments.tolist()
    offers, known = (
        ", ".join(map(str, instrument.offers)),
        "known by design" if material.known_propensity else "estimated",
    )
    folds = f"{rewards.cv}-fold " if isinstance(rewards.cv, int | np.integer) else ""
    said = [
        f"Offers ({offers}) served as an instrument for the treatment that people took {cite(IMBENS)}: "
        f"they are taken to bear on the outcome only through {second} (exclusion), and to keep nobody from what they "
        "bring others to (monotonicity)."
    ]
    if rewards.estimand == COMPLIERS:
        how = (
            f"The reward of {second} over {first} was the contrast of offers of their {folds}cross-fitted doubly "
            f"robust scores {cite(TAN, CROSS_FITTING)}: the gain of those who follow the offers per person of all"
        )
    else:
        how = (
            f"The reward of {second} over {first} was the {folds}cross-fitted doubly robust score of the local average "
            f"treatment effect given the covariates {cite(ATHEY_WAGER, CROSS_FITTING)} (equation 44)"
        )
    return [*said, f"{how}, with probabilities of the offers {known}."]


def _clusters(material: Material) -> str:
    groups = material.study.seen.groups
    return "" if groups is None else f" in {len(np.unique(groups)):,} clusters, which no fold divides"


def _evidence(material: Material, cite) -> list[str]:
    """How the rule was judged, a sentence for each result that is there."""
    said = []
    values = material.only(PolicyValueTable)
    if values is not None:
        level = 100 * values.against_best.level
        said.append(
            f"The value of the rule was estimated on rows that had no part in learning it, by "
            f"{values.validation.describe(values.n_repeats)}; intervals have a nominal coverage of {level:g} %."
        )
    if (rule := material.only(OfferRule)) is not None:
        said.append(f"A tree over the offers themselves (intention to treat), {rule.costs_text()}, stands beside it.")
    if material.only(HonestLeaves) is not None:
        said.append(
            f"Values in the leaves come from rows that did not choose the tree {cite(HONEST)}, with simultaneous "
            "intervals."
        )
    if material.only(HeterogeneityTest) is not None:
        said.append(f"Whether effects differ between people was tested sequentially {cite(SEQUENTIAL)}.")
    if material.of(MarginalSensitivity):
        said.append(f"Hidden confounding was bounded by the marginal sensitivity model {cite(MARGINAL)}.")
    if material.of(OmittedVariableBounds):
        said.append(f"Hidden confounding was bounded as omitted variable bias {cite(OMITTED)}.")
    if (stability := material.only(PolicyStability)) is not None:
        said.append(f"Stability was assessed on {stability.n_resamples} resamples {cite(BOOTSTRAP)}.")
    return said


def _on_one_line(value: Any) -> str:
    """A setting as it is typed; estimators among them say only what differs from their defaults, in full."""
    is_estimator = isinstance(value, BaseEstimator)
    text = BaseEstimator.__repr__(value, N_CHAR_MAX=math.inf) if is_estimator else repr(value)
    return " ".join(line for line in map(str.strip, text.split("\n")) if line)


def versions_text() -> str:
    """The versions of this package, of Python and of what numbers depend on."""
    versions = [f"policytree {__version__}", f"Python {platform.python_version()}"]
    return ", ".join([*versions, *(f"{name} {metadata.version(name)}" for name in PACKAGES)])


def settings(model: BaseEstimator) -> list[tuple[str, str]]:
    """The arguments of an estimator that differ from their defaults, but for those that change no result."""
    usual = type(model)().get_params(deep=False)
    given = {k: v for k, v in model.get_params(deep=False).items() if k not in ("verbose", "n_jobs", "random_state")}
    changed = {name: value for name, value in given.items() if repr(value) != repr(usual[name])}
    return [(name, _on_one_line(value)) for name, value in sorted(changed.items())]


def reproduce_section(material: Material) -> Section:
    """Versions, seeds, settings and the command."""
    model = material.model
    facts = [("versions", versions_text()), ("seed", str(getattr(model, "random_state", None))), *settings(model)]
    blocks: tuple[Block, ...] = (Facts(tuple(facts)),)
    if material.study.about.command:
        blocks = (*blocks, Code(material.study.about.command))
    return Section("reproduce", "To do it again", blocks)
