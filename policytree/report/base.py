"""The base of all reports: their content as a page, as text and as data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from policytree.report.content import Content
from policytree.serialization import save_text


class Report:
    """A report whose content is computed once, and is the same in every form.

    Attributes
    ----------
    content : Content
        Sections of paragraphs, facts, tables, trees and pictures, as data.
    """

    content: Content

    def to_dict(self) -> dict[str, Any]:
        """The content as plain values that JSON can hold, with unrounded numbers beside texts."""
        return self.content.to_dict()

    def to_text(self, path: str | Path | None = None, *, width: int = 96) -> str:
        """The report as text of a given width; words replace the pictures.

        Parameters
        ----------
        path : path, optional
            File to write as well.
        width : int
        """
        from policytree.report.text import to_text

        return _kept(to_text(self.content, width), path)

    def to_html(self, path: str | Path | None = None) -> str:
        """The report as one self-contained HTML page; it loads nothing.

        Parameters
        ----------
        path : path, optional
            File to write as well.

        Returns
        -------
        str
            The page.
        """
        from policytree.report.html import to_html

        return _kept(to_html(self.content), path)

    def to_latex(self, path: str | Path | None = None) -> str:
        """All tables of the report, with captions, as LaTeX (booktabs).

        Parameters
        ----------
        path : path, optional
            File to write as well.
        """
        from policytree.report.latex import to_latex

        return _kept(to_latex(self.content), path)

    def tables(self) -> list[tuple[str, pd.DataFrame]]:
        """All tables of the report as they are shown: captions, and data frames of texts."""
        from policytree.report.latex import frame_of, tables_of

        return [(table.caption, frame_of(table)) for table in tables_of(self.content)]

    def _repr_html_(self) -> str:
        from policytree.report.html import to_fragment

        return to_fragment(self.content)

    def __repr__(self) -> str:
        titles = ", ".join(section.title for section in self.content.sections)
        return f"<{type(self).__name__}: {titles}>"


def _kept(text: str, path: str | Path | None) -> str:
    if path is not None:
        save_text(path, text)
    return text
