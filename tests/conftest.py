"""What all tests share: long proofs run only when asked for."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.zones import local_time

# A shared machine makes single examples slow; the suite has its own time limit. It draws the same examples each
# time, so that it says something about the change at hand; the long proofs draw new ones.
settings.register_profile("slurm_fair", deadline=None, derandomize=True)
settings.register_profile("prove", deadline=None)

PROOF_SECONDS = 1800  # a long proof on a busy machine


def pytest_addoption(parser: pytest.Parser) -> None:
    """The switches of `make prove`."""
    parser.addoption("--prove", action="store_true", help="also run the long proofs (marker: prove)")
    parser.addoption(
        "--part", type=float, default=1.0, help="of the repetitions of proofs over drawn examples (1.0)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Before any test is read, since each takes on the profile of that moment."""
    settings.load_profile("prove" if config.getoption("--prove") else "slurm_fair")


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Local time is UTC."""
    with local_time("UTC", monkeypatch):
        yield


@pytest.fixture(autouse=True)
def _log_as_it_was() -> Iterator[None]:
    """A command that sets up our log leaves no handler and no level to the tests that follow."""
    log = logging.getLogger("slurm_fair")
    before = log.handlers[:], log.propagate, log.level
    yield
    log.handlers[:], log.propagate = before[:2]
    log.setLevel(before[2])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip long proofs, and say so, unless they are asked for; those that say nothing of it have more time."""
    for item in items:
        if not item.get_closest_marker("prove"):
            continue
        if not config.getoption("--prove"):
            item.add_marker(pytest.mark.skip(reason="a long proof: run it with --prove"))
        elif not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(PROOF_SECONDS))
