"""A regime as text, rules, SQL, Python and JSON: the trees of its stages, each with the decision that it is for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from policytree.common.validation import check_choice
from policytree.exceptions import InputError, quoted
from policytree.serialization import from_dict, to_dict
from policytree.serialization.checksums import refuse_changed, text_with_checksum
from policytree.serialization.parsing import parse_saved
from policytree.serialization.schema import anything, many, record, text
from policytree.trees.source_code import DIALECTS, export_python, export_sql
from policytree.trees.text import export_text, to_rules
from policytree.trees.tree import Tree

FORMAT, VERSION = "policytree regime", 1
_STAGES = record({"stages": many(record({"name": text, "tree": anything}), 1)})
NamedTrees = Sequence[tuple[str, Tree]]


def regime_text(trees: NamedTrees, **options: Any) -> str:
    """One tree under another, with the names of their stages."""
    return "\n\n".join(f"{name}\n{export_text(tree, **options)}" for name, tree in trees)


def regime_rules(trees: NamedTrees) -> pd.DataFrame:
    """One row per leaf of every stage, as :func:`policytree.trees.text.to_rules`, with the stage first."""
    parts = [to_rules(tree).assign(stage=name) for name, tree in trees]
    table = pd.concat(parts)
    return table[["stage", *(column for column in table.columns if column != "stage")]]


def regime_sql(
    trees: NamedTrees, stage: str, values: Sequence[Any] | None, *, column: str | None = "policy",
    dialect: Any = "standard",
) -> str:  # fmt: skip
    """A CASE over the stages, for a table with one row per person and decision.

    Parameters
    ----------
    stage : str
        Column that says which decision a row is about.
    values : sequence, optional
        Its value at every stage; 1, 2, ... by default.
    column, dialect
        As in :func:`policytree.trees.source_code.export_sql`.
    """
    values = list(range(1, len(trees) + 1)) if values is None else list(values)
    if len(values) != len(trees):
        raise InputError(
            f"values has {len(values)} entries, but the regime has {len(trees)} stages; give one for each."
        )
    if not isinstance(stage, str) or not stage:
        raise InputError(f"stage must be the name of a column; got {quoted(stage)}.")
    check_choice(dialect, "dialect", DIALECTS)
    words = DIALECTS[dialect]
    lines = [f"CASE {words.name(stage)}"]
    for value, (_, tree) in zip(values, trees, strict=True):
        body = export_sql(tree, column=None, dialect=dialect).replace("\n", "\n    ")
        lines.append(f"  WHEN {words.literal(value)} THEN\n    {body}")
    return "\n".join([*lines, "END"]) + ("" if column is None else f" AS {words.name(column)}")


def regime_python(trees: NamedTrees, name: str) -> str:
    """One function per stage, ``policy_1``, ``policy_2``, ..., and one that takes the number of the stage first."""
    parts = [export_python(tree, name=f"{name}_{s}").rstrip() for s, (_, tree) in enumerate(trees, start=1)]
    numbers = ", ".join(f"{s}: {name}_{s}" for s in range(1, len(trees) + 1))
    what = f"Recommend a treatment at a stage, 1 to {len(trees)}, from a mapping with what is known by then."
    parts.append(f'def {name}(stage, row):\n    """{what}"""\n    return {{{numbers}}}[stage](row)')
    return "\n\n\n".join(parts) + "\n"


def regime_dict(trees: NamedTrees) -> dict[str, Any]:
    """All trees as plain values that JSON can hold; :func:`regime_from_dict` reads them."""
    stages = [{"name": name, "tree": to_dict(tree)} for name, tree in trees]
    return {"format": FORMAT, "version": VERSION, "stages": stages}


def regime_json(trees: NamedTrees, *, indent: int | None = None) -> str:
    """All trees as JSON with a checksum; :func:`regime_from_json` reads it."""
    return text_with_checksum(regime_dict(trees), indent=indent)


def regime_from_json(text: str | bytes) -> list[tuple[str, Tree]]:
    """As :meth:`policytree.regimes.TreatmentRegime.trees_from_json`."""
    return regime_from_dict(parse_saved(text, "regime"))


def regime_from_dict(data: Any) -> list[tuple[str, Tree]]:
    """Names and trees of the stages of a regime that was read from JSON; further fields are ignored.

    Raises
    ------
    InputError
        If the data are no such regime, or were changed.
    """
    found = data.get("format") if isinstance(data, dict) else None
    if found != FORMAT:
        raise InputError(f"This is no regime of policytree: its format is {quoted(found)}.")
    if type(data.get("version")) is not int or data["version"] != VERSION:
        raise InputError(f"The regime has version {quoted(data.get('version'))}; this policytree reads {VERSION}.")
    refuse_changed(data, "regime")
    parts = _STAGES(data, "the regime")["stages"]
    return [(part["name"], from_dict(part["tree"])) for part in parts]
