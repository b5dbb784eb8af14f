"""Study: a table whose columns have their roles, validated once and passed whole."""

from __future__ import annotations

import copy
import os
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from policytree.common.calls import StudyLike
from policytree.common.typing import Table
from policytree.common.validation import check_choice, check_level, is_real, place_of, position_of
from policytree.data.feature_encoder import FeatureEncoder, as_pandas
from policytree.data.sources import READ_ROWS, Source, arrow, is_dask, is_larger_than_memory, open_source
from policytree.data.views import as_html, facts_frame
from policytree.exceptions import InputError, quoted
from policytree.study.assignments import Assignment, Combined, Offered, as_assignment
from policytree.study.columns import default_covariates, names_of, refuse_no_values, refuse_two_roles, require_column
from policytree.study.outcomes import Outcome, Rewards, as_outcome
from policytree.study.populations import Population
from policytree.study_check import StudyCheck, check_study
from policytree.study_check.directions import Direction, direction_of, with_direction
from policytree.weighting.propensities import propensity_matrix
from policytree.weighting.study_data import StudyData
from policytree.weighting.target_arguments import with_target

if TYPE_CHECKING:
    from policytree.plotting.survival import KaplanMeierDisplay

WIDTH = 100  # of a study's lines
DIRECTIONS = ("maximize", "minimize")
BETTER = {"maximize": "larger is better", "minimize": "smaller is better", None: "nobody said which way is better"}
UNNAMED = (
    "Nobody named the covariates: every column without another role is one, and must have been known before treatment "
    "was chosen."
)
FOUND = ("rows", "notes", "found")  # fields that are no roles
COSTS = ("arm_costs", "budget_costs")


@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class Study(StudyLike):
    """Rows of a trial or an observational study, and which columns are what.

    It is made once, checked once and passed whole: ``DRPolicyTree().fit(study)``, ``cross_val_policy_value(model,
    study)``, ``study.check()``. It takes the place of Y, T, X and whatever else such calls take.

    Parameters
    ----------
    table : table of shape (n, columns), path, list of paths, Arrow dataset, DuckDB relation or dask DataFrame
        A row per person (or per person and visit, with ``cluster``), columns with names: pandas, polars, pyarrow. Files
        (Parquet, CSV and Arrow, by name, folder or pattern) and the others may be larger than memory: they stay where
        they are, ``covariates`` must be named, and values are checked when they are read.
        :mod:`policytree.encoded` and :mod:`policytree.on_dask` read them; :meth:`in_memory` makes a study for all else.
    treatment : str, sequence of str, or Assignment, optional
        Column of the treatment that every row got; columns of several treatments at once, whose combinations become
        the arms (:class:`policytree.study.assignments.Combined`); or another kind of assignment
        (:class:`policytree.study.Offered`, where people could refuse). Rewards and labels need none.
    outcome : str or Outcome
        Column of the outcome, a number; or a kind of outcome: :class:`policytree.study.Event`,
        :class:`policytree.study.MayBeMissing`, :class:`policytree.study.TimeToEvent`,
        :class:`policytree.study.Rewards`, :class:`policytree.study.Label`.
    direction : {"maximize", "minimize"}, optional
        Which way the outcome is better. None says that nobody said it.
    covariates : sequence of str, optional
        Columns that a rule may split on. By default every column without another role, but for dates and for texts of
        more than 50 values; they must have been known before treatment was chosen.
    confounders : sequence of str
        Further columns to adjust for, which a rule does not see.
    exclude : sequence of str
        Columns that are no covariates, where ``covariates`` is left out.
    propensity : number, str or mapping, optional
        Known probabilities of treatment (of offers, where people could refuse): by label, numbers or names of columns;
        or one number or column, of two treatments the probability of the second in sorted order. Of several treatments
        that were drawn independently by each one's name: a number (of the level that is not the control), or a mapping
        from level to number. None: estimated.
    randomized : bool, optional
        Whether treatments were drawn by lot, so that nobody would get that mixture again; by default where
        ``propensity`` is given.
    control : label, optional
        The treatment that others are compared with; by default the only one that is named like a control.
    cluster : str, optional
        Column of clusters, such as persons with several rows: rows that share one are dependent.
    strata : sequence of str
        Columns of the blocks within which treatment was assigned.
    weights : str, optional
        Column of sampling weights >= 0.
    arm_costs : mapping of label to number or str
        Costs of treatments in the outcome's unit: numbers, or names of columns. Values of rules are net of them.
    budget_costs : mapping of label to number or str
        Claims of treatments on a budget, in its unit: numbers, or names of columns. They are no part of values.
    further_outcomes : mapping of str to {"minimize", "maximize"}
        Columns of further outcomes, which rules are judged by or limited in, and which way they are better.
    subgroups : sequence of str
        Columns of groups of people by which rules are described or limited.
    population : Population, optional
        The people whom the rule is for, if they are not those of the study.
    unit : str
        Unit of the outcome, such as "points".
    name : str
        Name of the study in reports.

    Attributes
    ----------
    rows : DataFrame, Source or dask DataFrame
        The table, or where it is read from.
    notes : tuple of str
        Decisions made without being asked, a sentence each.

    Raises
    ------
    InputError
        If a column is not there, has two roles or cannot be used as what it is said to be: one sentence that names it
        and the remedy.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from policytree import DRPolicyTree, Study
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"age": rng.uniform(20, 80, size=200), "arm": np.repeat(["drug", "none"], 100)})
    >>> gain = np.where(table["age"] > 50, 1.0, -1.0)
    >>> table["score"] = (table["arm"] == "drug") * gain + rng.normal(size=200)
    >>> chances = {"drug": 0.5, "none": 0.5}
    >>> study = Study(table, treatment="arm", outcome="score", direction="maximize", propensity=chances)
    >>> model = DRPolicyTree(max_depth=1, cv=2, random_state=0).fit(study)
    >>> model.predict(pd.DataFrame({"age": [30.0, 70.0]})).tolist()
    ['none', 'drug']
    """

    rows: Any
    treatment: Assignment
    outcome: Outcome
    direction: str | None
    covariates: tuple[str, ...]
    confounders: tuple[str, ...]
    propensity: Any
    randomized: bool | None
    control: Any
    cluster: str | None
    strata: tuple[str, ...]
    weights: str | None
    arm_costs: Mapping[Any, float | str]
    budget_costs: Mapping[Any, float | str]
    further_outcomes: Mapping[str, str]
    subgroups: tuple[str, ...]
    population: Population | None
    unit: str
    name: str
    notes: tuple[str, ...]
    found: StudyData | None = field(repr=False)

    def __init__(
        self,
        table: Table | str | os.PathLike | Sequence[str | os.PathLike] | Source,
        *,
        treatment: str | Sequence[str] | Assignment | None = None,
        outcome: str | Outcome,
        direction: str | None = None,
        covariates: Sequence[str] | None = None,
        confounders: Sequence[str] = (),
        exclude: Sequence[str] = (),
        propensity: float | str | Mapping[Any, float | str] | None = None,
        randomized: bool | None = None,
        control: Any = None,
        cluster: str | None = None,
        strata: Sequence[str] = (),
        weights: str | None = None,
        arm_costs: Mapping[Any, float | str] | None = None,
        budget_costs: Mapping[Any, float | str] | None = None,
        further_outcomes: Mapping[str, str] | None = None,
        subgroups: Sequence[str] = (),
        population: Population | None = None,
        unit: str = "",
        name: str = "",
    ) -> None:
        if direction is not None:
            check_choice(direction, "direction", DIRECTIONS)
        if population is not None and not isinstance(population, Population):
            raise InputError(f"population must be a Population of people, or None; got {quoted(population)}.")
        kind = as_outcome(outcome)
        self._set(
            rows=_rows(table), treatment=as_assignment(treatment, needed=not kind.potential), outcome=kind,
            direction=direction,
            confounders=names_of(confounders, "confounders"), propensity=propensity, randomized=randomized,
            control=control, cluster=cluster,
            strata=names_of(strata, "strata"), weights=weights, arm_costs=dict(arm_costs or {}),
            budget_costs=dict(budget_costs or {}),
            further_outcomes=dict(further_outcomes or {}), subgroups=names_of(subgroups, "subgroups"),
            population=population, unit=unit, name=name, notes=(), found=None,
        )  # fmt: skip
        self._settle(covariates, names_of(exclude, "exclude"))

    def _set(self, **values: Any) -> None:
        """Set fields while the study is made: it is frozen from then on."""
        for key, value in values.items():
            object.__setattr__(self, key, value)

    def _settle(self, covariates: Sequence[str] | None, exclude: tuple[str, ...]) -> None:
        """Check every role, and choose the covariates where nobody named them."""
        columns = self.columns
        beside = [*(("strata", column) for column in self.strata), *(("exclude", column) for column in exclude)]
        for role, column in (*self._roles(), *beside):
            require_column(columns, column, role)
        refuse_two_roles(self._exclusive())
        # Who enters when may well matter for what happens then, so that an entry may be a covariate, too.
        exclusive = [(role, column) for role, column in self._exclusive() if role != "entry"]
        alone = [(role, column) for role, column in exclusive if role != "weights"]
        for role in ("confounders", "strata", "cluster"):
            refuse_two_roles([*alone, *((role, column) for column in names_of(getattr(self, role), role))])
        for role in ("confounders", "propensity", "population") if self.outcome.potential else ():
            if getattr(self, role) not in (None, ()):
                raise InputError(
                    f"{role} is for outcomes that are learnt from, and {type(self.outcome).__name__} says what every "
                    "action brings; leave it out."
                )
        if self.propensity is not None:
            _refuse_no_chances(self.propensity, by_level=isinstance(self.treatment, Combined))
        if self.control is not None and isinstance(self.outcome, Rewards):
            position_of(self.control, np.array(self.outcome.of), "control")
        for role in COSTS:
            for label, cost in getattr(self, role).items():
                if isinstance(cost, str):
                    require_column(columns, cost, f"{role} of {label}")
        for column, way in self.further_outcomes.items():
            check_choice(way, f"further_outcomes[{column!r}]", DIRECTIONS)
        if covariates is None and self.is_larger_than_memory:
            free = [name for name in columns if name not in {column for _, column in self._roles()}]
            raise InputError(
                f"Rows that are larger than memory are not read to choose covariates; name them: covariates=[...]. "
                f"Columns without another role are {', '.join(free[:10])}{', ...' if len(free) > 10 else ''}."
            )
        if covariates is None:
            chosen, notes = default_covariates(self.table, {*(column for _, column in self._roles()), *exclude})
            self._set(covariates=tuple(chosen), notes=(UNNAMED, *notes))
        elif exclude:
            raise InputError("covariates names all covariates; leave exclude out, or let it alone say what they are.")
        else:
            named = names_of(covariates, "covariates")
            if not named:
                raise InputError("covariates names no column, so that no rule could ask anything; name some.")
            for column in named:
                require_column(columns, column, "covariates")
            refuse_two_roles([*exclusive, *(("covariates", column) for column in named)])
            self._set(covariates=named, confounders=tuple(c for c in self.confounders if c not in named))
        if self.is_larger_than_memory:
            return
        refuse_no_values(self.X)
        FeatureEncoder.fit(self.table[[*self.covariates, *self.confounders]], argument="The table")
        if self.outcome.potential:
            return
        observed = StudyData.of(**self._columns())
        self._set(found=observed, outcome=self.outcome.settled(observed))
        known, given = self.propensity, self.treatment
        if isinstance(given, Combined) and isinstance(known, Mapping) and _are_of_factors(known, given, observed):
            self._set(propensity=given.combined(self.table).propensity(known))  # drawn independently of each other
            observed = replace(observed, propensity=probabilities(self.propensity, self.table))
            self._set(found=observed)
        if self.propensity is not None:
            of = self.assigned
            for label in self.propensity if isinstance(self.propensity, Mapping) else ():
                _refuse_unknown(label, of, "propensity")
            shares = np.bincount(of.arm, minlength=of.n_arms) / of.n
            propensity_matrix(observed.propensity, of.n, of.treatments, of.what, shares)
        if self.control is not None:
            position_of(self.control, observed.treatments, "control")
        for role in COSTS:
            for label in getattr(self, role):
                _refuse_unknown(label, observed, role)
        if self.population is not None:
            with_target(self._columns() | self._of_population())

    # --- where its rows are ---

    @property
    def is_larger_than_memory(self) -> bool:
        """Whether rows are read a batch at a time, from files, datasets or dask."""
        return not isinstance(self.rows, pd.DataFrame)

    @property
    def table(self) -> pd.DataFrame:
        """The table, in memory.

        Raises
        ------
        InputError
            If it may be larger than memory.
        """
        if not isinstance(self.rows, pd.DataFrame):
            raise InputError(
                f"The rows of this study are not in memory, where this needs them ({self._where()}); take "
                "study.in_memory() if they fit into it, or score them a batch at a time: "
                "policytree.encoded.stream_rewards."
            )
        return self.rows

    @property
    def source(self) -> Source:
        """The rows as readers take them, a batch at a time; of a dask DataFrame each partition when it is read."""
        return open_source(self.rows)

    @property
    def columns(self) -> list[str]:
        """Names of all columns of the table."""
        return self.rows.names if isinstance(self.rows, Source) else [str(column) for column in self.rows.columns]

    @property
    def roles(self) -> list[tuple[str, str]]:
        """The columns that the study names, each with its role in words; covariates first."""
        return [
            *(("covariates", column) for column in self.covariates),
            *self._roles(),
            *(("strata", column) for column in self.strata),
        ]

    def in_memory(self) -> Study:
        """The same study with its rows in memory: the columns that it names.

        Returns
        -------
        Study

        Raises
        ------
        InputError
            If a column cannot be used as what it is said to be.

        Examples
        --------
        >>> import tempfile
        >>> from policytree import Study, load_dataset
        >>> study = load_dataset("nsw").study()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study.table.to_parquet(f"{folder}/nsw.parquet")
        ...     roles = {"treatment": study.treatment, "outcome": study.outcome, "covariates": study.covariates}
        ...     Study(f"{folder}/nsw.parquet", **roles).in_memory().n
        ...
        445
        """
        names = list(dict.fromkeys(column for _, column in self.roles))
        tables = list(self.source.tables(names, READ_ROWS))
        if not tables:
            raise InputError("The table has no rows; give a row for every person.")
        return self.replace(table=arrow().concat_tables(tables).to_pandas(), covariates=self.covariates)

    def without_rows(self) -> Study:
        """The same roles without rows, for workers that have their own."""
        made = copy.copy(self)
        made._set(rows=Source(()), found=None)
        return made

    def _where(self) -> str:
        return f"a dask frame of {self.rows.npartitions} partitions" if is_dask(self.rows) else str(self.rows)

    # --- what it is ---

    @property
    def observed(self) -> StudyData:
        """Outcomes, treatments, weights and clusters, checked, as arrays.

        Raises
        ------
        InputError
            If the table may be larger than memory, or says what every treatment brings and not what was observed.
        """
        if self.found is None:
            raise self._unobserved(len(self.table))
        return self.found

    def _seen(self, kind: Outcome | Assignment, role: str) -> Any:
        """Read Y, or T, by its kind."""
        found = kind.arguments(self.table)
        if role not in found:
            raise self._unobserved(self.n)
        return found[role]

    def _unobserved(self, n: int) -> InputError:
        return InputError(
            f"The study of {n:,} rows has {self.outcome.column}, which say what every treatment brings; this needs "
            "outcomes and treatments as they were observed: name treatment and outcome."
        )

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.table)

    def __len__(self) -> int:
        return len(self.table)

    @property
    def treatments(self) -> list[Any]:
        """Labels of the treatments, sorted."""
        return self.observed.treatments.tolist()

    @property
    def Y(self) -> Any:
        """The outcomes as their kind reads them, (n,)."""
        return self._seen(self.outcome, "Y")

    @property
    def T(self) -> Any:
        """The treatments, (n,), or of several at once (n, p)."""
        return self._seen(self.treatment, "T")

    @property
    def X(self) -> pd.DataFrame:
        """The covariates, (n, p)."""
        return self.table[list(self.covariates)]

    @property
    def W(self) -> pd.DataFrame | None:
        """The confounders, (n, q), or None."""
        return self.table[list(self.confounders)] if self.confounders else None

    @property
    def assigned(self) -> StudyData:
        """The observed data by assignment: by offers where people could refuse them, else by treatments."""
        return self.observed if self.observed.instrument is None else self.observed.by_offer()

    @property
    def ways(self) -> Direction:
        """Which outcomes are better, and how that is known.

        Raises
        ------
        InputError
            If nobody said it, and the outcome's name sounds like harm.
        """
        return direction_of(self.direction, self.outcome.column, times=self.observed.times is not None)

    @property
    def mean_outcome(self) -> str:
        """The average outcome in words: "mean score", "mean days up to 365"."""
        return self.outcome.mean(self.observed)

    @property
    def value(self) -> str:
        """The value of rules in words: the mean outcome, or the gain in it where people could refuse."""
        return self.mean_outcome if self.observed.instrument is None else gain_text(self.mean_outcome, self.observed)

    def __getitem__(self, rows: Any) -> Study:
        """Some of the rows, by positions, a slice or a boolean mask; roles and what the rows decided stay."""
        if isinstance(rows, int | np.integer):  # as scikit-learn's searches ask of what they take for a list
            raise InputError(
                "One row is no study; give positions, a slice or a mask. Searches and cross-validation of scikit-learn "
                "take columns instead: search.fit(study.X, study.Y, T=study.T), after "
                "sklearn.set_config(enable_metadata_routing=True)."
            )
        mask = np.asarray(rows) if not isinstance(rows, slice) else rows
        if isinstance(mask, np.ndarray) and mask.dtype == bool and len(mask) != self.n:
            raise InputError(f"The mask has {len(mask)} values, but the study has {self.n} rows; give one per row.")
        return self.replace(table=self.table.iloc[mask])

    def replace(self, **roles: Any) -> Study:
        """The same study with other roles, or of another table; the horizon and the measure that hold stay.

        Parameters
        ----------
        **roles
            Arguments of :class:`Study`, in place of those that the study has.

        Returns
        -------
        Study

        Raises
        ------
        InputError
            If a role cannot be used.

        Examples
        --------
        >>> from policytree import load_dataset
        >>> study = load_dataset("rand-hie").study().replace(control="free", arm_costs={"free": 0.1})
        >>> study.control, study.direction
        ('free', 'minimize')
        """
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in FOUND}
        made = Study(**{"table": self.rows, **own, **roles})
        if "covariates" not in roles:
            made._set(notes=self.notes)  # which chose them
        return made

    def check(self) -> StudyCheck:
        """Check the data for errors that no later step would report; takes seconds and fits nothing.

        The check finds: a covariate, or a sum of them, that nearly determines the outcome or the treatment (also copies
        with noise, in other units, cut into classes or hidden in text); names that suggest a measurement after
        treatment; values of a column with which nobody got some treatment; values missing under one treatment; ids,
        dates, numbers stored as text; numbers such as -999 that stand for a missing value; constant, repeated and
        mostly missing columns; rare categories, unused levels; labels that only case or blanks tell apart; rows and ids
        that repeat; whether clusters or rows were treated. :func:`policytree.diagnostics.check_rewards` adds checks of
        the fitted rewards.
        """
        return check_study(self)

    def plot_survival(self, *, level: float = 0.95, ax: Any = None, **options: Any) -> KaplanMeierDisplay:
        """Draw the share without event over time by treatment, and how many are still at risk (Kaplan and Meier).

        With one of several causes (``TimeToEvent(..., cause=)``) the curves are its cumulative incidences (Aalen and
        Johansen), which rise. Intervals allow for weights and clusters. People are compared by what they were offered
        where they could refuse it.

        Parameters
        ----------
        level : float
            Coverage of the intervals at every single time; they are symmetric for log(-log(share)).
        ax : matplotlib Axes, optional
        **options
            ``title``, ``xlabel``, ``ylabel``, ``intervals`` and ``numbers_at_risk``, which
            :meth:`policytree.plotting.survival.KaplanMeierDisplay.plot` describes.

        Returns
        -------
        KaplanMeierDisplay
            With ``curves``, ``figure_`` and ``ax_``.

        Raises
        ------
        InputError
            If the outcome is no :class:`policytree.study.TimeToEvent`.
        """
        from policytree.plotting.survival import KaplanMeierDisplay

        check_level(level)
        seen = self.assigned
        if seen.times is None:
            raise InputError(
                f"The outcome is {self.outcome.column!r}, no time to an event; give outcome=TimeToEvent(...)."
            )
        of_rows: dict[str, Any] = {"weight": seen.sample_weight, "groups": seen.groups, "level": level}
        return KaplanMeierDisplay.of(seen.times, seen.arm, seen.treatments.tolist(), **of_rows).plot(
            ax=ax, **{"xlabel": self.unit or "time"} | options
        )

    def __repr__(self) -> str:
        of = self.mean_outcome if self.found is not None else self.outcome.column
        rows = f"rows in {self._where()}" if self.is_larger_than_memory else f"{self.n:,} rows"
        return f"<Study: {', '.join(filter(None, (rows, self.treatment.column, of)))}>"

    def __str__(self) -> str:
        said = self.summary()
        indent = max(map(len, said)) + 2
        fill = partial(textwrap.fill, width=WIDTH, subsequent_indent=" " * indent)
        return "\n".join(fill(text, initial_indent=about.ljust(indent)) for about, text in said.items())

    def _repr_html_(self) -> str:
        return as_html([facts_frame(self.summary()), *([] if self.found is None else [self.counts()])])

    def summary(self) -> dict[str, str]:
        """Describe the study, in words by topic."""
        control = "" if self.control is None else f"; control {self.control}"
        if self.found is None:  # nothing was counted
            by_person = {} if self.outcome.potential else {"treatment": f"{self.treatment.column}{control}"}
            found = {
                "rows": (self._where() if self.is_larger_than_memory else f"{self.n:,}")
                + ("" if self.cluster is None else f" in clusters ({self.cluster})"),
                "outcome": f"{self.outcome.column}, {BETTER[self.direction]}",
                **by_person,
            }
        else:
            clusters = len(np.unique(self.observed.clusters))
            found = {
                "rows": f"{self.n:,}" + ("" if self.cluster is None else f" in {clusters:,} clusters ({self.cluster})"),
                "outcome": f"{self.mean_outcome}, {BETTER[self.direction]}",
                "treatment": f"{self.treatment.column}: {', '.join(map(str, self.treatments))}{control}",
                "propensity": self.propensity_text,
            }
        found["covariates"] = ", ".join(self.covariates)
        more = {
            "confounders": ", ".join(self.confounders), "strata": ", ".join(self.strata), "weights": self.weights or "",
            "offers": self.treatment.assigned if isinstance(self.treatment, Offered) else "",
            "costs": self.costs_text,
            "population": "" if self.population is None else str(self.population),
        }  # fmt: skip
        return found | {about: text for about, text in more.items() if text}

    def counts(self) -> pd.DataFrame:
        """Rows of every treatment, and the mean outcome of those that are known, as observed."""
        from policytree.weighting.completion import rows_by_arm, unadjusted

        table = rows_by_arm(unadjusted(self.observed)).rename(columns={"mean": self.mean_outcome})
        return table.rename_axis(self.treatment.column)

    @property
    def costs_text(self) -> str:
        """Costs of treatments, in words; "" if they cost nothing."""
        return ", ".join(f"{label} {cost}" for label, cost in self.arm_costs.items())

    @property
    def propensity_text(self) -> str:
        """Where the probabilities of treatment come from, in words."""
        known, second = self.propensity, self.assigned.treatments[-1]
        if known is None:
            lot = "drawn by lot; " if self.randomized else ""
            return f"{lot}estimated from the covariates{' and confounders' if self.confounders else ''}"
        if isinstance(known, Mapping):
            pairs = ((label, each if isinstance(each, str) else f"{each:g}") for label, each in known.items())
            return "known: " + ", ".join(f"{label} {text}" for label, text in pairs)
        named = isinstance(known, str)
        return f"known: column {known}, the probability of {second}" if named else f"known: {known:g} for {second}"

    # --- what calls take ---

    @property
    def data(self) -> StudyData:
        """``observed``, with the people of another population below the study's own."""
        if self.population is None:
            return self.observed
        return StudyData.of(**self._columns(), **self._of_population())

    def _of_population(self) -> dict[str, Any]:
        assert self.population is not None, "there is one"
        return self.population.arguments(self.table, self.covariates, self.confounders)

    def _columns(self) -> dict[str, Any]:
        """The study's own rows as :meth:`StudyData.of` takes them."""
        table = self.table
        further = {name: (table[name].astype(np.float64), way) for name, way in self.further_outcomes.items()}
        return {
            **self.data_arguments(),
            "X": self.X,
            "W": self.W,
            "propensity": probabilities(self.propensity, table),
            "sample_treatment_costs": self.by_label(self.arm_costs) or None,
            "budget_costs": self.by_label(self.budget_costs) or None,
            "outcomes": further or None,
            "subgroups": table[list(self.subgroups)] if self.subgroups else None,
            "control": self.control,
            "randomized": self.randomized,
            "direction": self.direction,
            "unit": self.unit,
        }

    # --- what fits of rewards, or of labels, take ---

    @property
    def says_potential_outcomes(self) -> bool:
        """Whether the outcome is what every treatment would bring, or a label, and not what was observed."""
        return self.outcome.potential

    def data_arguments(self) -> dict[str, Any]:
        """Columns of outcomes, treatments, weights, clusters and strata, which a call must know to take the study."""
        table = self.table
        return {
            **self.outcome.arguments(table),
            **self.treatment.arguments(table),
            "sample_weight": None if self.weights is None else table[self.weights],
            "groups": None if self.cluster is None else table[self.cluster],
            "strata": table[list(self.strata)] if self.strata else None,
        }

    def arguments(self) -> dict[str, Any]:
        """The same with what a call is given if it takes it."""
        return self._columns()

    def told(self, value: Any) -> Any:
        """An estimator with the direction of the study, where it has none of its own; any other as it is."""
        return with_direction(value, self.direction)

    def by_label(self, values: Mapping[Any, Any]) -> dict[Any, Any]:
        """Numbers by treatment, with columns in place of their names."""
        return {label: self.table[value] if isinstance(value, str) else value for label, value in values.items()}

    # --- roles ---

    def _exclusive(self) -> Iterator[tuple[str, str]]:
        """Columns of which each has this role alone, with the role in words."""
        named = [*self.treatment.columns().items(), *self.outcome.columns().items()]
        yield from sorted(named, key=lambda each: each[0].split()[0] not in ("treatment", "outcome"))
        if self.weights is not None:
            yield "weights", self.weights
        yield from (("further outcome", column) for column in self.further_outcomes)

    def _roles(self) -> Iterator[tuple[str, str]]:
        """Every column that has a role other than that of a covariate."""
        yield from self._exclusive()
        if self.cluster is not None:
            yield "cluster", self.cluster
        for role in ("confounders", "subgroups"):
            yield from ((role, column) for column in getattr(self, role))
        yield from (("strata", column) for column in self.strata if column in self.confounders)
        if self.population is not None and self.population.weights is not None:
            yield "population", self.population.weights
        yield from (("propensity", column) for column in columns_in(self.propensity))
        yield from ((role, column) for role in COSTS for column in columns_in(getattr(self, role)))


def _are_of_factors(known: Mapping[Any, Any], given: Combined, observed: StudyData) -> bool:
    """Whether chances are those of each treatment, and not of their combinations, some of which are called like one."""
    factors, arms, named = set(given.of), set(map(str, observed.treatments)), set(map(str, known))
    return named != arms and not factors.isdisjoint(named) and (arms - factors).isdisjoint(named)


def _refuse_no_chances(propensity: Any, by_level: bool) -> None:
    """Refuse what cannot be known probabilities; ``by_level``: those of several treatments may be mappings again."""
    for value in propensity.values() if isinstance(propensity, Mapping) else (propensity,):
        if by_level and isinstance(value, Mapping):
            continue
        if isinstance(value, bool) or not (is_real(value) or isinstance(value, str)):
            raise InputError(
                "propensity must be a number, the name of a column, or a mapping from treatments to either; got "
                f"{quoted(propensity)}."
            )


def _refuse_unknown(label: Any, observed: StudyData, role: str) -> None:
    """Refuse the label of a treatment, or an offer, that nobody got."""
    if place_of(label, observed.treatments.tolist()) is None:
        what, known = observed.what, ", ".join(map(str, observed.treatments))
        raise InputError(f"{role} names the {what} {str(label)!r}; the {what}s are {known}.")


def gain_text(mean: str, observed: StudyData) -> str:
    """Name the values where there is an instrument, such as "gain in mean score over none"."""
    return f"gain in {mean} over {observed.treatments[0]!s}"


def _rows(table: Any) -> Any:
    """A pandas frame whose columns have names that are texts; a source, or a dask frame, of rows that stay there."""
    if is_dask(table):
        return table if all(isinstance(name, str) for name in table.columns) else table.rename(columns=str)
    if is_larger_than_memory(table):
        return open_source(table)
    frame = as_pandas(table)
    if frame is None:
        raise InputError(
            "Study takes a table with named columns (pandas, polars or pyarrow), or the names of files; got "
            f"{type(table).__name__}. Arrays go with fit(Y, T, X=X)."
        )
    if not len(frame):
        raise InputError("The table has no rows; give a row for every person.")
    return frame.set_axis([str(column) for column in frame.columns], axis=1)


def probabilities(propensity: Any, table: pd.DataFrame) -> Any:
    """Known probabilities with the columns in place of their names."""
    if isinstance(propensity, str):
        return table[propensity]
    if not isinstance(propensity, Mapping) or not columns_in(propensity):
        return propensity
    given = {label: table[each] if isinstance(each, str) else each for label, each in propensity.items()}
    return pd.DataFrame(given, index=table.index)


def columns_in(values: Any) -> list[str]:
    """Names of columns among numbers."""
    if isinstance(values, str):
        return [values]
    return [value for value in values.values() if isinstance(value, str)] if isinstance(values, Mapping) else []
