"""``policytree evaluate``: its options. The work is done in :mod:`policytree.cli.judging`, imported when needed."""

from __future__ import annotations

from typing import Annotated

import typer

from policytree.cli.first_checks import check_first
from policytree.cli.frame import DebugOption
from policytree.cli.reading import (
    DecimalOption,
    EncodingOption,
    NaValuesOption,
    Reading,
    SheetOption,
    ThousandsOption,
)
from policytree.common.lazy import ended_by_ctrl_c


def evaluate(
    tree: Annotated[str, typer.Argument(metavar="TREE.json", help="A tree that `policytree design` saved.")],
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="Table, as for design, of rows that had no part in the tree.")
    ],
    treatment: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the treatment. Default: as in the design.")
    ] = None,
    outcome: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the outcome. Default: as in the design.")
    ] = None,
    event: Annotated[
        str | None, typer.Option(metavar="TEXT", help="For an outcome in texts: the one that counts as 1.")
    ] = None,
    event_column: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column that says how the times ended. Default: as in the design."),
    ] = None,
    horizon: Annotated[
        float | None,
        typer.Option(metavar="H", help="Time up to which events count. Default: that of the design."),
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="TARGET", help="What a time counts for. Default: as in the design.")
    ] = None,
    cause: Annotated[
        str | None, typer.Option(metavar="VALUE", help="The cause that is asked about. Default: as in the design.")
    ] = None,
    entry_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the times of entry. Default: as in the design.")
    ] = None,
    missing_outcome: Annotated[
        str | None,
        typer.Option(metavar="WAY", help="Rows without an outcome: refuse or weight. Default: as in the design."),
    ] = None,
    instrument: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of what each row was offered. Default: as in the design."),
    ] = None,
    taker_cost: Annotated[
        float | None,
        typer.Option(metavar="X", help="What everybody who takes the treatment costs. Default: as in the design."),
    ] = None,
    direction: Annotated[
        str | None, typer.Option(metavar="WAY", help="maximize or minimize. Default: as in the design.")
    ] = None,
    covariates: Annotated[
        str | None,
        typer.Option(metavar="COLUMNS", help="What outcome models learn from: a,b,c. Default: as in the design."),
    ] = None,
    confounders: Annotated[
        str | None, typer.Option(metavar="COLUMNS", help="Further columns to adjust for: a,b,c.")
    ] = None,
    propensity: Annotated[
        str | None,
        typer.Option(
            metavar="P",
            help="Known probabilities of treatment in these rows, as for design, or 'estimated'. Default: those of the "
            "design where they were known, else estimated.",
        ),
    ] = None,
    randomized: Annotated[
        bool, typer.Option("--randomized", help="Treatments were drawn by lot in these rows, as for design.")
    ] = False,
    control: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL", help="The treatment that rules must be shown better than. Default: as in the design."
        ),
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of clusters. Default: as in the design.")
    ] = None,
    weights: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of sampling weights. Default: as in the design.")
    ] = None,
    arm_cost: Annotated[
        list[str] | None, typer.Option(metavar="LABEL=X", help="What a treatment costs, in the outcome's unit.")
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=X", help="A further outcome, and the most that its mean may be. Default: as in the design."
        ),
    ] = None,
    at_least: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=X", help="The same of the least that it may be. Default: as in the design."),
    ] = None,
    also: Annotated[
        str | None,
        typer.Option(metavar="COLUMNS", help="Further outcomes to judge: a,b,c. Default: as in the design."),
    ] = None,
    parity: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=P",
            help="A column of groups, and the most by which their shares of treatments may differ. Default: as in the "
            "design.",
        ),
    ] = None,
    value_parity: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=X", help="The same of the mean outcomes. Default: as in the design."),
    ] = None,
    subgroups: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNS", help="Columns of groups whose values are shown: a,b,c. Default: as in the design."
        ),
    ] = None,
    against: Annotated[
        list[str] | None, typer.Option(metavar="TREE.json", help="Another saved tree to compare; again for more.")
    ] = None,
    cv: Annotated[int, typer.Option(metavar="N", min=2, help="Folds of the nuisance models.")] = 5,
    level: Annotated[float, typer.Option(metavar="P", help="Coverage of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(metavar="N", min=0, max=2**32 - 1, help="Seed of folds and models.")] = 0,
    decimal: DecimalOption = None,
    thousands: ThousandsOption = None,
    na_values: NaValuesOption = None,
    encoding: EncodingOption = None,
    sheet: SheetOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    debug: DebugOption = False,
) -> None:
    """Say what a saved tree is worth on new rows, with intervals, beside every single treatment and what people got.

    Outcome models are cross-fitted on the new rows; nothing of the tree is learnt again.

    What the columns are is taken from the design where the tree's file says it.
    """
    asked = {
        "--treatment": treatment, "--outcome": outcome, "--cluster": cluster, "--weights": weights,
        "--event-column": event_column, "--entry-column": entry_column, "--instrument": instrument,
    }  # fmt: skip
    lists = {"--covariates": covariates, "--confounders": confounders, "--also": also, "--subgroups": subgroups}
    check_first(
        data, None, columns={option: name for option, name in asked.items() if name is not None}, lists=lists,
        direction=direction, propensity=propensity, level=level,
    )  # fmt: skip
    reading = Reading(decimal, thousands, tuple(na_values or ()), encoding, sheet)
    with ended_by_ctrl_c():
        from policytree.cli.judging import judge
        from policytree.cli.study_options import StudyOptions

    options = StudyOptions(
        treatment, outcome, covariates, confounders, propensity, cluster, weights, direction, event=event,
        arm_cost=tuple(arm_cost or ()), event_column=event_column, horizon=horizon, target=target, cause=cause,
        entry_column=entry_column, missing_outcome=missing_outcome, instrument=instrument, taker_cost=taker_cost,
        limit=tuple(limit or ()), at_least=tuple(at_least or ()), also=also, parity=tuple(parity or ()),
        value_parity=tuple(value_parity or ()), subgroups=subgroups, randomized=randomized,
    )  # fmt: skip
    judge(
        tree, data, options, tuple(against or ()), control=control, cv=cv, level=level, seed=seed, as_json=as_json,
        reading=reading,
    )  # fmt: skip
