"""Merging of rows with equal codes: no tree separates them, so their losses are added."""

from __future__ import annotations

import numpy as np

from policytree.solvers.kernels.base.merging import add_columns, group_hashes, hash_rows, same_as


def merge_equal_rows(codes: np.ndarray, planes: np.ndarray):
    """Sum planes over rows of equal codes.

    Parameters
    ----------
    codes : ndarray of shape (p, n), uint16
    planes : ndarray of shape (P, n), int64

    Returns
    -------
    codes, planes : ndarray
        The same with one column per distinct row, in the order in which they occur first.
    """
    n = codes.shape[1]
    if codes.shape[0] == 0:
        return codes[:, :1], planes.sum(axis=1, keepdims=True)
    keep, group = groups_of_equal_rows(codes)
    if len(keep) == n:
        return codes, planes
    return np.take(codes, keep, axis=1), add_columns(planes, group, len(keep))


def sums_of_first_codes(planes: np.ndarray, codes: np.ndarray, size: int) -> np.ndarray:
    """Sums of planes (P, n) over rows of the first 0, 1, ... ``size`` codes of a feature; shape (size + 1, P)."""
    sums = np.zeros((size + 1, len(planes)), np.int64)
    np.cumsum(add_columns(planes, codes.astype(np.int64), size).T, axis=0, out=sums[1:])
    return sums


def groups_of_equal_rows(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first row of every distinct code, and the group of every row; codes (p, n), p > 0."""
    keep, group = group_hashes(hash_rows(codes))
    if not same_as(codes, keep, group):  # two different rows share a hash: sort in full, once in a blue moon
        _, keep, group = np.unique(codes.T, axis=0, return_index=True, return_inverse=True)
        group = group.reshape(-1)
    return keep, group
