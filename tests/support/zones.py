"""Local time as a test wants it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def local_time(zone: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Local time is that of this zone, and then what it was."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
