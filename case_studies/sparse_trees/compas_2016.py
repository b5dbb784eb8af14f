"""COMPAS-2016, a table of the paper made from ProPublica's table: seconds by columns and by rows."""

from __future__ import annotations

from sparse_trees import scaling

SIZES = {"columns": (4, 8, 16, 32, 64, 79), "rows": (100, 300, 1_000, 3_000, 5_020)}
PUBLISHED = 85  # binary features


def main(study) -> None:
    """Describe the table, and draw its lines of Figs. 14 and 16."""
    study.heading(f"COMPAS-2016: depth {scaling.DEPTH}, price 1/32 of a leaf, at most {scaling.LIMIT} s")
    features = scaling.compas_2016(study.data_dir).iloc[:, :-1]
    study.show(
        f"{len(features):,} people: the first of ProPublica's table of two years. Distinct values of its columns, "
        f"added up:\n{features.nunique().sum()}; binary features published: {PUBLISHED}. Less one for every column: "
        f"{(features.nunique() - 1).sum()}."
    )
    scaling.show(study, "compas_2016", {"compas_2016": SIZES["columns"]}, {"compas_2016": SIZES["rows"]})
