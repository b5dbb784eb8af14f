"""Oracles for boxes and intervals, by writing all of them down."""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement, product


def all_boxes(codes) -> set[frozenset]:
    """Every set of rows that some intervals of codes pick; ``codes`` (n, columns) are integers."""
    boxes = {frozenset(range(len(codes)))}
    for column in zip(*codes, strict=True):
        intervals = combinations_with_replacement(sorted(set(column)), 2)
        parts = {frozenset(i for i, c in enumerate(column) if low <= c <= high) for low, high in intervals}
        boxes = {box & part for box in boxes for part in parts}
    return boxes - {frozenset()}


def largest_violation(codes, losses, numbers):
    """The largest sum of ``numbers - losses[:, k]`` over all boxes and actions; all are Python integers."""
    return max(sum(numbers[i] - losses[i][k] for i in box) for box in all_boxes(codes) for k in range(len(losses[0])))


def least_losses(codes, losses) -> dict[int, int]:
    """The least loss of any tree of exactly h leaves, for every h that there is; splits part the rows by a code."""

    @cache
    def solve(rows: tuple[int, ...]) -> dict[int, int]:
        found = {1: min(sum(losses[i][k] for i in rows) for k in range(len(losses[0])))}
        for column in range(len(codes[0])):
            for cut in {codes[i][column] for i in rows}:
                left = tuple(i for i in rows if codes[i][column] <= cut)
                if len(left) == len(rows):
                    continue
                right = tuple(i for i in rows if codes[i][column] > cut)
                for (h, one), (g, other) in product(solve(left).items(), solve(right).items()):
                    found[h + g] = min(found.get(h + g, one + other), one + other)
        return found

    return solve(tuple(range(len(codes))))
