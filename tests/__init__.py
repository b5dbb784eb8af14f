"""Tests of policytree; a package, so that tests share ``tests.oracles`` and ``tests.strategies``."""
