"""``policytree explain``: the engines of the search, and those that would work on a study."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from policytree.cli.first_checks import check_first
from policytree.cli.frame import DebugOption
from policytree.cli.option_fields import takes_options
from policytree.cli.reading import Reading
from policytree.cli.study_options import StudyOptions

if TYPE_CHECKING:
    from policytree.report.content import Section
    from policytree.solvers.exact.engine_table import Case, EngineLine
    from policytree.study.study import Study


@takes_options()
def explain(
    options: StudyOptions,
    reading: Reading,
    data: Annotated[str | None, typer.Argument(metavar="DATA", help="CSV or Parquet file. Default: no study.")] = None,
    dataset: Annotated[str | None, typer.Option(metavar="NAME", help="A built-in study instead of a file.")] = None,
    data_dir: Annotated[str | None, typer.Option(metavar="DIR", help="Folder of the built-in studies' files.")] = None,
    max_depth: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Most questions on a path. Default: no limit.")
    ] = None,
    regularization: Annotated[
        float, typer.Option(metavar="X", min=0.0, help="Price of a leaf, in the outcome's unit per row.")
    ] = 0.0,
    min_samples_leaf: Annotated[int, typer.Option(metavar="N", min=1, help="Fewest rows of a leaf.")] = 1,
    categories: Annotated[
        str, typer.Option(metavar="WAY", help="How columns of text are split: levels or groups, as in design.")
    ] = "levels",
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
    debug: DebugOption = False,
) -> None:
    """Say which engine of the search takes which problem, and what it buys; with a study, which would work on it.

    Nothing is fitted: engines are chosen by rows, columns, treatments and the limits on the tree.
    """
    check_first(data, dataset, options, categories=categories)
    options = replace(options, direction=options.direction or (options.event and "maximize"))
    from rich.console import Console

    from policytree.cli.printing import print_json, print_sections
    from policytree.cli.study import study_from_dataset, study_from_file
    from policytree.exceptions import InputError
    from policytree.solvers.exact.engine_table import ENGINES, engines_for

    case, size = None, (max_depth, regularization, min_samples_leaf, categories)
    if data is not None and dataset is not None:
        raise InputError("Give a data file or --dataset, not both: policytree explain --dataset nsw --max-depth 3")
    if data is not None:
        case = _case_of(study_from_file(data, options, reading)[0], *size)
    elif dataset is not None:
        case = _case_of(study_from_dataset(dataset, data_dir, options)[0], *size)
    engines = ENGINES if case is None else tuple(engines_for(case))
    if as_json:
        sizes = {} if case is None else _size(case)
        print_json({**sizes, "engines": [_plain(engine) for engine in engines]})
        return
    print_sections(Console(highlight=False), *_sections(engines, case))


def _case_of(study: Study, max_depth: int | None, regularization: float, min_leaf: int, categories: str) -> Case:
    """The problem that a study poses, without rewards: engines that apply do not depend on them."""
    import numpy as np

    from policytree.data.feature_encoder import FeatureEncoder
    from policytree.problem.types import Problem
    from policytree.solvers.core.binning import bin_matrix
    from policytree.solvers.exact.engine_table import Case

    encoder, X = FeatureEncoder.fit_encode(study.X)
    losses = np.zeros((len(X), study.observed.n_arms))
    penalty = regularization * len(X)
    data = bin_matrix(X, encoder.features, wide=True, categories=categories)
    problem = Problem(data, losses, penalty, max_depth, min_leaf)
    return Case.of(problem)


def _size(case: Case) -> dict[str, int | float | None]:
    """The numbers that engines are chosen by."""
    problem = case.problem
    return {
        "rows": problem.data.n_rows,
        "columns": len(problem.data.n_bins),
        "cuts": int((problem.data.n_bins - 1).sum()),
        "treatments": problem.losses.shape[1],
        "max_depth": problem.max_depth,
    }


def _plain(engine: EngineLine) -> dict[str, str]:
    return {
        "name": engine.name, "module": f"policytree.solvers.{engine.module}", "takes": engine.takes,
        "buys": engine.buys, "asked_by": engine.asked_by,
    }  # fmt: skip


def _sections(engines: tuple[EngineLine, ...], case: Case | None) -> list[Section]:
    from policytree.report.content import Facts, Section

    if case is not None:
        size = {**_size(case), "max_depth": "no limit" if case.problem.max_depth is None else case.problem.max_depth}
        facts = Facts(tuple((name.replace("_", " "), f"{value:,}" if value != "no limit" else "no limit")
                            for name, value in size.items()))  # fmt: skip
        chosen = Facts(tuple((engine.name, f"{engine.takes} {engine.buys}") for engine in engines))
        return [
            Section("problem", "The problem", (facts,)),
            Section("engines", "Engines that may work on it", (chosen,)),
        ]
    own = Facts(tuple((each.name, f"{each.takes} {each.buys}") for each in engines if not each.asked_by))
    asked = Facts(
        tuple((each.name, f"{each.takes} {each.buys} Asked by {each.asked_by}.") for each in engines if each.asked_by)
    )
    return [
        Section("engines", "Engines that the direct solver chooses by itself", (own,)),
        Section("asked", "Engines that an argument chooses", (asked,)),
    ]
