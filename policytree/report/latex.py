"""The tables of a report for a paper: as data frames, and as LaTeX."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from policytree.common.safe_text import visible
from policytree.report.content import Choices, Content, Table

ESCAPED = str.maketrans({
    "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
})  # fmt: skip
HEAD = "% Tables of policytree: they need \\usepackage{booktabs}, and \\usepackage{fontspec} for letters such as ≤.\n"


def frame_of(table: Table) -> pd.DataFrame:
    """A table as it is shown: texts, the first column as index."""
    rows = [[visible(cell) for cell in row] for row in table.rows]
    names = [visible(column) for column in table.columns]
    return pd.DataFrame([row[1:] for row in rows], [row[0] for row in rows], names[1:]).rename_axis(names[0])


def to_latex(content: Content) -> str:
    """All tables of a report, each with its caption, as LaTeX with booktabs."""
    parts = [HEAD]
    for number, table in enumerate(tables_of(content), 1):
        style = frame_of(table).reset_index().style.hide(axis="index").format(escape="latex")
        style = style.format_index(escape="latex", axis="columns")
        columns = "".join("r" if k and table.is_numeric(k) else "l" for k in range(len(table.columns)))
        caption = visible(table.caption).translate(ESCAPED)
        parts.append(style.to_latex(column_format=columns, hrules=True, caption=caption, label=f"tab:{number}"))
    return "\n".join(parts)


def tables_of(content: Content) -> Iterator[Table]:
    """All tables in their order, those in folds too."""
    for block in content.blocks():
        if isinstance(block, Table):
            yield block
        elif isinstance(block, Choices):
            yield block.table
