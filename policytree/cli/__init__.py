"""The command line: ``policytree design``, ``evaluate``, ``check``, ``report``, ``predict``, ``show``, ``plot``, ``warmup``."""

from policytree.cli.app import app, main

__all__ = ["app", "main"]
