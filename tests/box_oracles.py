"""What is true of boxes and of intervals, by writing all of them down."""

from __future__ import annotations

from itertools import combinations_with_replacement


def all_boxes(codes) -> set[frozenset]:
    """Every set of rows that some intervals of codes pick; ``codes`` (n, columns) are integers."""
    boxes = {frozenset(range(len(codes)))}
    for column in zip(*codes, strict=True):
        intervals = combinations_with_replacement(sorted(set(column)), 2)
        parts = {frozenset(i for i, c in enumerate(column) if low <= c <= high) for low, high in intervals}
        boxes = {box & part for box in boxes for part in parts}
    return boxes - {frozenset()}


def largest_excess(codes, losses, numbers):
    """The largest sum of ``numbers - losses[:, k]`` over all boxes and actions; all are Python integers."""
    return max(sum(numbers[i] - losses[i][k] for i in box) for box in all_boxes(codes) for k in range(len(losses[0])))
