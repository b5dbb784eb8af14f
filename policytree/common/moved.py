"""Modules under their names of the first release: they can still be imported, with a ``DeprecationWarning``."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

#: Documented modules that have moved, until the release after 0.1.
MOVED = {
    "policytree.export": "policytree.trees.text",
    "policytree.folds": "policytree.model_selection.folds",
    "policytree.source_code": "policytree.trees.source_code",
    "policytree.tree": "policytree.trees.tree",
    "policytree.types": "policytree.problem.types",
    "policytree.evaluation.best_arm": "policytree.evaluation.inference.best_arm",
    "policytree.evaluation.honest": "policytree.evaluation.leaves.honest",
    "policytree.evaluation.least_budget": "policytree.evaluation.targeting.least_budget",
    "policytree.evaluation.optimism": "policytree.evaluation.policy_value.optimism",
    "policytree.evaluation.sensitivity_marginal": "policytree.evaluation.sensitivity.marginal",
    "policytree.evaluation.sensitivity_omitted": "policytree.evaluation.sensitivity.omitted_variables",
    "policytree.evaluation.stability_tables": "policytree.evaluation.stability.tables",
    "policytree.evaluation.tables": "policytree.evaluation.policy_value.tables",
    "policytree.evaluation.verdict": "policytree.evaluation.policy_value.verdict",
    "policytree.solvers.binning": "policytree.solvers.core.binning",
    "policytree.solvers.born_again": "policytree.born_again",
}


class MovedModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules by their old names: a module that reads every attribute from where it is now."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A spec for old names only."""
        return importlib.util.spec_from_loader(fullname, self) if fullname in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        """Hand attributes on, and say where they are."""
        new = importlib.import_module(MOVED[module.__name__])
        warnings.warn(
            f"{module.__name__} is now {new.__name__}; the old name goes with the next release.",
            DeprecationWarning,
            stacklevel=2,
        )
        module.__dict__["__getattr__"] = lambda name: getattr(new, name)


def keep_old_names() -> None:
    """Let old names be found; once.

    This finder comes first: a folder that an earlier checkout left behind would otherwise be a package without a file.
    """
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, MovedModules())
