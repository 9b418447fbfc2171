"""What all tests share: long proofs run only when asked for."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from hypothesis import settings

# A shared machine makes single examples slow; the suite has its own time limit.
settings.register_profile("slurm_fair", deadline=None)
settings.load_profile("slurm_fair")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The one switch of `make prove`."""
    parser.addoption("--prove", action="store_true", help="also run the long proofs (marker: prove)")


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Local time is UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip long proofs, and say so, unless they are asked for."""
    if config.getoption("--prove"):
        return
    for item in items:
        if item.get_closest_marker("prove"):
            item.add_marker(pytest.mark.skip(reason="a long proof: run it with --prove"))
