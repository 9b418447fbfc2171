"""A folder that one may not look into is an answer, not an error that nobody expects."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.trees import ROOT

# Everybody runs these. `Path.exists` raises for a place in a closed folder; `os.path.exists` says no.
RUN_BY_EVERYBODY = [
    *sorted((ROOT / "slurm_fair" / "cli").rglob("*.py")),
    *sorted((ROOT / "slurm_fair" / "doctor").rglob("*.py")),
    *sorted((ROOT / "slurm_fair" / "trace").rglob("*.py")),
    *sorted((ROOT / "accounting").rglob("*.py")),
    ROOT / "slurm_fair" / "daemon" / "parts.py",
    ROOT / "slurm_fair" / "slurm" / "private_conf.py",
]
RAISES = re.compile(r"\.(exists|is_file|is_dir)\(\)")


@pytest.mark.parametrize("path", RUN_BY_EVERYBODY, ids=lambda path: path.name)
def test_commands_ask_for_files_in_a_way_that_does_not_raise(path: Path) -> None:
    assert not RAISES.search(path.read_text())
