"""The hypothesis profiles, the command line option that all tests share, and what of large tables is slow."""

import os
import zlib

import pytest
from hypothesis import HealthCheck, settings

from tests.support.seeds import SEED

settings.register_profile(
    "quick",
    max_examples=30,
    deadline=None,
    derandomize="CI" not in os.environ,  # by hand the same each time; in CI others, and how to repeat them is printed
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],  # the first example of a test pays for tracing and compiling
)
settings.register_profile("slow", settings.get_profile("quick"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--accept", action="store_true", help="rewrite the expected half of the golden files")


def pytest_report_header() -> str:
    return f"random programs and calls: RETROGRAD_SEED={SEED}"


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test marked ``sampled(n)``, one case of n is in the normal run, always the same; the others are slow."""
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark is not None and zlib.crc32(item.nodeid.encode()) % mark.args[0]:
            item.add_marker(pytest.mark.slow)
