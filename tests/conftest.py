"""Shared by all tests: long proofs, new examples and new golden files only when asked for."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.schedule import LongestFirst
from tests.support import recorded
from tests.support.zones import local_time

# A shared machine makes single examples slow; the suite has its own time limit. `make test` draws the same
# examples each time, so that it says something about the change at hand; `make prove` draws new ones everywhere.
settings.register_profile("same examples", deadline=None, derandomize=True)
settings.register_profile("new examples", deadline=None, derandomize=False)
_SEED = "--hypothesis-seed"

PROOF_SECONDS = 1800  # a long proof on a busy machine


def pytest_addoption(parser: pytest.Parser) -> None:
    """The switches of `make prove`."""
    parser.addoption("--prove", action="store_true", help="also run the long proofs (marker: prove)")
    parser.addoption(
        "--new-examples", action="store_true", help=f"draw new examples; {_SEED} draws those of a run again"
    )
    parser.addoption(
        "--part", type=float, default=1.0, help="of the repetitions of proofs over drawn examples (1.0)"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Before any test is read, which takes on the profile of that moment; hypothesis takes its seed after us."""
    fresh = config.getoption("--new-examples") or config.getoption("--prove") or config.getoption(_SEED)
    settings.load_profile("new examples" if fresh else "same examples")
    if fresh and not config.getoption(_SEED):
        config.option.hypothesis_seed = str(secrets.randbits(32))


def pytest_report_header(config: pytest.Config) -> list[str]:
    """A run says of itself what is needed to run it again."""
    seed = config.getoption(_SEED)
    said = [f"examples: new ones, drawn again by {_SEED}={seed}" if seed else "examples: the same each time"]
    return said + (
        [f"{recorded.VARIABLE}: golden files are written, not compared"] if recorded.recording() else []
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One process more than cores, since tests on a real Slurm mostly wait for it."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LongestFirst | None:
    """File by file is in an order of ours; other ways of handing out tests are xdist's own."""
    return LongestFirst(config, log) if config.getoption("dist") == "loadfile" else None


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
