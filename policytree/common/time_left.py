"""The time that the parts left of a job should take, by the times at which others were done."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

SHOWN_FROM = 0.1  # of the parts: before, an estimate is a guess


class PartsLeft:
    """Time left in a job of several parts; it counts down between them.

    One after the other, a part takes as long as the earlier ones of its kind did. The first part of all is left out: it
    often compiles or imports something. Side by side, parts are done in bursts, and their rate is the slope of a least
    squares line through the times at which they were done, after two bursts; that line has an intercept for a slow
    beginning.

    Parameters
    ----------
    at_once : int
        Parts that run side by side.
    """

    def __init__(self, at_once: int = 1):
        self._at_once = at_once
        self._times: list[float] = []
        self._durations: dict[Hashable, list[float]] = {}

    def done(self, seconds: float, kind: Hashable = None) -> None:
        """One more part is done, so many seconds after the job began."""
        if self._times:
            self._durations.setdefault(kind, []).append(seconds - self._times[-1])
        self._times.append(seconds)

    def left(self, seconds: float, parts: Mapping[Hashable, int]) -> float | None:
        """Seconds left after so many seconds, for the parts left by kind; None while nobody can tell."""
        remaining, done = sum(parts.values()), len(self._times)
        if remaining == 0 or done < max(SHOWN_FROM * (done + remaining), 2 * self._at_once):
            return None
        expected = self._one_by_one(parts) if self._at_once == 1 else self._side_by_side(remaining)
        if expected is None:
            return None
        since = max(seconds - self._times[-1], 0.0)
        return expected - min(since, expected / remaining)  # an overdue part takes no time from the others

    def _one_by_one(self, parts: Mapping[Hashable, int]) -> float | None:
        total = 0.0
        for kind, count in parts.items():
            seen = self._durations.get(kind)
            if count and not seen:
                return None  # a kind that nobody has seen yet
            total += count * sum(seen or ()) / max(len(seen or ()), 1)
        return total

    def _side_by_side(self, remaining: int) -> float:
        n = len(self._times)
        middle, mean = (n - 1) / 2, sum(self._times) / n
        slope = sum((k - middle) * (t - mean) for k, t in enumerate(self._times))
        return remaining * slope / sum((k - middle) ** 2 for k in range(n))
