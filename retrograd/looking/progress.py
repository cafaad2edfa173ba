"""Progress of long work: reports, listeners, and bars of tqdm and rich.

    with rg.progress.listen(rg.progress.tqdm()):
        train(...)

Tracing, folding, planning and compilation are reported when they last more than two seconds, and loops that are asked
for it: ``rg.scan(..., progress=True)``, and likewise ``fori_loop`` and ``while_loop``. In a terminal a line shows them,
without any listener. Where there is no terminal, nothing is shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from ..compiler.phases import HEARD, SWITCH, Listener, Progress, silent
from ..errors import OptionError
from .terminal import title

__all__ = ["Progress", "listen", "rich", "tqdm"]


@contextmanager
def listen(listener: Listener | None) -> Iterator[None]:
    """Call a listener from time to time while work in this block goes on, in this thread or task.

    Phases of the compiler are reported from another thread. A listener that raises gives a warning and is not called
    again; the work goes on.

    Parameters
    ----------
    listener : callable or None
        It takes a ``Progress``. None: nobody listens.

    Returns
    -------
    context manager
        It yields nothing.

    Raises
    ------
    OptionError
        If the listener cannot be called.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> heard = []
    >>> with rg.progress.listen(heard.append):
    ...     y = rg.fori_loop(3, lambda i, x: np.sin(x), 1.0, progress="sines")
    >>> heard[-1].what, heard[-1].phase, heard[-1].done, heard[-1].total, heard[-1].ended
    ('sines', 'forward', 3, 3, True)
    """
    if listener is not None and not callable(listener):
        raise OptionError(f"a listener must be callable, but {listener!r} is not", remedy="pass a function")
    token = HEARD.set(listener or silent)
    SWITCH.changed(1)
    try:
        yield
    finally:
        SWITCH.changed(-1)
        HEARD.reset(token)


def tqdm(**options: Any) -> Listener:
    """A listener that shows bars of tqdm.

    Parameters
    ----------
    **options
        What the bars are made with, such as ``disable=True``.

    Returns
    -------
    callable
        A listener for ``rg.progress.listen``.

    Raises
    ------
    ImportError
        If tqdm is missing.

    Examples
    --------
    >>> import retrograd as rg
    >>> with rg.progress.listen(rg.progress.tqdm(disable=True)):
    ...     total = rg.fori_loop(3, lambda i, x: x + i, 0.0, progress=True)
    """
    bar_of = import_module("tqdm.auto").tqdm
    bars: dict[tuple[str, str], Any] = {}

    def show(progress: Progress) -> None:
        key = (progress.what, progress.phase)
        bar = bars.get(key)
        if bar is None:
            bar = bars[key] = bar_of(total=progress.total, desc=title(progress), **options)
        bar.n = progress.done
        bar.refresh()
        if progress.ended:
            bar.close()
            del bars[key]

    return show


def rich(display: Any = None) -> Listener:
    """A listener that shows bars of rich.

    Parameters
    ----------
    display : rich.progress.Progress, optional
        A display of your own. By default a new one is shown while something goes on.

    Returns
    -------
    callable
        A listener for ``rg.progress.listen``.

    Raises
    ------
    ImportError
        If rich is missing.

    Examples
    --------
    >>> import retrograd as rg
    >>> with rg.progress.listen(rg.progress.rich()):
    ...     total = rg.fori_loop(3, lambda i, x: x + i, 0.0)
    """
    shown = display if display is not None else import_module("rich.progress").Progress()
    tasks: dict[tuple[str, str], Any] = {}

    def show(progress: Progress) -> None:
        key = (progress.what, progress.phase)
        if key not in tasks:
            if display is None and not tasks:
                shown.start()
            tasks[key] = shown.add_task(title(progress), total=progress.total)
        shown.update(tasks[key], completed=progress.done, total=progress.total)
        if progress.ended:
            shown.refresh()
            shown.remove_task(tasks.pop(key))
            if display is None and not tasks:
                shown.stop()

    return show


def __dir__() -> list[str]:
    return __all__
