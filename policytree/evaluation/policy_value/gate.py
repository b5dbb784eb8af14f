"""A gate: a condition that a verdict rests on, and what the data say of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

SUPPORTED, FRAGILE, UNSAID = STATES = ("supported", "fragile", "cannot be said")
ASSUMED = "assumed"  # of a condition that no data can test: no finding, and no state of a verdict

ASSIGNMENT = "assignment"  # the gate that says how treatments were assigned
HIDDEN = "hidden confounder"  # the gate that says how strong one would have to be


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition that a verdict rests on.

    Attributes
    ----------
    name : str
        The condition, such as "better direction" or "data check".
    state : {"supported", "assumed", "fragile", "cannot be said"}
        Supported: nothing speaks against it. Assumed: no data can test it. Fragile: the verdict holds only if
        something does that the data do not show. Cannot be said: the data speak against it; the verdict is withheld.
    reason : str
        The finding; a clause without a full stop.
    remedy : str
        The action to take, as a sentence; "" where the gate is passed.

    Examples
    --------
    >>> from policytree.evaluation.policy_value.gate import Gate
    >>> Gate("better direction", "supported", "higher was stated to be better").state
    'supported'
    """

    name: str
    state: str
    reason: str
    remedy: str = ""


def strength_of(gates: Iterable[Gate]) -> str:
    """The state of the weakest gate that data can test; supported without gates."""
    return max((gate.state for gate in gates if gate.state != ASSUMED), key=STATES.index, default=SUPPORTED)


def merged(gates: Iterable[Gate]) -> tuple[Gate, ...]:
    """The gates without repetition: a name that was passed once and failed once has failed."""
    kept: dict[str, list[Gate]] = {}
    for gate in gates:
        kept.setdefault(gate.name, []).append(gate)
    out: list[Gate] = []
    for same in kept.values():
        failed = [gate for gate in same if gate.state != SUPPORTED]
        out += dict.fromkeys(failed or same[-1:])
    return tuple(out)
