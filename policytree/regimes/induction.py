"""Backward induction: every stage is learnt from its own utility and the scores of what the later rules bring.

With histories H_s, treatments A_s, utilities Y_s and later rules pi_{s+1}, ..., the score of treatment a at stage s is

    Gamma_s(a) = Q_s(H_s, a) + 1{A_s = a} / g_s(A_s | H_s) (Y_s + V_{s+1} - Q_s(H_s, A_s)),
    V_s = Gamma_s(pi_s(H_s)),  V after the last stage = 0,

the doubly robust reward of the outcome Y_s + V_{s+1} (Nordland and Holst, Journal of Statistical Software 116(4);
Zhang, Tsiatis, Laber and Davidian, Biometrika 100(3), 2013). Mean V_1 is the value of all rules together: unbiased if
at every stage Q or g is right. People who are not eligible carry Y_s + V_{s+1} on as it is.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from policytree.exceptions import InputError, OverlapWarning
from policytree.regimes.course import Course
from policytree.weighting.study_data import WEIGHT

PENALTY = 100.0  # ranges of the outcome, per person: more than what a rule can gain by a treatment that is not allowed


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """Covariates of some people at a stage, as known to a rule and to the models of nuisances.

    Attributes
    ----------
    X : DataFrame
        Columns that the rule may use.
    W : DataFrame or None
        Everything else that was known by then.
    """

    X: pd.DataFrame
    W: pd.DataFrame | None

    @property
    def arguments(self) -> dict[str, Any]:
        """X and W, as estimators of rewards take them."""
        return {"X": self.X, "W": self.W}


def known_at(course: Course, s: int, rows: np.ndarray, visible: Any) -> Known:
    """Histories of some people at stage ``s``, divided into what the rule sees and the rest.

    Parameters
    ----------
    visible : {"all", "current"} or list of column names
        The whole history; the stage's own columns; or these columns of the history.
    """
    history, more = course.history(s, rows), course.confounders(s, rows)
    own = list(course.decisions[s].X.columns)
    columns = list(history.columns) if _is(visible, "all") else own if _is(visible, "current") else list(visible)
    lacking = [name for name in columns if name not in history.columns]
    name = course.decisions[s].name
    if lacking:
        known = ", ".join(map(str, history.columns))
        raise InputError(f"history of {name} names {lacking[0]!r}, which is not known by then; known are {known}.")
    if not columns:
        raise InputError(f"Nothing is known at {name} that its rule could look at; give it X.")
    hidden = [name for name in history.columns if name not in set(columns)]
    rest = pd.concat([history[hidden], more], axis=1)
    return Known(history[columns], rest if rest.shape[1] else None)


def _is(visible: Any, word: str) -> bool:
    return isinstance(visible, str) and visible == word


def stage_arguments(course: Course, s: int, rows: np.ndarray, outcome: np.ndarray, known: Known) -> dict[str, Any]:
    """Collect the arguments of ``DRPolicyTree.fit`` and ``RewardEstimator.fit`` for these people.

    Parameters
    ----------
    rows : ndarray of int
        Eligible people.
    outcome : ndarray of shape (len(rows),)
        Their utility of this stage and of all later ones; NaN where it is unknown.
    """
    decision = course.decisions[s]
    own = {name: getattr(course, name) for name in ("sample_weight", "groups", "strata")}
    arguments: dict[str, Any] = {name: None if each is None else each[rows] for name, each in own.items()}
    arguments |= {"Y": outcome, "T": decision.given(rows), "propensity": decision.chances(rows), **known.arguments}
    if np.isnan(outcome).any():
        arguments["missing_outcome"] = WEIGHT
    return arguments


def charges(course: Course, s: int, rows: np.ndarray, outcome: np.ndarray, direction: str) -> np.ndarray | None:
    """Return costs of treatments for these people, (len(rows), K); one not allowed costs more than any gain."""
    decision = course.decisions[s]
    costs = None if decision.costs is None else decision.costs[rows]
    if decision.allowed is None:
        return costs
    seen = outcome[~np.isnan(outcome)]
    penalty = PENALTY * len(rows) * (float(np.ptp(seen)) + 1.0)
    denied = np.where(decision.allowed[rows], 0.0, penalty)
    return denied if costs is None else costs + denied


@contextmanager
def silent_on_denied(course: Course, s: int) -> Iterator[None]:
    """Keep silent on the chance of a treatment that somebody may not get: it divides nothing."""
    decision = course.decisions[s]
    with warnings.catch_warnings():
        if decision.allowed is not None and decision.per_row:
            warnings.filterwarnings("ignore", "The given propensity", OverlapWarning)
        yield


def refuse_denied(course: Course, s: int, rows: np.ndarray, codes: np.ndarray) -> None:
    """Refuse a rule that gives people of its own fit what they may not get."""
    decision = course.decisions[s]
    if decision.allowed is None:
        return
    denied = ~decision.allowed[rows, codes]
    if denied.any():
        k = codes[np.flatnonzero(denied)[0]]
        raise InputError(
            f"No tree of this size keeps to allowed at {decision.name}: it gives {decision.treatments[k]!s} to "
            f"{int(denied.sum())} people who may not get it. Let it see what allowed depends on, or raise max_depth."
        )


def net(rewards: np.ndarray, costs: np.ndarray | None, direction: str) -> np.ndarray:
    """Rewards (n, K) after what treatments cost."""
    if costs is None:
        return rewards
    return rewards - costs if direction == "maximize" else rewards + costs


def within_allowed(
    course: Course, s: int, rows: np.ndarray, codes: np.ndarray, expected: Callable[[], np.ndarray]
) -> np.ndarray:
    """Replace a rule's treatments, for those who may not get them, by the best that they may, by expected outcomes.

    Parameters
    ----------
    expected : callable () -> ndarray of shape (len(rows), K)
        Expected outcomes, larger better.
    """
    decision = course.decisions[s]
    if decision.allowed is None:
        return codes
    allowed = decision.allowed[rows]
    denied = ~allowed[np.arange(len(rows)), codes]
    if not denied.any():
        return codes
    best = np.where(allowed, expected(), -np.inf).argmax(axis=1)
    return np.where(denied, best, codes)


def positions(labels: np.ndarray, treatments: np.ndarray) -> np.ndarray:
    """Positions of labels among the treatments of a stage."""
    return pd.Index(treatments).get_indexer(pd.Index(labels))
