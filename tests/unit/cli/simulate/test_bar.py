"""The progress bar: drawn on a terminal, and nothing where nobody looks."""

from __future__ import annotations

import io
import re

import pytest

from slurm_fair.cli.simulate.bar import progress_bar


class Terminal(io.StringIO):
    """A text that says of itself that a person reads it."""

    def isatty(self) -> bool:
        return True


def drawn(monkeypatch: pytest.MonkeyPatch, screen: io.StringIO) -> str:
    """The words of two bars that move, as they pass over standard error."""
    monkeypatch.setattr("sys.stderr", screen)
    for name, value in (("TERM", "xterm"), ("COLUMNS", "100"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    with progress_bar(["fifo", "las"], 40) as beat:
        beat("las", 10, 3600.0)
        beat("fifo", 40, 90_000.0)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())


def test_a_bar_says_how_many_jobs_of_its_policy_ended_and_the_virtual_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = drawn(monkeypatch, Terminal())
    assert re.search(r"las .*10 of 40 jobs at 01:00:00", words)
    assert re.search(r"fifo .*40 of 40 jobs at 1-01:00:00", words)
    assert re.search(r"fifo .* 0 of 40 jobs at 00:00:00", words)


def test_nothing_is_written_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(monkeypatch, io.StringIO()) == ""
