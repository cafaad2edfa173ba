"""Looking inside: explanations, profiles, pages and notebooks for compiled functions; progress of long work."""
