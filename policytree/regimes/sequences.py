"""Fixed sequences of treatments, and who followed them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pandas as pd

from policytree.exceptions import InputError, quoted
from policytree.regimes.course import Course

MOST = 16  # sequences that are judged without being asked for; of more, those of one treatment throughout


def sequence_name(course: Course, codes: Sequence[int]) -> str:
    """Name a sequence in words: "A then B"."""
    labels = [str(each.treatments[k]) for each, k in zip(course.decisions, codes, strict=True)]
    return " then ".join(labels)


def followers(course: Course, codes: Sequence[int]) -> np.ndarray:
    """People who got this sequence wherever they were eligible, (n,) bool."""
    parts = [~each.eligible | (each.arm == k) for each, k in zip(course.decisions, codes, strict=True)]
    return np.all(parts, axis=0)


def sequences(course: Course, asked: Any = None) -> list[tuple[int, ...]]:
    """Positions of the treatments of the sequences to judge.

    Parameters
    ----------
    asked : list of sequences of labels, optional
        By default all that somebody followed, if there are at most 16; else those of one treatment at all stages.

    Raises
    ------
    InputError
        If a sequence names an unknown treatment, has the wrong length, or nobody followed it.
    """
    if asked is not None:
        return [_asked(course, each) for each in asked]
    return [codes for codes in _possible(course) if _decides_in(course, codes)]


def unknown_sequences(course: Course) -> tuple[str, ...]:
    """Names of the sequences, among those that would be judged, that nobody got to their end."""
    return tuple(sequence_name(course, codes) for codes in _possible(course) if not _decides_in(course, codes))


def _possible(course: Course) -> list[tuple[int, ...]]:
    """All sequences if they are few, else those of one treatment at all stages."""
    arms = [range(each.n_arms) for each in course.decisions]
    return list(product(*arms)) if prod(map(len, arms)) <= MOST else _constant(course)


def _decides_in(course: Course, codes: tuple[int, ...]) -> bool:
    """Whether some people followed a sequence who were eligible at the last stage."""
    return bool((followers(course, codes) & course.decisions[-1].eligible).any())


def _constant(course: Course) -> list[tuple[int, ...]]:
    """Sequences of one label at all stages."""
    labels = [[str(label) for label in each.treatments] for each in course.decisions]
    shared = [label for label in labels[0] if all(label in each for each in labels)]
    return [tuple(each.index(label) for each in labels) for label in shared]


def _asked(course: Course, sequence: Any) -> tuple[int, ...]:
    if isinstance(sequence, str) or not isinstance(sequence, Sequence) or len(sequence) != len(course):
        raise InputError(
            f"A sequence needs one treatment for each of {len(course)} stages, such as ('A', 'B'); got "
            f"{quoted(sequence)}."
        )
    codes = []
    for label, each in zip(sequence, course.decisions, strict=True):
        names = [str(known) for known in each.treatments]
        if str(label) not in names:
            raise InputError(f"{label!r} is no treatment of {each.name}; they are {', '.join(names)}.")
        codes.append(names.index(str(label)))
    if not _decides_in(course, tuple(codes)):
        raise InputError(
            f"Nobody got the sequence {sequence_name(course, codes)} to its end, so nothing is known of it; leave it "
            "out."
        )
    return tuple(codes)


def sequence_overlap(course: Course, chances: Sequence[np.ndarray]) -> pd.DataFrame:
    """How many people followed every sequence that is possible, and what they are worth as evidence.

    Parameters
    ----------
    chances : list of ndarray of shape (n, K)
        Probabilities of treatment at every stage; ones where somebody is not eligible.

    Returns
    -------
    DataFrame
        By sequence: ``people``, their ``share`` of the weight, ``effective_sample_size`` of the weights that are the
        inverse of the product of their probabilities, and the ``largest_weight``.
    """
    lines, weight = {}, course.weight
    for codes in product(*(range(each.n_arms) for each in course.decisions)):
        who = np.flatnonzero(followers(course, codes))
        own = [chance[who, k] for chance, k in zip(chances, codes, strict=True)]
        w = weight[who] / np.prod(own, axis=0) if len(who) else np.zeros(0)
        lines[sequence_name(course, codes)] = {
            "people": len(who),
            "share": weight[who].sum() / weight.sum(),
            "effective_sample_size": w.sum() ** 2 / (w**2).sum() if len(who) else 0.0,
            "largest_weight": float((w / weight[who]).max()) if len(who) and weight[who].all() else 0.0,
        }
    return pd.DataFrame.from_dict(lines, orient="index").rename_axis("sequence")
