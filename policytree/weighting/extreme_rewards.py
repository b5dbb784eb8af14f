"""Single rewards far outside of what the target can be: a few rows then decide means, and trees."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from policytree.common.callers import stacklevel_outside
from policytree.exceptions import OverlapWarning
from policytree.weighting.study_data import StudyData

FAR = 2.0  # ranges of the target over the share of the arm: some three times what the arm's other rows count
MUCH = 0.1  # of the variance of an arm's mean reward, from which on these rows are worth a warning
OUTSIDE = 1.0  # ranges of the target: a completed outcome that is outside by more makes the reward far by itself


@dataclass(frozen=True, slots=True)
class ExtremeRewards:
    """How many rows of a fit have a reward, under the treatment they got, far outside of what the target can be.

    A constant chance of treatment and outcomes of everybody never lead there: with the share ``p`` of the arm and the
    range ``r`` of the target, rewards are then at most ``r / p`` away from it. Counted are those that are more than
    ``2 r / p`` away.

    Attributes
    ----------
    n : int
        Rows with such a reward.
    n_unlikely_seen : int
        Those among them whose completed outcome is outside by itself, since it was unlikely to be observed; the others
        were unlikely to get their treatment.
    n_rows : int
        All rows.
    share : float
        Of the variance of an arm's mean reward: how much is due to them, in the arm where it is most.
    least, largest : float
        Of the rewards of all rows, under the treatment they got.
    limits : tuple of two floats
        Least and largest possible value of the target, or of an outcome.
    of_times : bool
        Whether outcomes are times; otherwise some are missing.
    """

    n: int
    n_unlikely_seen: int
    n_rows: int
    share: float
    least: float
    largest: float
    limits: tuple[float, float]
    of_times: bool

    def __str__(self) -> str:
        """Describe causes and remedies; empty where they are less than a tenth of every variance."""
        if self.share <= MUCH:
            return ""
        seen = "be followed for as long as they were" if self.of_times else "have their outcome seen"
        parts = [(self.n_unlikely_seen, seen), (self.n - self.n_unlikely_seen, "get their treatment")]
        causes = " and ".join(f"{count:,} unlikely to {what}" for count, what in parts if count)
        low, high = (f"{limit:,.6g}" for limit in self.limits)
        remedies = []
        if self.n_unlikely_seen:
            remedies += ["choose an earlier horizon"] * self.of_times + ["raise min_observed"]
        if self.n_unlikely_seen < self.n:
            remedies += ["leave out people who could hardly get every treatment (crump_trimming)"]
        return (
            f"Rewards reach from {self.least:,.4g} to {self.largest:,.4g}, where the "
            f"{'target' if self.of_times else 'outcome'} lies between {low} and {high}: {self.n:,} of {self.n_rows:,} "
            f"rows ({causes}) make up {self.share:.0%} of the variance of a treatment's mean reward. To rely less on "
            f"them, {' or '.join(remedies)}."
        )


def extreme_rewards(rewards: np.ndarray | None, outcome: np.ndarray, observed: StudyData) -> ExtremeRewards:
    """Count them.

    Parameters
    ----------
    rewards : ndarray of shape (n, K), or None
        None where rewards are about other people than the rows: then only outcomes are looked at.
    outcome : ndarray of shape (n,)
        Completed.
    observed : StudyData
        As it was given, with times or with outcomes that are missing.
    """
    low, high = observed.limits
    width = max(high - low, np.finfo(np.float64).tiny)
    share = np.bincount(observed.arm, minlength=observed.n_arms) / observed.n
    own = outcome if rewards is None else rewards[np.arange(observed.n), observed.arm]
    scale = 1.0 if rewards is None else 1.0 / share[observed.arm]

    def outside(values: np.ndarray) -> np.ndarray:
        return np.maximum(np.maximum(values - high, low - values), 0.0) / width

    far = outside(own) > FAR * scale
    table = outcome[:, None] if rewards is None else rewards
    squares = (observed.weight[:, None] * (table - np.average(table, axis=0, weights=observed.sample_weight))) ** 2
    place = np.zeros(observed.n, dtype=np.int64) if rewards is None else observed.arm
    of_far = np.bincount(place[far], weights=squares[far, place[far]], minlength=table.shape[1])
    part = of_far / np.maximum(squares.sum(axis=0), np.finfo(np.float64).tiny)
    unlikely_seen = far & (outside(outcome) > OUTSIDE)
    return ExtremeRewards(
        int(far.sum()), int(unlikely_seen.sum()), observed.n, float(part.max()), float(own.min()), float(own.max()),
        (low, high), observed.times is not None,
    )  # fmt: skip


def warn_of_extreme(found: ExtremeRewards) -> None:
    """Warn where there is something to say."""
    if str(found):
        warnings.warn(str(found), OverlapWarning, stacklevel=stacklevel_outside())
