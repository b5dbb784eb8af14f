"""Counts nuisance models while they are fitted, for whoever shows it (:mod:`policytree.common.progress`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class ModelCount:
    """The models that were fitted, of all that are known to come.

    Attributes
    ----------
    done, total : int
    left : Counter
        Models to come by kind; those of one kind take about as long as each other.
    more : bool
        Whether others will follow that are not known yet.
    """

    def __init__(self, report: Callable[[ModelCount, Hashable], None]):
        self.done = self.total = self._batches = 0
        self.left: Counter[Hashable] = Counter()
        self.more = False
        self._report = report

    def expect(self, kinds: Iterable[int]) -> Callable[[int], None]:
        """Models that are fitted next, by numbers of their kinds; returns what is to be called with each one's kind."""
        self._batches += 1
        batch, kinds = self._batches, list(kinds)
        self.left.update((batch, kind) for kind in kinds)
        self.total += len(kinds)

        def fitted(kind: int) -> None:
            self.done += 1
            self.left[batch, kind] -= 1
            self._report(self, (batch, kind))

        return fitted


_COUNT: ContextVar[ModelCount | None] = ContextVar("policytree_models", default=None)


@contextmanager
def models_counted(report: Callable[[ModelCount, Hashable], None]) -> Iterator[None]:
    """Report every model that is fitted inside, as ``report(count, kind)``."""
    token = _COUNT.set(ModelCount(report))
    try:
        yield
    finally:
        _COUNT.reset(token)


@contextmanager
def more_models_follow() -> Iterator[None]:
    """Say that the models fitted inside are not the last ones: how long all take is not known from them."""
    count = _COUNT.get()
    if count is None or count.more:
        yield
        return
    count.more = True
    try:
        yield
    finally:
        count.more = False


def expect_models(kinds: Iterable[int]) -> Callable[[int], None]:
    """See :meth:`ModelCount.expect`; where nobody counts, what is returned does nothing."""
    count = _COUNT.get()
    return (lambda kind: None) if count is None else count.expect(kinds)
