"""Errors of work on other processes and machines, defined beside the code that raises them.

| error | code | what happened |
|---|---|---|
| DistributedError | RG0400 | the base class: work on other processes cannot go on |
| WorkerLostError | RG0401 | workers died again and again under the same work |
| TimeLimitError | RG0402 | a task took longer than the time limit, on each worker that tried |
| SchedulerLostError | RG0403 | the scheduler no longer answers |
| NoWorkerError | RG0404 | the cluster has no worker |
| TravelError | RG0405 | a function, shard or error that cannot be sent between processes |
| ResultTooLargeError | RG0406 | results that would not fit into memory |

UnequalWorkersWarning tells of workers with other versions or another BLAS: bits may differ.
"""

from __future__ import annotations

import inspect

from ..errors import HERE, RetrogradError

PAGE = "docs/distributed.md says what to do about each fault."


class DistributedError(RetrogradError, RuntimeError):
    """Work on other processes cannot go on."""

    code = "RG0400"


class WorkerLostError(DistributedError):
    """Workers died again and again under the same work: more often than ``retries`` allows."""

    code = "RG0401"


class TimeLimitError(DistributedError, TimeoutError):
    """A task took longer than ``time_limit``, on each worker that tried."""

    code = "RG0402"


class SchedulerLostError(DistributedError, ConnectionError):
    """The scheduler does not answer any more: it ended, or the network is gone."""

    code = "RG0403"


class NoWorkerError(DistributedError, TimeoutError):
    """The cluster has had no worker for as long as ``patience`` allows."""

    code = "RG0404"


class TravelError(DistributedError, TypeError):
    """A function, a shard or an error cannot be sent between processes."""

    code = "RG0405"


class ResultTooLargeError(DistributedError, MemoryError):
    """All results together would not fit into memory; ``needed`` is their number of bytes."""

    code = "RG0406"

    def __init__(self, what: str, *, needed: int = 0, where: object = HERE, remedy: str = "") -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.needed = needed


class UnequalWorkersWarning(UserWarning):
    """Workers differ in versions or in their BLAS, so that results may depend on which worker computed what."""


def explained(code: str) -> str | None:
    """What an error of this code or name means; None for those of other packages."""
    kinds = [kind for kind in globals().values() if isinstance(kind, type) and issubclass(kind, DistributedError)]
    for kind in kinds:
        if code.strip().lower() in (kind.code.lower(), kind.__name__.lower()):
            return f"{kind.code}  {kind.__name__}\n\n{inspect.getdoc(kind)}\n\n{PAGE}\n"
    return None


def table() -> str:
    """These errors with their codes and meanings."""
    rows = [row.strip("| ").split(" | ") for row in (__doc__ or "").splitlines() if "| RG" in row]
    return "\n".join(f"{name:<24}{code}  {meaning}" for name, code, meaning in rows)
