"""What is wrong is checked, and not run."""

collect_ignore = ["wrong.py"]
