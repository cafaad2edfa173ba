"""From a recorded function to code that runs: settings, stages, signatures, paths, the cache."""

from . import targets

__all__ = ["targets"]
