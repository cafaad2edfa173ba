"""A way back without the parts that can take no more memory than earlier ones did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

Step = tuple[str, int, int]  # what is done, and the numbers of states
STEADY = 8  # steps of a loop after which the next ones take no other memory


def thinned(steps: Iterable[Step], live: Callable[[], int]) -> Iterator[Step]:
    """The steps of a way back but for those that repeat what was done when as many bytes or more lived.

    What is done from a state until it is dropped depends on how many steps are to be reversed from there and on how
    many states are kept; a stretch that keeps no state is like any other that advances as far.
    """
    lived: dict[object, int] = {}  # bytes at the start, by what was done
    kept, end, until = 0, 0, -1  # all is left out until a state is dropped
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
    """The steps divided before each state that is taken up again."""
    stretch: list[Step] = []
    for step in steps:
        if step[0] == "load" and stretch:
            yield stretch
            stretch = []
        stretch.append(step)
    if stretch:
        yield stretch
