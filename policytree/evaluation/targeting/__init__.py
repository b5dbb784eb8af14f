"""Whom to treat first, and what a budget buys."""
