"""What several unit tests stand on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.slurm_stub import Stub


@pytest.fixture
def stub(tmp_path: Path) -> Stub:
    """Programs of Slurm; scontrol and scancel succeed in silence."""
    found = Stub(tmp_path)
    for program in ("scontrol", "scancel"):
        found.answers(program, "")
    return found
