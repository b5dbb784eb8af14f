"""Non-dominated trees (Pareto fronts), and what is read off them."""
