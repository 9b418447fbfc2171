"""The worked example of docs/sweep.md says what its commands say; `make record` writes it anew."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import recorded
from tests.support.doc_examples import said
from tests.support.sweeps import here

__all__ = ["here"]
PAGE = Path(__file__).parents[3] / "docs" / "sweep.md"
_BLOCK = re.compile(r"(?s)(?<=```console\n).*?(?=```)")


@pytest.mark.usefixtures("here")
def test_the_example_is_what_the_commands_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = PAGE.read_text()
    found = _BLOCK.search(page)
    assert found is not None
    monkeypatch.chdir(tmp_path)
    recorded.same(PAGE, page.replace(found[0], said(found[0])))
