"""What importing retrograd costs beyond NumPy: `python -m bench.start`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from statistics import median
from tempfile import TemporaryDirectory

from bench import table
from bench.environment import describe

IMPORTS = {"numpy": "numpy", "numpy, optree": "numpy, optree", "retrograd": "numpy, retrograd"}
CODE = "from time import process_time as now; start = now(); import {}; print(now() - start)"


def seconds(modules: str, compiled: str) -> float:
    """Processor seconds that a new interpreter takes for an import; its code is compiled once, in a folder."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = compiled
    command = [sys.executable, "-c", CODE.format(modules)]
    return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def measured(rounds: int) -> dict[str, list[float]]:
    """Seconds by what is imported; the interpreters take turns."""
    with TemporaryDirectory() as compiled:
        for modules in IMPORTS.values():
            seconds(modules, compiled)
        turns = [{name: seconds(modules, compiled) for name, modules in IMPORTS.items()} for _ in range(rounds)]
    return {name: [turn[name] for turn in turns] for name in IMPORTS}


def main() -> None:
    """Print one row for each import."""
    parser = argparse.ArgumentParser(prog="python -m bench.start", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    options = parser.parse_args()
    found = measured(options.rounds)
    least = min(found["numpy"])
    rows = [
        [name, table.time(median(times), min(times)), table.time(min(times) - least) if name != "numpy" else "–"]
        for name, times in found.items()
    ]
    print(f"{describe()}\n")
    print(table.render(["import", "median [minimum]", "beyond NumPy"], rows, markdown=options.markdown))


if __name__ == "__main__":
    main()
