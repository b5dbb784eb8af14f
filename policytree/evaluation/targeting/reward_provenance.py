"""Rewards that judge, and what is known of where they come from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from policytree.common.validation import check_flag
from policytree.evaluation.inference.half_samples import HalfSamples
from policytree.evaluation.inputs import (
    FEWEST_UNITS,
    check_direction,
    generator,
    policy_scores,
    reward_frame,
    rows_arguments,
)
from policytree.evaluation.leaves.summary import HELD_OUT, TRAINING_ROWS
from policytree.evaluation.policy_value.sample_split import HeldOutRewards
from policytree.exceptions import InputError


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Rewards with their clusters, weights, direction and origin, checked.

    Attributes
    ----------
    rewards : DataFrame of shape (n, K)
    groups : ndarray of shape (n,), int, or None
    sample_weight : ndarray of shape (n,), or None
    direction : {"maximize", "minimize"}
    held_out : bool
        Whether these rows' outcomes had no part in what is judged.
    """

    rewards: pd.DataFrame
    groups: np.ndarray | None
    sample_weight: np.ndarray | None
    direction: str
    held_out: bool

    @classmethod
    def of(cls, rewards, *, groups, sample_weight, held_out: bool | None, direction: str | None) -> Judged:
        """From a table of rewards and what the user says of it, or from :class:`HeldOutRewards`, which knows.

        Raises
        ------
        InputError
            If something cannot be used, or is said of rewards that know it themselves.
        """
        if isinstance(rewards, HeldOutRewards):
            said = {"groups": groups, "sample_weight": sample_weight, "held_out": held_out, "direction": direction}
            for name, value in said.items():
                if value is not None:
                    raise InputError(f"{name} comes with these held-out rewards; leave it out, or pass their .rewards.")
            known = rewards
            table, groups, sample_weight = reward_frame(known.rewards), known.groups, known.sample_weight
            direction, held_out = known.direction, True
        else:
            table = reward_frame(rewards)
        direction = direction or "maximize"
        check_direction(direction)
        if held_out is not None:
            check_flag(held_out, "held_out")
        codes, weight = rows_arguments(groups, sample_weight, len(table))
        return cls(table, codes, weight, direction, bool(held_out))

    @property
    def rows(self) -> str:
        """The label of numbers from these rows: "held out" or "training rows"."""
        return HELD_OUT if self.held_out else TRAINING_ROWS

    @property
    def sign(self) -> float:
        """One if larger is better, else minus one."""
        return 1.0 if self.direction == "maximize" else -1.0

    def gains(self, policy, argument: str) -> np.ndarray:
        """Every row's reward under a policy, larger being better, (n,)."""
        return self.sign * policy_scores(policy, self.rewards, argument)

    def half_samples(self, n_draws: int, random_state) -> HalfSamples:
        """Half-samples of these rows; the same seed draws the same clusters.

        Raises
        ------
        InputError
            If ``n_draws`` is less than two, or there are fewer than two clusters with weight (of held-out rows, which
            get intervals, fewer than ten).
        """
        seed = generator(random_state).randint(2**31 - 1)
        rows = {"groups": self.groups, "sample_weight": self.sample_weight}
        halves = HalfSamples.of(len(self.rewards), **rows, n_draws=n_draws, seed=seed)
        if self.held_out and halves.n_units < FEWEST_UNITS:
            unit = "rows" if self.groups is None else "clusters (groups)"
            raise InputError(
                f"Half-samples of {halves.n_units} {unit} give no standard error; pass at least {FEWEST_UNITS}."
            )
        return halves
