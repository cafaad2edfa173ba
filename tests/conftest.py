"""The hypothesis profiles, the command line option that all tests share, and what of large tables is slow."""

import os
import zlib

import pytest
from hypothesis import HealthCheck, settings

from tests.support.seeds import SEED

MOST_CASES = int(os.environ.get("RETROGRAD_CASES", "16"))  # of one test in the normal run

settings.register_profile(
    "quick",
    max_examples=15,
    deadline=None,
    derandomize=not SEED,  # the same each time, and for another seed others; how to repeat them is printed
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],  # the first example of a test pays for tracing and compiling
)
settings.register_profile("slow", settings.get_profile("quick"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--accept", action="store_true", help="rewrite the expected half of the golden files")


def pytest_report_header() -> str:
    return f"random programs and calls: RETROGRAD_SEED={SEED}"


def _table(item: pytest.Item) -> str:
    """The test function of which an item is one case."""
    return item.nodeid.partition("[")[0]


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a large table some cases are in the normal run, always the same ones; the others are slow.

    A test marked ``sampled(n)`` keeps one case of n, and any test ``MOST_CASES`` at most, unless it is ``whole``; a
    ``costly`` one keeps a quarter of these. Cases that are slow already do not count: their table has chosen the others
    itself.
    """
    tables: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("slow") is None and item.get_closest_marker("whole") is None:
            tables.setdefault(_table(item), []).append(item)
    for cases in tables.values():
        sampled, costly = (cases[0].get_closest_marker(name) for name in ("sampled", "costly"))
        wanted = -(-len(cases) // (1 if sampled is None else sampled.args[0]))
        kept = min(wanted, MOST_CASES if costly is None else -(-MOST_CASES // 4))
        for item in sorted(cases, key=lambda item: zlib.crc32(item.nodeid.encode()))[kept:]:
            item.add_marker(pytest.mark.slow)
