"""These programs import autograd: `tests/oracles/test_moving_in.py` runs them where it is."""

collect_ignore_glob = ["*.py"]
