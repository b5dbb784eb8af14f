"""The values that flow between packages: Problem, Solution, limits, the columns a feature is split by."""
