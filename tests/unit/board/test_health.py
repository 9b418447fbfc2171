"""The daemon's own report on itself, as others read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm_fair.board.health import NAME, SILENT_SECONDS, DaemonState, Health, read_health
from slurm_fair.cli.site_files import source


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


@pytest.mark.parametrize(
    ("age", "acts"),
    [(0, True), (89, True), (90, False), (9e9, False), (-59, True), (-60, False)],
)
def test_a_controller_acts_for_three_intervals_and_a_minute_after_it_said_so(age: float, acts: bool) -> None:
    assert Health(1e9 - age, 10.0, 1e9, DaemonState.ACTING).acts_at(1e9) is acts


@pytest.mark.parametrize("state", [state for state in DaemonState if state is not DaemonState.ACTING])
def test_one_that_says_something_else_does_not_act(state: DaemonState) -> None:
    assert not Health(1e9, 10.0, 1e9, state).acts_at(1e9)


def test_the_submit_hook_has_the_same_rule() -> None:
    hook = source("slurm_fair_gate.lua")
    assert f"local SILENT_SECONDS = {SILENT_SECONDS:.0f} " in hook
    assert "age > -SILENT_SECONDS and age < 3 * interval + SILENT_SECONDS" in hook
