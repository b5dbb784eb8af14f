"""The command line: ``policytree design``, ``check``, ``report``, ``predict``, ``show``, ``plot``, ``warmup``."""

from policytree.cli.app import app, main

__all__ = ["app", "main"]
