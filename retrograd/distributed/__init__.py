"""Gradients over shards, ensembles and long jobs: in this process, or on the processes and machines of a dask cluster.

dask is imported when a client is used. Errors are ``DistributedError`` and its subclasses.
"""

from .descent import Minimum, minimize
from .ensembles import jacobian, map
from .faults import (
    DistributedError,
    NoWorkerError,
    ResultTooLargeError,
    SchedulerLostError,
    TimeLimitError,
    TravelError,
    UnequalWorkersWarning,
    WorkerLostError,
)
from .local_cluster import cluster
from .pace import ShardProgress
from .sharded import Report, hvp, value_and_grad

__all__ = [
    "DistributedError",
    "Minimum",
    "NoWorkerError",
    "Report",
    "ResultTooLargeError",
    "SchedulerLostError",
    "ShardProgress",
    "TimeLimitError",
    "TravelError",
    "UnequalWorkersWarning",
    "WorkerLostError",
    "cluster",
    "hvp",
    "jacobian",
    "map",
    "minimize",
    "value_and_grad",
]


def __dir__() -> list[str]:
    """What users find here."""
    return __all__
