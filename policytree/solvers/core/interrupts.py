"""Ctrl-C between the exact searches that a longer search consists of."""

from __future__ import annotations

from typing import Protocol

from policytree.problem.types import Solution, Status


class Interruptible(Protocol):
    """A search that consists of several ones; each of them stops by itself on Ctrl-C."""

    status: Status

    @property
    def has_tree(self) -> bool:
        """Whether there is a tree to end with."""

    @property
    def proved(self) -> bool:
        """Whether its tree is proved to be the best."""

    def run(self) -> None:
        """Search to the end, or until a limit strikes."""

    def solution(self) -> Solution:
        """The best tree and what was proved of it."""


def solve(search: Interruptible) -> Solution:
    """Run a search; Ctrl-C between two of its parts ends it with what is known, if there is a tree."""
    try:
        search.run()
    except KeyboardInterrupt:
        if not search.has_tree:
            raise
        if not search.proved:
            search.status = Status.INTERRUPTED
    return search.solution()
