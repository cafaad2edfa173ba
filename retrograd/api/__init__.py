"""The public API: transforms, control flow, function values, lenses, memory options."""
