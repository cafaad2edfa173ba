"""From a recorded function to code that runs: settings, stages, signatures, paths, the cache."""
