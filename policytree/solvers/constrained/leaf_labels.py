"""The best actions of a given tree's leaves within the constraints."""

from __future__ import annotations

import numpy as np

from policytree.problem.types import GATES
from policytree.solvers.constrained.lagrangian import Corner, Relaxation
from policytree.solvers.core.rows import Splits
from policytree.solvers.kernels.enumeration.layout import Points
from policytree.solvers.kernels.enumeration.lists import thin


def best_labels(relaxation: Relaxation, splits: Splits, most: int = GATES.most_labellings) -> Corner | None:
    """The labels with the least loss within the limits; None if there are none, or too many choices to follow.

    Leaf by leaf, choices that another is as good as in loss and in every sum are left out; at most ``most`` are
    followed.
    """
    leaves, paid = relaxation.leaves(splits)
    K = relaxation.losses.shape[1]
    sums = np.concatenate([relaxation.losses[None], relaxation.amounts])
    each = np.stack([sums[:, rows].sum(axis=1) for rows in leaves])  # (leaves, 1 + M, K)
    later = np.cumsum(each.min(axis=2)[::-1], axis=0)[::-1]  # the least that this leaf and those after it come to
    limits = np.array(relaxation.limits) - paid[1:]
    values, labels = np.zeros((1, 1 + len(limits)), np.int64), np.zeros((1, 0), np.int32)
    for k, leaf in enumerate(each):
        values = (values[:, :, None] + leaf[None]).transpose(0, 2, 1).reshape(-1, values.shape[1])
        labels = np.hstack([np.repeat(labels, K, axis=0), np.tile(np.arange(K, dtype=np.int32), len(labels))[:, None]])
        rest = later[k + 1, 1:] if k + 1 < len(each) else 0
        useful = (values[:, 1:] + rest <= limits).all(axis=1)
        values, labels = _thinned(values[useful], labels[useful])
        if not len(values) or len(values) > most:
            return None
    best = int(np.argmin(values[:, 0]))
    return relaxation.corner(splits, labels[best].tolist())


def _thinned(values: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if not len(values):
        return values, labels
    padded = np.ascontiguousarray(np.hstack([np.zeros((len(values), 1), np.int64), values]))
    points, count = thin(Points(padded, np.ascontiguousarray(labels)), len(padded), np.zeros(1, np.int64))
    return points.values[:count, 1:], points.trees[:count]
