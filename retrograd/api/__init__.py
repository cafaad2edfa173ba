"""The doors: transforms, control flow, function values, lenses, memory options. What users call stands here."""
