"""What the user's columns are for: from a table and options to the arguments of an estimator."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from policytree.cli.tables import column_names, read_table, require_column
from policytree.datasets import Dataset, load_dataset
from policytree.evaluation import DIRECTIONS
from policytree.exceptions import InputError
from policytree.study_check.columns import column_findings
from policytree.weighting.observed import Observed, observe

MOST_CATEGORIES = 50  # text columns with more values are names or keys, unless the user asks for them


@dataclass(frozen=True, slots=True)
class Roles:
    """The options that say what a column is for; None where the user said nothing."""

    treatment: str | None = None
    outcome: str | None = None
    covariates: str | None = None
    confounders: str | None = None
    propensity: str | None = None
    cluster: str | None = None
    weights: str | None = None
    direction: str | None = None
    strata: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """A table whose columns have their roles.

    Attributes
    ----------
    source : str
        File or data set.
    frame : DataFrame
    treatment, outcome, unit, direction : str
        ``unit`` says what the outcome measures, "" if unknown.
    covariates, confounders : tuple of str
    cluster, weights : str or None
    strata : tuple of str
        Columns of the blocks within which treatment was assigned.
    propensity : mapping, Series, DataFrame, float or None
        As ``DRPolicyTree.fit`` takes it.
    propensity_text : str
        Where it comes from.
    observed : Observed
        Outcome, arms, weights and clusters, checked.
    notes : tuple of str
        What was decided without being asked.
    """

    source: str
    frame: pd.DataFrame
    treatment: str
    outcome: str
    unit: str
    direction: str
    covariates: tuple[str, ...]
    confounders: tuple[str, ...]
    cluster: str | None
    weights: str | None
    propensity: object
    propensity_text: str
    observed: Observed
    notes: tuple[str, ...] = field(default=())
    strata: tuple[str, ...] = ()

    @property
    def X(self) -> pd.DataFrame:
        """What the tree may split on, (n, p)."""
        return self.frame[list(self.covariates)]

    def fit_arguments(self, budget_costs: dict[str, float | str] | None = None) -> dict:
        """Arguments of ``fit(Y, T, *, X, W, propensity, sample_weight, groups, strata)``, and costs if there are any.

        What a treatment costs is a number or the name of a column.
        """
        frame = self.frame
        costs = {k: frame[cost] if isinstance(cost, str) else cost for k, cost in (budget_costs or {}).items()}
        return ({"budget_costs": costs} if costs else {}) | {
            "Y": frame[self.outcome],
            "T": frame[self.treatment],
            "X": self.X,
            "W": frame[list(self.confounders)] if self.confounders else None,
            "propensity": self.propensity,
            "sample_weight": None if self.weights is None else frame[self.weights],
            "groups": None if self.cluster is None else frame[self.cluster],
            "strata": frame[list(self.strata)] if self.strata else None,
        }


def study_from_file(path: str, roles: Roles) -> Study:
    """Read a file and give its columns their roles.

    Raises
    ------
    InputError
        If something is missing or cannot be used.
    """
    frame = read_table(path)
    for name, option in ((roles.treatment, "--treatment"), (roles.outcome, "--outcome")):
        if name is None:
            raise InputError(f"{option} is missing; name the column, one of {', '.join(frame.columns[:20])}.")
    return _build(path, frame, roles, direction=roles.direction or "maximize")


def study_from_dataset(name: str, data_dir: str | None, roles: Roles) -> Study:
    """Load a built-in study; what the user's options say comes first.

    Raises
    ------
    InputError
        As :func:`study_from_file`, and if there is no such study.
    """
    dataset = load_dataset(name, data_dir=data_dir)
    own_treatment = roles.treatment in (None, dataset.treatment)
    merged = Roles(
        treatment=roles.treatment or dataset.treatment,
        outcome=roles.outcome or dataset.outcome,
        covariates=roles.covariates or _joined(dataset.covariates),
        confounders=roles.confounders or _joined(dataset.confounders),
        propensity=roles.propensity,
        cluster=roles.cluster or dataset.groups,
        weights=roles.weights,
        strata=roles.strata,
    )
    known = dataset.propensity if own_treatment and roles.propensity is None else None
    return _build(name, dataset.frame, merged, roles.direction or dataset.direction, dataset, known)


def tree_options(options: dict, study: Study) -> dict:
    """The tree's options as its estimator takes them: what names covariates and treatments is read and checked.

    Raises
    ------
    InputError
        If a name is no covariate, a cost no number >= 0, or a share or what a treatment costs no number.
    """
    costs: dict[str, float] = {}
    for text in options["feature_costs"] or ():
        if "=" not in text:
            raise InputError(f"--feature-cost {text!r} is no COLUMN=X; give a covariate and its cost, as in age=2.")
        name, _, value = (piece.strip() for piece in text.rpartition("="))
        require_column(name, "--feature-cost", study.X)
        cost = _number(value)
        if cost is None or not 0 <= cost < np.inf or name in costs:
            wrong = "twice" if name in costs else f"as {value!r}"
            raise InputError(
                f"--feature-cost gives the cost of {name!r} {wrong}; give one number >= 0, as in {name}=2."
            )
        costs[name] = cost
    groups = [column_names(text, "--feature-group", study.X) for text in options["feature_groups"] or ()] or None
    repeated = options["repeated_features"] or ("charged" if groups is None else "free")
    roots = column_names(options["root_feature"], "--root-feature", study.X)
    limits = {kind: _by_treatment(options[kind], kind) or None for kind in ("max_share", "min_share")}
    spending = _by_treatment(options["budget_costs"], "budget_cost", study.frame) or None
    named = {"feature_costs": costs or None, "root_feature": roots or None, "budget_costs": spending}
    return {**options, **named, **limits, "feature_groups": groups, "repeated_features": repeated}


def _by_treatment(texts: list[str] | None, argument: str, frame: pd.DataFrame | None = None) -> dict[str, float | str]:
    """What LABEL=X options say: a number, or with a frame the name of one of its columns."""
    option, found = f"--{argument.replace('_', '-')}", dict[str, float | str]()
    for text in texts or ():
        name, _, value = (piece.strip() for piece in text.rpartition("="))
        number: float | str | None = _number(value)
        if number is None and frame is not None and value in frame.columns:
            number = value
        if not name or number is None or name in found:
            wrong = f"names {name!r} twice" if name in found else f"{text!r} cannot be read"
            columns = " or a column" if frame is not None else ""
            raise InputError(f"{option} {wrong}; give a treatment and a number{columns}, as in drug=0.3.")
        found[name] = number
    return found


def _joined(names: tuple[str, ...]) -> str | None:
    return ",".join(names) or None


def _build(source, frame, roles: Roles, direction: str, dataset: Dataset | None = None, known=None) -> Study:
    if direction not in DIRECTIONS:
        raise InputError(f"--direction must be maximize or minimize; got {direction!r}.")
    for role in ("treatment", "outcome", "cluster", "weights"):
        if getattr(roles, role) is not None:
            require_column(getattr(roles, role), f"--{role}", frame)
    strata = tuple(column_names(roles.strata, "--strata", frame))
    observed = observe(
        frame[roles.outcome],
        frame[roles.treatment],
        strata=frame[list(strata)] if strata else None,
        sample_weight=None if roles.weights is None else frame[roles.weights],
        groups=None if roles.cluster is None else frame[roles.cluster],
    )
    propensity, text, columns = _propensity(roles.propensity, frame, observed.treatments)
    if known is not None:
        propensity, text = known, "known: " + _shares(known)
    assert roles.treatment is not None and roles.outcome is not None, "asked for by both callers"
    taken = {"treatment": roles.treatment, "outcome": roles.outcome}
    _refuse_taken([roles.outcome], "--outcome", {"treatment": roles.treatment})
    for option, name in (("--weights", roles.weights), ("--cluster", roles.cluster)):
        _refuse_taken([name] if name else [], option, taken)
    used = {roles.treatment, roles.outcome, roles.cluster, roles.weights, *columns}
    confounders = column_names(roles.confounders, "--confounders", frame)
    _refuse_taken(confounders, "--confounders", taken)
    _refuse_taken(list(strata), "--strata", taken)
    if roles.covariates is None:
        covariates, notes = _default_covariates(frame, used | set(confounders))
    else:
        covariates, notes = column_names(roles.covariates, "--covariates", frame), []
        _refuse_taken(covariates, "--covariates", taken)
        confounders = [name for name in confounders if name not in covariates]
    unit = "" if dataset is None else dataset.outcomes.get(roles.outcome, "")
    return Study(
        str(source), frame, roles.treatment, roles.outcome, unit, direction, tuple(covariates), tuple(confounders),
        roles.cluster, roles.weights, propensity, text, observed, tuple(notes),
        strata,
    )  # fmt: skip


def _refuse_taken(names: list[str], option: str, taken: dict[str, str]) -> None:
    for role, name in taken.items():
        if name in names:
            raise InputError(f"{option} names {name!r}, which is the {role}; leave it out.")


def _default_covariates(frame: pd.DataFrame, used: set[str]) -> tuple[list[str], list[str]]:
    """Every column without another role, but for those that no rule could use; and what to tell the user."""
    chosen, notes = [], []
    for name in frame.columns:
        column = frame[name]
        if name in used:
            continue
        if not pd.api.types.is_numeric_dtype(column) and column.nunique() > MOST_CATEGORIES:
            notes.append(_left_out(column))
        elif pd.api.types.is_datetime64_any_dtype(column):
            notes.append(f"Column {name!r} holds dates and was left out of the covariates.")
        else:
            chosen.append(name)
    if not chosen:
        raise InputError("No column is left for the tree to split on; name some with --covariates.")
    notes.insert(0, "Without --covariates, every column without another role is a covariate: they must be known "
                 "before treatment is chosen.")  # fmt: skip
    return chosen, notes


def _left_out(column: pd.Series) -> str:
    """Say that a column of many texts was left out, and what to do if it holds numbers or dates."""
    text = f"Column {column.name!r} has {column.nunique():,} different texts and was left out of the covariates."
    for finding in column_findings(column, None):
        if finding.kind in ("numbers as text", "dates"):
            text += f" It {finding.found}. {finding.remedy}"
    return text


def _shares(propensity: dict) -> str:
    return ", ".join(f"{label} {share:g}" for label, share in propensity.items())


def _propensity(text: str | None, frame: pd.DataFrame, treatments: np.ndarray):
    """The propensity as ``fit`` takes it, words for it, and the columns it uses."""
    if text is None:
        return None, "estimated from the covariates and confounders", []
    if "=" in text and text not in frame.columns:
        return _propensity_by_label(text, frame, treatments)
    number = _number(text)
    if number is None:
        require_column(text, "--propensity", frame)
    if len(treatments) != 2:
        raise InputError(
            f"--propensity gives one probability, but there are {len(treatments)} treatments; give one for each: "
            f"{','.join(f'{label}=...' for label in treatments)}."
        )
    second = treatments[1]
    if number is None:
        _check_probabilities(frame[text], text)
        return frame[text], f"known: column {text}, the probability of {second}", [text]
    if not 0.0 < number < 1.0:
        raise InputError(f"--propensity is {number:g}; the probability of {second} must lie strictly between 0 and 1.")
    return number, f"known: {number:g} for {second}", []


def _propensity_by_label(text: str, frame: pd.DataFrame, treatments: np.ndarray):
    """Propensities given as label=number or label=column, for every label."""
    labels = {str(label): label for label in treatments}
    given: dict = {}
    columns = []
    for part in text.split(","):
        name, _, value = (piece.strip() for piece in part.rpartition("="))
        if name not in labels:
            raise InputError(f"--propensity names the treatment {name!r}; the treatments are {', '.join(labels)}.")
        number = _number(value)
        if number is None:
            require_column(value, "--propensity", frame)
            _check_probabilities(frame[value], value)
            columns.append(value)
        elif not 0.0 < number < 1.0:
            raise InputError(f"--propensity of {name} is {number:g}; it must lie strictly between 0 and 1.")
        given[labels[name]] = frame[value] if number is None else number
    lacking = [name for name, label in labels.items() if label not in given]
    if lacking:
        raise InputError(f"--propensity has no probability for treatment {lacking[0]}; give one for each treatment.")
    if columns:
        return pd.DataFrame(given, index=frame.index), f"known: {text}", columns
    total = sum(given.values())
    if abs(total - 1.0) > 1e-6:
        raise InputError(f"The probabilities of --propensity sum to {total:g}, not to 1.")
    return given, "known: " + _shares(given), []


def _check_probabilities(column: pd.Series, name: str) -> None:
    values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
    bad = np.flatnonzero(~((values > 0.0) & (values < 1.0)))
    if len(bad):
        raise InputError(
            f"Column {name!r} (--propensity) is {column.iloc[bad[0]]} in row {bad[0]}; probabilities must lie strictly "
            "between 0 and 1: leave out rows that could not get every treatment."
        )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
