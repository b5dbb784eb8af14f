"""Budgets and shares: the Lagrangian dual first, then the duality gap by a Pareto search."""
