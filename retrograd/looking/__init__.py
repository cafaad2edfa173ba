"""Looking inside: explanations, profiles, pages and notebooks for compiled functions; long work that shows itself."""
