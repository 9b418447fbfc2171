"""Captured output of several Slurm versions: small pieces in tests/data, whole captures where they are at hand."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data" / "slurm"
VERSIONS = ("22.05", "24.11", "26.05")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


def sample(version: str, name: str) -> str:
    """A piece that always is there."""
    return (DATA / version / name).read_text()


def whole(version: str, name: str) -> str:
    """A whole capture; the test is skipped where there is none."""
    root = Path(os.environ.get("SLURM_FAIR_SHARED", Path(__file__).parents[3] / "shared"))
    found = sorted(root.glob(f"slurm-samples/{version}.*/{name}"))
    if not found:
        pytest.skip(f"no captures of Slurm {version} below {root}: set SLURM_FAIR_SHARED")
    return found[0].read_text()


def in_epoch_seconds(text: str) -> str:
    """Local times, as the captures have them, as the seconds that our commands ask for."""
    return _TIME.sub(lambda match: str(int(_instant(match[0]))), text)


def _instant(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
