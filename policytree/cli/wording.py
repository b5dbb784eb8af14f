"""Sentences about arguments of Python in the words of the command line. Imports nothing heavy."""

from __future__ import annotations

import ast
import re

from policytree.cli.option_fields import option, spelt
from policytree.cli.study_options import KINDS, STUDY
from policytree.cli.tree_fields import TreeOptions
from policytree.common.option_words import typed

_OF_STUDY = {name: option(options[0]) for name, options in STUDY.items() if options}
_OF_STUDY |= {field: option(name) for field, name in KINDS["TimeToEvent"].items() if name}
_OF_STUDY |= {"offer": "--instrument", "instrument": "--instrument", "target": "--target"}
_OF_STUDY |= {"missing_outcome": "--missing-outcome"}
_NAMES = "|".join(sorted(_OF_STUDY, key=len, reverse=True))
_SAID = re.compile(
    rf"(?P<role>(?<=\()(?:{_NAMES})(?=\)| of ))"  # Column 'x' (covariates)
    rf"|(?P<value>(?<![\w'\"-])(?!horizon\b)(?:{_NAMES})=(?P<text>'[^']*'|[\w.+-]*[\w]))"  # such as cause='2'
    rf"|(?P<first>^(?:{_NAMES})(?= (?:and|names|must|is|has|gives|never)\b))"  # propensity has no ...
    r"|(?P<other>(?<=\band )cause(?= both)|(?<=[Ww]ith )cause\b|(?<=leave )(?:happened|cause|exclude)\b"
    r"|(?<=by )(?:exclude|covariates)\b|(?<=, or )outcome(?= names))"
)
OPTIONS = {
    "T": "--treatment", "Y": "--outcome", "sample_weight": "--weights", "groups": "--cluster", "strata": "--strata",
    "event": "--event-column", "entry": "--entry-column", "instrument": "--instrument",
}  # fmt: skip
ARGUMENT = re.compile(rf"\b({'|'.join(OPTIONS)}) \(column ('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")\)")
SPELT = {
    "sample_weight": "--weights",
    "n_jobs": "--jobs",
    "The largest share": "--max-share",
    "The smallest share": "--min-share",
    "ExpectedCost": "--max-expected-cost",
}
SPELT |= {
    name: spelt(TreeOptions)[name]
    for name in (
        "feature_costs", "feature_groups", "budget_costs", "repeated_features", "min_samples_leaf", "max_leaf_nodes",
        "time_limit", "min_samples_per_treatment", "root_feature", "split_features", "max_depth",
    )
}  # fmt: skip
ALONE = re.compile(rf"(?<![\w'\"-])({'|'.join(SPELT)})\b(?![='\"]| \(column)")
BEGINNING = re.compile(r"\A(T|Y|groups|strata|event|entry|instrument) (?=ha|ho|is |must )")
ROW = re.compile(r"\brow (\d+)\b(?! below)")


def in_options(sentence: str) -> str:
    """A sentence that names arguments of Python, with options in their place, and rows as files have them.

    Arguments are those of ``Study`` and its kinds, and of what is made of a study. Rows are counted from 0 in Python,
    and from the line below the header in files. A sentence that has been translated stays as it is.
    """

    def of_study(found: re.Match[str]) -> str:
        if found["value"]:
            name, _, text = found["value"].partition("=")
            return f"{_OF_STUDY[name]} {typed(ast.literal_eval(text) if text[0] == chr(39) else text)}"
        return _OF_STUDY[found[0]]

    def of_column(found: re.Match[str]) -> str:
        word = "Column" if found.start() == 0 else "column"
        return f"{word} {found[2]} ({OPTIONS[found[1]]})"

    said = _SAID.sub(of_study, sentence)
    said = ARGUMENT.sub(of_column, ALONE.sub(lambda found: SPELT[found[1]], said))
    said = BEGINNING.sub(lambda found: f"{OPTIONS[found[1]]} ", said)
    return said if said == sentence else ROW.sub(lambda row: f"row {int(row[1]) + 1:,} below the header", said)
