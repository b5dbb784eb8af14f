"""One decision of a regime, as the user says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from policytree.common.typing import Column, PerTreatment, Table


@dataclass(frozen=True, eq=False)
class Stage:
    """One decision of a regime: what was known by then, what was given, what it brought.

    All tables and columns have one row per person, in the same order at every stage.

    Parameters
    ----------
    T : column of n labels
        Treatment that each person received; missing for people who were not eligible. None where a rule is asked for a
        recommendation (:meth:`TreatmentRegime.predict`).
    X : table of shape (n, p), optional
        Covariates known before this decision, which its rule may use. Earlier stages are added automatically.
    W : table of shape (n, q), optional
        Further confounders, for adjustment only.
    Y : column of n numbers, optional
        Utility of the time from this decision to the next one, in the outcome's unit; utilities of all stages are
        summed. None: nothing (the outcome comes at a later stage). A missing value says that a person was lost: neither
        this nor any later outcome is known. People who left for good, such as those who died, bring 0 from then on.
    eligible : column of n booleans (or 0 and 1), optional
        People for whom there was something to decide; by default all whose T is not missing.
    propensity : optional
        Known probabilities of treatment given the history, for all rows or for one: as
        :meth:`policytree.RewardEstimator.fit` takes them. A sequentially randomised trial gives them.
    allowed : table of shape (n, K), or mapping of treatment to column of n booleans, optional
        Who may get which treatment; a treatment that a mapping leaves out is open to all. Everybody may get every
        treatment by default.
    costs : mapping, array of shape (K,) or (n, K), optional
        Costs of treatments, in the outcome's unit.
    name : str, optional
        Name of the stage in messages, columns of histories and reports; "stage 1", "stage 2", ... by default.

    Examples
    --------
    >>> from policytree.regimes import Stage
    >>> Stage(["A", "B", "A"], X=[[1.0], [2.0], [3.0]], Y=[0.0, 1.0, 2.0]).name is None
    True
    """

    T: Column | None = None
    _: KW_ONLY
    X: Table | None = None
    W: Table | None = None
    Y: Column | None = None
    eligible: Column | None = None
    propensity: PerTreatment | None = None
    allowed: Table | Mapping[Any, Column] | None = None
    costs: PerTreatment | None = None
    name: str | None = None
