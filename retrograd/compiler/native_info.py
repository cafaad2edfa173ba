"""What the native target has to work with, and what it left to NumPy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NativeInfo:
    """The native target on this machine.

    ``compiler`` is what the C compiler says of itself, empty if there is none; ``command`` and ``flags`` are how it is
    called. Compiled kernels, and what they share, are ``files`` in ``folder``, of ``nbytes`` in all. ``refused`` says
    which of the last kernels NumPy runs, and why. ``missing`` says why all of them do, and is empty where C can run.
    """

    compiler: str
    command: tuple[str, ...]
    flags: tuple[str, ...]
    folder: str
    files: int
    nbytes: int
    refused: tuple[str, ...]
    missing: str = ""


def native_info() -> NativeInfo:
    """The compiler of the native target, its cache, and what it left to NumPy.

    Returns
    -------
    NativeInfo
        The ``compiler`` and its ``command`` and ``flags``, the ``folder`` of compiled kernels with the number of
        ``files`` and of ``nbytes``, the kernels that were ``refused``, and what is ``missing`` if none can run.

    Raises
    ------
    OSError
        If there is no place for temporary files, and the cache cannot be used.

    Examples
    --------
    >>> import retrograd as rg
    >>> rg.native_info().refused
    ()
    """
    from ..codegen.native.shared_objects import compiler, files_in, fits, folder  # noqa: PLC0415 - few programs run C
    from ..codegen.native.target import REFUSALS, missing  # noqa: PLC0415 - likewise

    tool = compiler() if fits() else None
    home = folder()
    sizes = [path.stat().st_size for path in files_in(home)]
    command, flags = (tool.command, tool.flags) if tool is not None else ((), ())
    version = tool.version if tool is not None else ""
    return NativeInfo(version, command, flags, str(home), len(sizes), sum(sizes), tuple(REFUSALS), missing())
