"""Every workload: each module in this folder gives its rows as `WORKLOADS`."""

from importlib import import_module
from pkgutil import iter_modules

from bench.workload import Workload

WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for module in sorted(found.name for found in iter_modules(__path__))
    for workload in import_module(f"{__name__}.{module}").WORKLOADS
}
