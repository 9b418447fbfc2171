"""The worked example of docs/simulate.md says what its commands say; `make record` writes it anew."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.support import recorded
from tests.support.command_line import call

PAGE = Path(__file__).parents[3] / "docs" / "simulate.md"
_BLOCK = re.compile(r"(?s)(?<=```console\n).*?(?=```)")


def said(block: str) -> str:
    """The block with what its commands say, without the machine's own numbers."""
    lines = []
    for line in block.splitlines():
        if line.startswith("$ slurm-fair "):
            answer = call(*shlex.split(line)[2:])
            assert (answer.code, answer.err) == (0, "")
            table = answer.out.partition("This run\n")[0]
            lines += [line, *table.splitlines()]
    return "\n".join(lines) + "\n"


def test_the_example_is_what_the_commands_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = PAGE.read_text()
    found = _BLOCK.search(page)
    assert found is not None
    monkeypatch.chdir(tmp_path)
    text = said(found[0])
    recorded.same(PAGE, page.replace(found[0], text))
