"""The command line: ``policytree design``, ``evaluate``, ``predict``, ``check``, ``report``, ``show``, ``plot`` ..."""

from policytree.cli.app import app, main

__all__ = ["app", "main"]
