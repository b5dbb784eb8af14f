"""Contracts that every solver in ``policytree.solvers.SOLVERS`` must fulfil, whoever wrote it."""
