"""Options of the command line about a study: which argument of ``Study`` and its kinds each one is.

Imports nothing heavy. ``tests/cli/test_study_options.py`` holds both together.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

from policytree.cli.option_fields import asked, option
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
    "name": (),  # of the file, or the data set
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
IN_PYTHON_ONLY = ("Rewards", "Label", "Unassigned")  # kinds that commands do not take


COLUMN, COLUMNS = "COLUMN", "COLUMNS"
ABOUT_COLUMNS, ABOUT_LIMITS, ABOUT_TREE = "Columns and their roles", "Other outcomes and groups of people", "The tree"


_said = partial(asked, panel=ABOUT_COLUMNS)


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """The options that say what a study is, as texts; None (or nothing) where the user gave none."""

    treatment: str | None = _said(COLUMN, "Column of the treatment each row got; of several: a,b.")
    outcome: str | None = _said(COLUMN, "Column of the outcome: numbers, or texts with --event.")
    event: str | None = _said(
        "TEXT",
        "For an outcome in texts: the one that counts as 1, all others as 0. With --event-column: the value of that "
        "column that stands for the event, all others being censored.",
    )
    event_column: str | None = _said(
        COLUMN,
        "The outcome is a time, and this column says how it ended: 1 (or true) at the event, 0 (or false) where the "
        "row was censored. Other values go with --event or --cause.",
    )
    horizon: float | None = _said(
        "H",
        "Time up to which events count, in the outcome's unit. Default: the last time at which a tenth of the rows of "
        "every treatment is still followed, or 95% of their outcomes are known.",
    )
    target: str | None = _said(
        "TARGET",
        "Of times to an event, what counts: rmst (mean time without event up to the horizon) or survival (share "
        "without event); with --cause years_lost (mean time lost to it) or cumulative_incidence (share with an event "
        "of it). Default: rmst; with --cause years_lost.",
    )
    cause: str | None = _said(
        "VALUE",
        "With several causes of events: the value of --event-column that is asked about; 0 (or censored) stands for "
        "censoring. Needs --direction.",
    )
    entry_column: str | None = _said(
        COLUMN, "Column of the times from which on rows were followed, where that is later than 0 (left truncation)."
    )
    missing_outcome: str | None = _said(
        "WAY", "Rows without an outcome: refuse, or weight (keep them, and weight for who is missing). Default: refuse."
    )
    instrument: str | None = _said(
        COLUMN,
        "Column of what each row was offered, where people may refuse it: the tree is then one for those who follow "
        "the offers, of two treatments. --propensity is the chance of the offers.",
    )
    offer_cost: tuple[str, ...] = _said(
        "LABEL=X",
        "With --instrument: what an offer costs, taken or not, in the outcome's unit: a number or a column. Once for "
        "each that is not free.",
        default=(),
    )
    taker_cost: float | None = _said(
        "X",
        "With --instrument: what everybody who takes the second treatment (in sorted order) costs, in the outcome's "
        "unit.",
    )
    covariates: str | None = _said(COLUMNS, "Columns that the tree may split on: a,b,c. Default: all other columns.")
    exclude: str | None = _said(COLUMNS, "All other columns are covariates but these: a,b,c.")
    confounders: str | None = _said(COLUMNS, "Further columns to adjust for, which the tree does not see: a,b,c.")
    propensity: str | None = _said(
        "P",
        "Known probabilities of treatment: 0.5, a column (two arms: of the second in sorted order), or label=number,..."
        " or label=column,... With --id the same at every decision, labels of all decisions together; never that of "
        "the treatment that was given. Default: estimated.",
    )
    randomized: bool = _said(
        "",
        "Treatments were drawn by lot, with probabilities that --propensity does not say: they are estimated, but "
        "nothing hidden decided, and nobody would get the mixture that was drawn.",
        default=False,
    )
    arm_cost: tuple[str, ...] = _said(
        "LABEL=X",
        "Cost of a treatment, in the outcome's unit: a number or a column; values are net of it. Once for each.",
        default=(),
    )
    cluster: str | None = _said(COLUMN, "Column of clusters: rows that share one are dependent.")
    strata: str | None = _said(COLUMNS, "Columns of the blocks within which treatment was assigned: a,b.")
    weights: str | None = _said(COLUMN, "Column of sampling weights.")
    direction: str | None = _said(
        "WAY",
        "maximize or minimize the outcome. Default: the study's; else maximize, which the verdict mentions, and which "
        "is refused where the outcome's name sounds like harm.",
        panel=ABOUT_TREE,
    )
    limit: tuple[str, ...] = _said(
        "COLUMN=X",
        "A further outcome, and the most that its mean may be under the tree, such as a harm; once for each. The "
        "column is then no covariate.",
        panel=ABOUT_LIMITS,
        default=(),
    )
    at_least: tuple[str, ...] = _said(
        "COLUMN=X",
        "A further outcome of which more is better, and the least that its mean may be; once for each.",
        panel=ABOUT_LIMITS,
        default=(),
    )
    also: str | None = _said(COLUMNS, "Further outcomes that are judged, but not limited: a,b,c.", panel=ABOUT_LIMITS)
    parity: tuple[str, ...] = _said(
        "COLUMN=P",
        "A column of groups, and the most by which the share that gets a treatment may differ between any two of them; "
        "once for each. The tree does not ask about it, unless --covariates names it.",
        panel=ABOUT_LIMITS,
        default=(),
    )
    value_parity: tuple[str, ...] = _said(
        "COLUMN=X", "The same of the mean outcomes of the groups.", panel=ABOUT_LIMITS, default=()
    )
    worst_group: str | None = _said(
        COLUMN,
        "Judge trees by the group of this column that they serve worst, not by the mean over everybody. The tree does "
        "not ask about it, unless --covariates names it.",
        panel=ABOUT_LIMITS,
    )
    subgroups: str | None = _said(
        COLUMNS, "Columns of groups by which the tree is only described: a,b,c.", panel=ABOUT_LIMITS
    )

    def of_one_column(self) -> StudyOptions:
        """Without options of several columns, and the propensity."""
        listed: dict[str, Any] = {each.name: None for each in fields(self) if each.metadata["metavar"] == COLUMNS}
        return replace(self, propensity=None, **listed)

    def named(self, metavar: str) -> dict[str, str | None]:
        """Return the values of options that name a column, or columns."""
        every = (each for each in fields(self) if each.metadata["metavar"] == metavar)
        return {option(each.name): getattr(self, each.name) for each in every}


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
