"""Solvers: ``(Problem, SearchLimits) -> Solution``. A new solver is one new file and its line here."""

from policytree.exceptions import InputError
from policytree.solvers.direct import solve_direct

SOLVERS = {"direct": solve_direct}


def get_solver(name: str):
    """The solver of that name.

    Raises
    ------
    InputError
        If there is none.
    """
    if name not in SOLVERS:
        raise InputError(f"solver={name!r} is not known; use one of {', '.join(map(repr, SOLVERS))}.")
    return SOLVERS[name]


__all__ = ["SOLVERS", "get_solver", "solve_direct"]
