"""place: the schedule of a loop, as its memory plan asks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ...errors import InternalError
from ...ir.embedded_functions import embedded
from ...ir.schedule import Step
from ...ops.structural.sweeps import COUNT, KEPT
from .binomial import binomial, binomial_states, keeping
from .ctz import ctz, ctz_room, ctz_states, shrinking
from .mixed import mixed, scheduled
from .online import online_room
from .periodic import period, periodic, periodic_replay, periodic_room, periodic_slots, periodic_taping


class Placement(NamedTuple):
    """A schedule for n steps, as the two parts that the two sweeps run, and how many states it keeps at once."""

    forth: Any
    way: Any
    slots: int
    mixed: bool = False  # whether residuals of single steps are kept, too
    disk: tuple[str, bool] | None = None  # a directory, and whether to continue from the states of an earlier run


def place(memory: tuple[Any, ...], n: int, tape: int = 0) -> Placement:
    """The schedule of a memory plan, ``("snapshots", 10)``, ``("log", "binomial")`` or ``("periodic", None)``.

    The residuals of one step weigh as much as ``tape`` states; 0 says that they cannot be kept.
    """
    end = n - 1
    match memory:
        case ("snapshots", int(slots)):
            slots = min(slots, max(end, 1))
            return _kept((binomial_states.__name__, n, slots), end, slots)
        case ("log", how):
            states = tuple(i for i in ctz_states(n) if i < end)
            if how == "binomial":
                return _kept(states, end, len(states))
            return Placement((keeping.__name__, states, end), (ctz.__name__, KEPT, end), len(states) + 1)
        case ("mixed", int(slots)):
            actions = list(mixed(n, slots, tape))
            first = actions.index(("back", end, n))
            forth, way = (_written(part) for part in (actions[:first], actions[first + 1 :]))
            return Placement((scheduled.__name__, forth), (scheduled.__name__, way), slots, mixed=True)
        case ("tiered", int(ram), int(disk), str(directory), bool(resume)):
            whole = place(("snapshots", ram + disk), n)
            there, back = (tiering.__name__, whole.forth, (), disk), (tiering.__name__, whole.way, KEPT, disk)
            return Placement(there, back, whole.slots, disk=(directory, resume))
        case ("periodic", every):
            every = every or period(n)
            if tape == 1:
                last = max(end - 1, 0) // every * every
                slots = last // every + max(end - last, every - 2 if last else 0)
                taping = (periodic_taping.__name__, ("range", 0, end, every), end)
                return Placement(taping, (periodic_replay.__name__, KEPT, last, end), slots, mixed=True)
            return _kept(("range", 0, end, every), end, periodic_slots(n, every))
    raise InternalError(f"{memory} is not a memory plan")


def _written(actions: list[Step]) -> str:
    return ", ".join(f"{verb} {i} {j}" for verb, i, j in actions)


def _kept(states: Any, end: int, slots: int) -> Placement:
    """Keep ``states`` in the first sweep, and place binomially in the adjoint sweep."""
    return Placement((keeping.__name__, states, end), (binomial.__name__, KEPT, end, slots), slots)


def place_open(memory: tuple[Any, ...]) -> tuple[Any, Any]:
    """For a number of steps that is found at run time: the states to keep, as the steps come, and the adjoint sweep."""
    match memory:
        case ("snapshots", int(slots)):
            return (online_room.__name__, slots), (binomial.__name__, KEPT, COUNT, slots)
        case ("log", how):
            return (ctz_room.__name__, 0), ((shrinking if how == "binomial" else ctz).__name__, KEPT, COUNT)
        case ("periodic", int(every)):
            return (periodic_room.__name__, every), (periodic.__name__, KEPT, COUNT, every)
    raise InternalError(f"{memory} is not a plan for an unknown number of steps")


@embedded()
def tiering(steps: Iterable[Step], states: Iterable[int], disk: int) -> Iterator[Step]:
    """The steps, with the first ``disk`` of the kept states on disk; ``states`` are kept at the start.

    Kept states are a stack in every binomial schedule: only the last one is loaded and dropped.
    """
    kept = list(states)
    for verb, i, j in steps:
        if verb == "save":
            kept.append(i)
        if len(kept) > disk or verb in ("advance", "back"):
            yield (verb, i, j)
        elif verb == "save":
            yield ("store", i, j)
        elif verb == "load":
            yield ("fetch", i, j)
        else:
            yield ("discard", i, j)
        if verb == "drop":
            kept.pop()
