"""Fixtures of several unit tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon_bench import Bench, bench_in
from tests.support.slurm_stub import Stub


@pytest.fixture
def stub(tmp_path: Path) -> Stub:
    """Programs of Slurm; scontrol and scancel succeed in silence."""
    found = Stub(tmp_path)
    for program in ("scontrol", "scancel"):
        found.answers(program, "")
    return found


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A daemon that looks every ten seconds."""
    with bench_in(tmp_path / "s") as made:
        yield made
