"""Published studies: their rows, and which columns are the arm, the outcomes, the covariates and the clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from policytree.data.views import Shown
from policytree.exceptions import InputError

if TYPE_CHECKING:
    import pandas as pd

    from policytree.study.study import Study

DAYS_A_YEAR = 365.25


@dataclass(frozen=True, slots=True, repr=False)
class Dataset(Shown):
    """The columns of a built-in study; ``study()`` makes a :class:`policytree.Study` of one outcome.

    Attributes
    ----------
    name : str
    frame : DataFrame of shape (n, columns)
        One row per observation; holds every column named below.
    treatment : str
        Column of the arm each row was observed in.
    outcomes : mapping of str to str
        Outcome columns and their units. The first is the default.
    direction : {"maximize", "minimize"}
        Which way the default outcome is better for whoever pays for the rule.
    covariates : tuple of str
        Columns a rule may split on (``X``). All are baseline: measured before assignment.
    confounders : tuple of str
        Further baseline columns for the nuisance models only (``W``): randomisation strata, and traits a rule should
        not look at.
    groups : str or None
        Column of the cluster: rows that share it are dependent.
    propensity : mapping of label to float, or None
        Known randomisation probabilities, the same for every row; None if they must be estimated given ``X`` and ``W``.
    randomized : bool
        Whether arms were drawn by lot: the mixture that was drawn is then no standard to compare rules with. Chances
        may be unknown (``propensity`` is None) or differ between strata.
    description, source, licence : str
    event : mapping of str to str
        For outcomes that are times, some of them censored: the column that is 1 where the event was seen, 0 where the
        row was censored then.
    horizon : mapping of str to float
        For the same outcomes: the time up to which events count, in the outcome's unit; without one ``fit`` chooses.
    entry : mapping of str to str
        For outcomes of which rows were under observation from a later time on: the column of that time.
    instrument : str or None
        Column of what every row was offered, or was moved by, where people chose their treatments themselves; the
        propensity is then that of offers.

    Examples
    --------
    >>> from policytree import load_dataset
    >>> dataset = load_dataset("rand-hie")
    >>> dataset.treatment, dataset.direction, dataset.groups
    ('plan', 'minimize', 'household')
    >>> dataset.study()
    <Study: 16,154 rows, plan, mean visits>
    """

    name: str
    frame: pd.DataFrame
    treatment: str
    outcomes: Mapping[str, str]
    direction: str
    covariates: tuple[str, ...]
    description: str
    source: str
    licence: str
    confounders: tuple[str, ...] = ()
    groups: str | None = None
    propensity: Mapping[object, float] | None = field(default=None)
    event: Mapping[str, str] = field(default_factory=dict)
    horizon: Mapping[str, float] = field(default_factory=dict)
    entry: Mapping[str, str] = field(default_factory=dict)
    instrument: str | None = None
    randomized: bool = False

    @property
    def outcome(self) -> str:
        """The default outcome's column."""
        return next(iter(self.outcomes))

    def study(self, outcome: str | None = None, *, control: Any = None) -> Study:
        """The data set as a :class:`policytree.Study` of one outcome.

        Parameters
        ----------
        outcome : str or None
            One of ``outcomes``; None means the default.
        control : label, optional
            The treatment that others are compared with.

        Raises
        ------
        InputError
            If ``outcome`` is not one of the study's outcomes, or nobody got the control.

        Examples
        --------
        >>> from policytree import load_dataset
        >>> print(load_dataset("nsw").study(control="control"))
        rows         445
        outcome      mean re78, larger is better
        treatment    treat: control, training; control control
        propensity   drawn by lot; estimated from the covariates and confounders
        covariates   age, educ, marr, nodegree, re74, re75
        confounders  black, hisp
        """
        from policytree.study import Offered, TimeToEvent
        from policytree.study.study import Study

        outcome = self._known(outcome)
        times = None
        if outcome in self.event:
            times = TimeToEvent(
                outcome, self.event[outcome], horizon=self.horizon.get(outcome), entry=self.entry.get(outcome)
            )
        return Study(
            self.frame,
            treatment=self.treatment if self.instrument is None else Offered(self.treatment, by=self.instrument),
            outcome=times or outcome,
            direction=self.direction,
            covariates=self.covariates,
            confounders=self.confounders,
            propensity=self.propensity,
            randomized=self.randomized or None,
            control=control,
            cluster=self.groups,
            unit=self.outcomes[outcome],
            name=self.name,
        )

    def _known(self, outcome: str | None) -> str:
        """An outcome of the study, its default for None."""
        outcome = self.outcome if outcome is None else outcome
        if outcome not in self.outcomes:
            raise InputError(f"{self.name} has no outcome {outcome!r}; choose one of {', '.join(self.outcomes)}.")
        return outcome
