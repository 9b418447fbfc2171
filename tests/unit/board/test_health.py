"""The daemon's own report on itself, as others read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm_fair.board.health import NAME, DaemonState, Health, read_health


@pytest.mark.parametrize("state", DaemonState)
def test_each_state_but_silence_is_read_as_it_was_written(state: DaemonState, tmp_path: Path) -> None:
    """A daemon that is silent tells of nothing: such a file is none of ours."""
    health = Health(5.0, 10.0, 4.0, state, "why")
    (tmp_path / NAME).write_text(health.text())
    assert read_health(tmp_path / NAME) == (None if state is DaemonState.SILENT else health)


def test_a_state_that_is_none_is_not_read(tmp_path: Path) -> None:
    text = Health(5.0, 10.0, 4.0, DaemonState.ACTING).text()
    (tmp_path / NAME).write_text(text.replace('"acting"', '"asleep"'))
    assert read_health(tmp_path / NAME) is None
