"""The modules of the programs import each other by name, as a user's do; they are no tests."""

collect_ignore = ["modules"]
