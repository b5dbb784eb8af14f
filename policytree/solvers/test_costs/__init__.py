"""Greedy trees whose tests are cheap to apply; no proof of optimality."""
