"""Several treatments of each person as one: every combination of their levels is an arm with a label to read."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from policytree.data.controls import named_like_a_control
from policytree.data.feature_encoder import as_pandas, first_repeated
from policytree.data.views import Shown
from policytree.exceptions import InputError, quoted

if TYPE_CHECKING:
    import pandas as pd

YES, NO = ("yes", "y", "true", "1"), ("no", "n", "false", "0", "none")
MOST_ORDERED = 4  # columns of new rows, all orders of which are tried against known labels
MOST_LEVELS = 20  # of one treatment; more are doses or names
THIN = 30  # rows of a combination; with fewer, outcome models determine most of its value


def level_text(level: Any) -> str:
    """A treatment's label as text, whole numbers without a point: a column of 0 and 1 with gaps is of floats."""
    whole = isinstance(level, float) and level.is_integer()
    return str(int(level) if whole else level).strip()


def _folded(level: Any) -> str:
    return level_text(level).casefold()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CombinedTreatments(Shown):
    """Several treatments (factors) as combined arms; what a study with a list of treatments makes of them.

    Attributes
    ----------
    labels : Series of shape (n,)
        The arm of every row, such as "drug + physio".
    cells : DataFrame of shape (C, p)
        The level of every factor, by the label of the combination; all combinations of levels that occur.
    counts : Series of shape (C,)
        Rows of every combination.
    levels : dict of str to tuple
        The levels of every factor, the control first: the one that is named like a control ("no", 0, "placebo", "usual
        care"), if just one is; else the first in sorted order.
    control : str
        The label of the combination in which every factor is at its control.
    named : tuple of str
        How each factor's levels stand in labels: "plain" or "named", and "full" where all must be spelt out.

    Examples
    --------
    >>> import pandas as pd
    >>> from policytree.data.combined_treatments import combine_treatments
    >>> arms = combine_treatments(pd.DataFrame({"drug": [0, 0, 1, 1], "physio": ["no", "yes", "no", "yes"]}))
    >>> arms.labels.tolist(), arms.control
    (['neither', 'physio', 'drug', 'drug + physio'], 'neither')
    """

    labels: pd.Series
    cells: pd.DataFrame
    counts: pd.Series
    levels: dict[str, tuple[Any, ...]]
    control: str
    named: tuple[str, ...]

    def propensity(self, chances: Mapping[str, Any]) -> dict[str, float]:
        """The chance of every combination where each treatment was drawn by itself, independently of the others.

        Parameters
        ----------
        chances : mapping of factor to number, or to a mapping of level to number
            A number is the chance of the second of two levels (not the control).

        Returns
        -------
        dict of str to float
            As ``fit(propensity=)`` takes it.

        Raises
        ------
        InputError
            If a factor lacks its chances, they do not sum to one, or nobody got some combination: the treatments were
            then not drawn independently.

        Examples
        --------
        >>> import pandas as pd
        >>> from policytree.data.combined_treatments import combine_treatments
        >>> arms = combine_treatments(pd.DataFrame({"drug": [0, 0, 1, 1], "physio": [0, 1, 0, 1]}))
        >>> arms.propensity({"drug": 0.5, "physio": 0.2})["drug + physio"]
        0.1
        """
        unknown = [name for name in chances if name not in self.levels]
        if unknown:
            raise InputError(f"{quoted(unknown[0])} is none of the treatments {', '.join(self.levels)}.")
        by_level = {name: self._chances_of(name, chances) for name in self.levels}
        empty = self.counts.index[self.counts == 0]
        if len(empty):
            raise InputError(
                f"Nobody got {empty[0]}, so the treatments were not drawn independently of each other; give the chance "
                "of each combination."
            )
        out = {}
        for label, cell in zip(self.cells.index, self.cells.itertuples(index=False, name=None), strict=True):
            product = 1.0
            for name, level in zip(self.levels, cell, strict=True):
                product *= by_level[name][level_text(level)]
            out[str(label)] = product
        return out

    def _chances_of(self, name: str, chances: Mapping[str, Any]) -> dict[str, float]:
        """The chance of each of a factor's levels, by their text."""
        levels = [level_text(level) for level in self.levels[name]]
        if name not in chances:
            raise InputError(f"There is no chance of {name}; give one for each treatment: {', '.join(self.levels)}.")
        given = chances[name]
        if not isinstance(given, Mapping):
            if len(levels) != 2:
                raise InputError(
                    f"One chance is given for {name}, which has {len(levels)} levels ({', '.join(levels)}); give one "
                    "for each level."
                )
            given = {levels[0]: 1.0 - given, levels[1]: given}
        found = {level_text(level): float(chance) for level, chance in given.items()}
        if set(found) != set(levels):
            wrong = sorted(set(found) ^ set(levels))[0]
            raise InputError(f"The chances of {name} are needed for {', '.join(levels)}; {quoted(wrong)} is amiss.")
        if not all(0.0 < chance < 1.0 for chance in found.values()) or abs(sum(found.values()) - 1.0) > 1e-6:
            raise InputError(f"The chances of {name} must lie between 0 and 1 and sum to 1.")
        return found

    def contrasts(self, arms: Iterable[Any]) -> dict[str, list[float]]:
        """The effect of each factor as a sum of arms: its level less its control, averaged over the other factors.

        Every combination of the others that occurs with both levels counts alike.

        Parameters
        ----------
        arms : sequence of K labels

        Returns
        -------
        dict of str to list of K floats
            By the factor's name where its levels are yes and no; else by its levels, "drug A - placebo". Effects of
            levels that occur nowhere beside the control are left out.
        """
        position = {str(label): k for k, label in enumerate(arms)}
        n_arms = len(position)
        rows = self.cells.itertuples(index=False, name=None)
        cells = {tuple(map(level_text, cell)): label for label, cell in zip(self.cells.index, rows, strict=True)}
        out: dict[str, list[float]] = {}
        for j, (name, levels) in enumerate(self.levels.items()):
            control = level_text(levels[0])
            for level in map(level_text, levels[1:]):
                pairs = []
                for cell, label in cells.items():
                    if cell[j] != level:
                        continue
                    other = position.get(cells.get((*cell[:j], control, *cell[j + 1 :]), ""))
                    if (own := position.get(label)) is not None and other is not None:
                        pairs.append((own, other))
                if not pairs:
                    continue
                weights = [0.0] * n_arms
                for own, other in pairs:
                    weights[own] += 1.0 / len(pairs)
                    weights[other] -= 1.0 / len(pairs)
                out[self._effect_name(j, name, level)] = weights
        return out

    def _effect_name(self, j: int, name: str, level: str) -> str:
        control = level_text(self.levels[name][0])
        if control.casefold() in NO and level.casefold() in YES and self.named[j] != "named":
            return name
        first, second = (level, control) if self.named[j] == "plain" else (f"{name} {level}", f"{name} {control}")
        return f"{first} - {second}"


def combine_treatments(T: Any) -> CombinedTreatments:
    """Make one treatment of several columns, as in factorial trials.

    Whatever takes ``T`` does so by itself where ``T`` is a frame of two or more columns; this function shows the labels
    and the rows of each combination, and computes known probabilities from those of each treatment.

    A level is written by one rule: "no", 0 and "none" are left out; "yes" and 1, where a column has nothing else beside
    them, are the column's name; texts stand as they are; numbers, and texts that two columns share, follow the column's
    name. "neither" (of more than two treatments "none") is the combination of none.

    Parameters
    ----------
    T : DataFrame of shape (n, p), p >= 2
        A column per treatment, of labels of any type.

    Returns
    -------
    CombinedTreatments

    Raises
    ------
    InputError
        If there are fewer than two columns, a value is missing, or a column has a single level or very many.

    Examples
    --------
    >>> import pandas as pd
    >>> from policytree.data.combined_treatments import combine_treatments
    >>> T = pd.DataFrame({"dose": ["none", "high dose", "low dose", "none"], "physio": [True, True, False, False]})
    >>> combine_treatments(T).labels.tolist()
    ['physio', 'high dose + physio', 'low dose', 'neither']
    """
    frame = as_pandas(T)
    if frame is None or frame.shape[1] < 2:
        raise InputError("T must be a DataFrame with two or more columns, one per treatment.")
    gaps = frame.isna().to_numpy()
    if gaps.any():
        column = int(gaps.any(axis=0).argmax())
        raise InputError(
            f"T (column {str(frame.columns[column])!r}) has {gaps[:, column].sum()} missing value(s), the first in row "
            f"{gaps[:, column].argmax()}; leave these rows out."
        )
    return combine_frame(frame)


def combine_frame(frame: pd.DataFrame, known: Sequence[Any] | None = None) -> CombinedTreatments:
    """As :func:`combine_treatments`, of a pandas frame; rows with gaps have no label (None).

    The labels' series is named like the columns, or like the first that has gaps.

    Parameters
    ----------
    frame : DataFrame of shape (n, p)
    known : sequence of labels, optional
        Those of a fit: new rows, which may lack some levels or have their columns in another order, are then labelled
        as it labelled them.
    """
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    if (twice := first_repeated(frame.columns)) is not None:
        raise InputError(f"T has more than one column {twice!r}; give every treatment its own name.")
    first = _combine(frame, known)
    if known is None or frame.shape[1] > MOST_ORDERED or first.labels.isin(list(known)).all():
        return first
    orders = [_combine(frame[list(order)], known) for order in itertools.permutations(frame.columns)]
    return max(orders, key=lambda found: int(found.labels.isin(list(known)).sum()))  # the first of equals


def _combine(frame: pd.DataFrame, known: Sequence[Any] | None) -> CombinedTreatments:
    """:func:`combine_frame` in the order of the columns."""
    import pandas as pd

    levels = {name: _levels(name, frame[name], known is None) for name in frame.columns}
    products = list(itertools.product(*levels.values()))
    cell_of, gap = np.zeros(len(frame), dtype=np.int64), np.zeros(len(frame), dtype=bool)  # as itertools counts
    for name, own in levels.items():
        position = {level_text(level): k for k, level in enumerate(own)}
        codes, values = pd.factorize(frame[name].astype(object))
        found = np.array([position[level_text(value)] for value in values] or [0])
        cell_of, gap = cell_of * max(len(own), 1) + found[codes], gap | (codes < 0)
    rows = np.bincount(cell_of[~gap], minlength=len(products))
    styles, labels = _spelling(levels, products, np.flatnonzero(rows).tolist(), set(map(str, known or ())))
    index = pd.Index(labels, name="arm", dtype=object)
    of_rows = np.where(gap, None, index.to_numpy()[cell_of]) if labels else np.full(len(frame), None)
    name = next((each for each in frame.columns if frame[each].isna().any()), ", ".join(frame.columns))
    series = pd.Series(of_rows, index=frame.index, name=name, dtype=object)
    cells = pd.DataFrame(products, columns=list(frame.columns), index=index, dtype=object)
    counts = pd.Series(rows, index=index, name="rows")
    return CombinedTreatments(series, cells, counts, levels, labels[0] if labels else "", styles)


def _levels(name: str, column: pd.Series, several: bool) -> tuple[Any, ...]:
    """A factor's levels, the control first."""
    by_text: dict[str, Any] = {}
    for level in column.dropna().unique():
        by_text.setdefault(level_text(level), level)
    if len(by_text) > MOST_LEVELS:
        raise InputError(
            f"T (column {name!r}) holds {len(by_text)} different values, too many to combine with another treatment; "
            "group doses or rare treatments into a few."
        )
    if several and len(by_text) < 2:
        only = f"only {next(iter(by_text))}" if by_text else "nothing"
        raise InputError(f"T (column {name!r}) holds {only}; at least two levels are needed to choose from.")
    texts = sorted(by_text, key=_in_order)
    controls = [text for text in texts if named_like_a_control(text)]
    if len(controls) == 1:
        texts = [*controls, *(text for text in texts if text != controls[0])]
    return tuple(by_text[text] for text in texts)


def _in_order(text: str) -> tuple[int, float, str]:
    number = _number(text)
    return (1, 0.0, text) if number is None else (0, number, text)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _spelling(
    levels: dict[str, tuple[Any, ...]], products: list[tuple], occurring: list[int], known: set[str]
) -> tuple[tuple[str, ...], list[str]]:
    """How each factor's levels are written, and the labels of all combinations, no two of them alike.

    With ``known`` labels: the way of writing by which most combinations that occur have one of them. Levels that new
    rows lack could otherwise change the labels of the others.
    """
    others = itertools.product(("plain", "named"), repeat=len(levels)) if known else ()
    ways = []
    for styles in (_usual_styles(levels), *others, ("full",) * len(levels)):
        labels = [_label(levels, styles, cell) for cell in products]
        if len(set(labels)) == len(labels):
            ways.append((styles, labels))
    if not ways:
        raise InputError("The combined treatments cannot be told apart by their labels; rename levels or columns of T.")
    return max(ways, key=lambda way: len(known.intersection(way[1][k] for k in occurring)))  # the first of equals


def _usual_styles(levels: dict[str, tuple[Any, ...]]) -> tuple[str, ...]:
    said = {name: {_folded(level) for level in own} - {*NO} for name, own in levels.items()}
    styles = []
    for name, own in said.items():
        alone = own <= {*YES}
        as_they_are = not any(text in YES or _number(text) is not None for text in own)
        shared = any(own & other for at, other in said.items() if at != name)
        styles.append("plain" if alone or (as_they_are and not shared) else "named")
    return tuple(styles)


def _label(levels: dict[str, tuple[Any, ...]], styles: tuple[str, ...], cell: tuple) -> str:
    words = [_word(name, style, level) for name, style, level in zip(levels, styles, cell, strict=True)]
    said = [word for word in words if word]
    return " + ".join(said) or ("neither" if len(levels) == 2 else "none")


def _word(name: str, style: str, level: Any) -> str:
    text = level_text(level)
    if style == "full":
        return f"{name}={text}"
    if text.casefold() in NO:
        return ""
    if style == "plain" and text.casefold() in YES:
        return name
    return text if style == "plain" and _number(text) is None else f"{name} {text}"
