"""How the depth of the tree was chosen: the values of trees of every depth on rows that they were not fitted to."""

from __future__ import annotations

from policytree.evaluation.formatting import NUMBER, Form, decimals
from policytree.report.content import Picture, Section, Table, Words
from policytree.report.material import Material


def depth_section(material: Material) -> Section | None:
    """The curve of value against depth; None where the depth was given."""
    choice = getattr(material.model, "depth_choice_", None)
    if choice is None:
        return None
    table, study = choice.table, material.study
    digits = decimals(table["standard_error"])
    columns: dict[str, Form] = {
        "depth": lambda row: f"{row['max_depth']}{'' if row['max_depth'] else ' (one treatment for all)'}",
        "leaves, mean": "{n_leaves:.1f}", study.value: NUMBER, "gain": "{gain:+,.{digits}f}",
        "std. error": "{standard_error:,.{digits}f}",
    }  # fmt: skip
    chosen = int(table["chosen"].to_numpy().argmax())
    about = Table.of(table, columns, "Trees by their depth", strong=(chosen,), digits=digits)
    data = {
        "x": [int(depth) for depth in table["max_depth"]], "y": table["gain"].tolist(),
        "error": table["standard_error"].tolist(), "chosen": chosen, "xlabel": "questions on a path, at most",
        "ylabel": f"gain over one treatment for all, {study.value_unit or study.about.outcome}",
    }  # fmt: skip
    shown = "; ".join(f"depth {x}: {y:+.{digits}f}" for x, y in zip(data["x"], data["y"], strict=True))
    picture = Picture(
        "depths",
        data,
        f"Gain of trees over one treatment for all, by depth: {shown}.",
        "Gains of deeper trees on rows that they were not learnt from, with standard errors. Blue: chosen.",
    )
    judged = "the rewards"
    if material.learnt_from:
        judged = f"doubly robust rewards (trees learnt from those by the method {material.learnt_from})"
    words = (
        f"Depth {choice.max_depth} was chosen, by {choice.n_folds}-fold cross-validation of {judged}, "
        f"{choice.n_repeats} times; every refit behind the held-out values chose anew. A tree must gain more than one "
        "standard error over the best treatment for all, which was chosen and judged on all rows; of trees within half "
        "a standard error of the best the smallest is taken. These gains chose the depth, so the largest is "
        "optimistic; the rule's value is under Value, held out."
    )
    if choice.leaves is not None:
        words += (
            " The tree asks only about stable columns, those that recur in nine of ten trees of cross-validation or "
            f"most often: {choice.in_words}. Of such trees, those with at most {choice.max_leaf_nodes} leaves were "
            "chosen: the fewest whose value is within a quarter of a standard error of the best."
        )
    return Section("depth", "How deep?", (Words(words), picture, about))
