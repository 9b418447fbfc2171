"""Looks at virtual jobs are read anew and compared in all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.seen_anew import compared


@pytest.fixture(autouse=True)
def _looks_are_compared() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        compared(patch)
        yield
