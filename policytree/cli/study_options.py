"""What the options of the command line say of a study: which argument of ``Study`` and its kinds each one is.

Imports nothing heavy. ``tests/cli/test_study_options.py`` holds both together.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from policytree.common.option_words import typed
from policytree.exceptions import InputError

# By the arguments of Study: the options that say them.
STUDY: dict[str, tuple[str, ...]] = {
    "table": (),  # DATA, or --dataset
    "treatment": ("treatment",),
    "outcome": ("outcome",),
    "direction": ("direction",),
    "covariates": ("covariates",),
    "confounders": ("confounders",),
    "exclude": ("exclude",),
    "propensity": ("propensity",),
    "randomized": ("randomized",),
    "control": ("control",),
    "cluster": ("cluster",),
    "strata": ("strata",),
    "weights": ("weights",),
    "arm_costs": ("arm_cost",),
    "budget_costs": ("budget_cost",),
    "further_outcomes": ("limit", "at_least", "also"),
    "subgroups": ("parity", "value_parity", "worst_group", "subgroups"),
    "population": ("target_people", "study_column"),
    "unit": ("unit",),
    "name": (),  # that of the file, or the data set
}
# By the names of kinds, and their arguments: the option. The column of the outcome, or the treatment, is above.
KINDS: dict[str, dict[str, str]] = {
    "Event": {"value": "event"},
    "TimeToEvent": {
        "event": "event_column", "happened": "event", "cause": "cause", "horizon": "horizon", "measure": "target",
        "entry": "entry_column",
    },
    "MayBeMissing": {"of": "missing_outcome"},
    "Offered": {"by": "instrument"},
    "Combined": {"of": "treatment"},
    "Population": {"people": "target_people"},  # and weights, in Python only
}  # fmt: skip


def option(name: str) -> str:
    """The option of an argument, as it is typed."""
    return f"--{name.replace('_', '-')}"


_OPTIONS = {name: option(options[0]) for name, options in STUDY.items() if options}
_OPTIONS |= {field: option(name) for field, name in KINDS["TimeToEvent"].items() if name}
_OPTIONS |= {"offer": "--instrument", "instrument": "--instrument", "target": "--target"}
_OPTIONS |= {"missing_outcome": "--missing-outcome"}
_NAMES = "|".join(sorted(_OPTIONS, key=len, reverse=True))
_SAID = re.compile(
    rf"(?P<role>(?<=\()(?:{_NAMES})(?=\)| of ))"  # Column 'x' (covariates)
    rf"|(?P<value>\b(?!horizon\b)(?:{_NAMES})=(?P<text>'[^']*'|[\w.+-]+))"  # such as cause='2'
    rf"|(?P<first>^(?:{_NAMES})(?= (?:and|names|must|is|has|gives|never)\b))"  # propensity has no ...
    r"|(?P<other>(?<=\band )cause(?= both)|(?<=[Ww]ith )cause\b|(?<=leave )(?:happened|cause|exclude)\b"
    r"|(?<=by )(?:exclude|covariates)\b|(?<=, or )outcome(?= names))"
)


def in_options(sentence: str) -> str:
    """A sentence about arguments of ``Study`` and its kinds, in the words of the command line."""

    def said(found: re.Match[str]) -> str:
        if found["value"]:
            name, _, text = found["value"].partition("=")
            return f"{_OPTIONS[name]} {typed(ast.literal_eval(text) if text[0] == chr(39) else text)}"
        return _OPTIONS[found[0]]

    return _SAID.sub(said, sentence)


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """The options that say what a study is, as texts; None (or nothing) where the user gave none."""

    treatment: str | None = None
    outcome: str | None = None
    covariates: str | None = None
    confounders: str | None = None
    propensity: str | None = None
    cluster: str | None = None
    weights: str | None = None
    direction: str | None = None
    strata: str | None = None
    exclude: str | None = None
    event: str | None = None
    arm_cost: tuple[str, ...] = ()
    event_column: str | None = None
    horizon: float | None = None
    target: str | None = None
    cause: str | None = None
    entry_column: str | None = None
    missing_outcome: str | None = None
    instrument: str | None = None
    offer_cost: tuple[str, ...] = ()
    taker_cost: float | None = None
    limit: tuple[str, ...] = ()
    at_least: tuple[str, ...] = ()
    also: str | None = None
    parity: tuple[str, ...] = ()
    value_parity: tuple[str, ...] = ()
    worst_group: str | None = None
    subgroups: str | None = None
    randomized: bool = False


def refuse_unnamed(options: StudyOptions, columns: list[str]) -> None:
    """Refuse options that name no treatment, or no outcome.

    Raises
    ------
    InputError
    """
    missing = [option(name) for name in ("treatment", "outcome") if getattr(options, name) is None]
    if missing:
        what = "is missing; name the column, one" if len(missing) == 1 else "are missing; name the columns, two"
        raise InputError(f"{' and '.join(missing)} {what} of {', '.join(columns[:20])}.")
