"""The command line: ``policytree design``, ``predict``, ``show`` and ``plot``."""

from policytree.cli.app import app, main

__all__ = ["app", "main"]
