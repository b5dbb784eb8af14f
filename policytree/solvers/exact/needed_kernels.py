"""The kernels that the exact search for a problem may call."""

from __future__ import annotations

import numpy as np

from policytree.problem.types import GATES, Problem, SizeGates
from policytree.solvers.core.compilation import Needed
from policytree.solvers.exact.engine_table import Case, kernels_of


def needed_kernels(problem: Problem, block_kind: np.dtype | None, gates: SizeGates = GATES) -> Needed:
    """Kernels that the search may call: those of the engines that apply.

    Parameters
    ----------
    problem : Problem
    block_kind : dtype or None
        Numbers of blocks of pair sums, if these solve the problem (see
        :func:`policytree.solvers.exact.binary_features.blocks_for`).
    gates : SizeGates, optional
    """
    return kernels_of(Case(problem, block_kind, gates))
