"""Recorded texts that people or Slurm read: compared, or written anew by `make record`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

VARIABLE = "SLURM_FAIR_RECORD"


def recording() -> bool:
    """True where golden files are to be written; `make test` and CI refuse that."""
    return os.environ.get(VARIABLE) == "1"


def same(file: Path, text: str) -> None:
    """Hold a text to its file, or write the file and skip the test: nothing was compared."""
    if recording():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        pytest.skip(f"{file.name} is written anew: look at the difference")
    assert text == file.read_text(), f"{file} differs; look, then record with `make record`"
