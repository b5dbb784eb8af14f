"""``policytree evaluate``: its options. The work is done in :mod:`policytree.cli.judging`, imported when needed."""

from __future__ import annotations

from typing import Annotated

import typer

from policytree.cli.first_checks import check_first
from policytree.cli.frame import DebugOption
from policytree.cli.option_fields import takes_options
from policytree.cli.reading import Reading
from policytree.cli.study_options import StudyOptions
from policytree.common.lazy import ended_by_ctrl_c


@takes_options("exclude", "offer_cost", otherwise="as in the design")
def evaluate(
    tree: Annotated[str, typer.Argument(metavar="TREE.json", help="A tree that `policytree design` saved.")],
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="Table, as for design, of rows that had no part in the tree.")
    ],
    options: StudyOptions,
    reading: Reading,
    control: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL", help="The treatment that rules must be shown better than. Default: as in the design."
        ),
    ] = None,
    against: Annotated[
        list[str] | None, typer.Option(metavar="TREE.json", help="Another saved tree to compare; again for more.")
    ] = None,
    cv: Annotated[int, typer.Option(metavar="N", min=2, help="Folds of the nuisance models.")] = 5,
    level: Annotated[float, typer.Option(metavar="P", help="Coverage of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(metavar="N", min=0, max=2**32 - 1, help="Seed of folds and models.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    debug: DebugOption = False,
) -> None:
    """Say what a saved tree is worth on new rows, with intervals, beside every single treatment and what people got.

    Outcome models are cross-fitted on the new rows; nothing of the tree is learnt again.

    Roles of columns are taken from the design where the tree's file says them.
    """
    check_first(data, None, options, whole=False, level=level)
    with ended_by_ctrl_c():
        from policytree.cli.judging import judge

    judge(
        tree, data, options, tuple(against or ()), control=control, cv=cv, level=level, seed=seed, as_json=as_json,
        reading=reading,
    )  # fmt: skip
