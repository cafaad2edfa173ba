"""thinned: an adjoint sweep without the parts that can take no more memory than earlier ones did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

Step = tuple[str, int, int]  # an action, and the numbers of two states
STEADY = 8  # steps of a loop after which further steps take no more memory


def thinned(steps: Iterable[Step], live: Callable[[], int]) -> Iterator[Step]:
    """The actions of an adjoint sweep, without repeats of earlier actions that ran with as many live bytes or more.

    The actions from a state until it is dropped depend on how many steps have to be reversed from there, and on how
    many states are kept; a stretch that keeps no state is like any other that advances as far.
    """
    lived: dict[object, int] = {}  # the live bytes at the start, by the actions
    kept, end, until = 0, 0, -1  # if ``until`` is a state, all is left out until its drop
    for stretch in _stretches(steps):
        first, now = stretch[0][1], live()
        whole: object = (end - first, kept)
        saves = any(verb == "save" for verb, _, _ in stretch)
        alone = whole if saves else (kept, *((verb, min(j - i, STEADY)) for verb, i, j in stretch))
        if until < 0 and lived.get(whole, -1) >= now:
            until = first
        if until < 0 and lived.get(alone, -1) < now:
            lived[whole] = lived[alone] = now
            yield from stretch
            kept += sum((verb == "save") - (verb == "drop") for verb, _, _ in stretch)
        else:
            for step in stretch:
                if step[0] == "drop" and until in (-1, step[1]):
                    yield step
                    kept, until = kept - 1, -1
        end = stretch[-1][1]


def _stretches(steps: Iterable[Step]) -> Iterator[list[Step]]:
    """Divide the actions before each load of a state."""
    stretch: list[Step] = []
    for step in steps:
        if step[0] == "load" and stretch:
            yield stretch
            stretch = []
        stretch.append(step)
    if stretch:
        yield stretch
