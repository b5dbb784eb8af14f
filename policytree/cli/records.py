"""The request of the command line and its result: the values that its modules exchange."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from policytree.cli.reading import Reading
from policytree.cli.study import Origin
from policytree.cli.study_options import StudyOptions
from policytree.cli.tables import AS_IT_IS

if TYPE_CHECKING:
    import pandas as pd

    from policytree.estimators.doubly_robust import DRPolicyTree
    from policytree.evaluation.leaves.honest import HonestLeaves
    from policytree.evaluation.policy_value.tables import PolicyValueTable
    from policytree.study.study import Study


@dataclass(frozen=True, slots=True)
class Job:
    """The request of the command line; ``person`` and ``stage`` name columns of a table of several decisions."""

    data: str | None
    dataset: str | None
    data_dir: str | None
    options: StudyOptions
    tree: dict
    cv: int = 5
    level: float = 0.95
    seed: int = 0
    value: bool = True
    output: str = ""
    validation: str = "repeated"
    repeats: int | str | None = None
    honest: float | None = None
    command: str = ""
    control: str | None = None
    stability: int | None = None
    black_box: bool = False
    json: bool = False
    names: Mapping[str, Any] = field(default_factory=dict)
    labels: str | None = None
    target_people: str | None = None
    study_column: str | None = None
    person: str | None = None
    stage: str | None = None
    lost: str | None = None
    history: str | None = None
    reading: Reading = AS_IT_IS


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """The result of a job.

    Attributes
    ----------
    study : Study
    origin : Origin
    estimator : DRPolicyTree
        Fitted on all rows, or on those that ``honest`` leaves.
    leaves : DataFrame
        Leaf summary: of the rows that the tree was chosen on, unless ``honest``.
    honest : HonestLeaves or None
        Where some rows were kept to judge the tree shown.
    values : PolicyValueTable or None
    answers : tuple
        Results of the other questions that a report answers.
    further : mapping of str to str
        By the key of a report's section, what to do for more.
    warnings : tuple of str
    """

    study: Study
    origin: Origin
    estimator: DRPolicyTree
    leaves: pd.DataFrame
    honest: HonestLeaves | None
    values: PolicyValueTable | None
    answers: tuple[Any, ...]
    further: Mapping[str, str]
    warnings: tuple[str, ...]

    @property
    def found(self) -> tuple[Any, ...]:
        """Results for a report."""
        return (*(part for part in (self.honest, self.values) if part is not None), *self.answers)
