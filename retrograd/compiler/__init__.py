"""From a traced function to code that runs: settings, stages, signatures, paths, the cache."""
