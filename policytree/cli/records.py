"""What the command line asked for, and what came out: the values that its modules hand on."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from policytree.cli.study import Roles, Study
from policytree.estimators import DRPolicyTree
from policytree.policy_values import PolicyValueTable


@dataclass(frozen=True, slots=True)
class Job:
    """What the command line asked for."""

    data: str | None
    dataset: str | None
    data_dir: str | None
    roles: Roles
    tree: dict
    cv: int
    level: float
    seed: int
    value: bool
    output: str


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What came out.

    Attributes
    ----------
    study : Study
    estimator : DRPolicyTree
        Fitted on all rows.
    leaves : DataFrame
        Leaf summary on the rows the tree was chosen on.
    values : PolicyValueTable or None
    warnings : tuple of str
    """

    study: Study
    estimator: DRPolicyTree
    leaves: pd.DataFrame
    values: PolicyValueTable | None
    warnings: tuple[str, ...]
