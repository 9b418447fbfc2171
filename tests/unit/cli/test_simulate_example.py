"""The worked example of docs/simulate.md says what its commands say; `make record` writes it anew."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import recorded
from tests.support.doc_examples import said

PAGE = Path(__file__).parents[3] / "docs" / "simulate.md"
_BLOCK = re.compile(r"(?s)(?<=```console\n).*?(?=```)")


def test_the_example_is_what_the_commands_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = PAGE.read_text()
    found = _BLOCK.search(page)
    assert found is not None
    monkeypatch.chdir(tmp_path)
    text = said(found[0])
    recorded.same(PAGE, page.replace(found[0], text))
