"""The daemon's health in words, and the exit code of `status --exit-code`."""

from __future__ import annotations

import pytest

from slurm_fair.board.health import DaemonState
from slurm_fair.cli.health import State, say_age

WORDS = {
    DaemonState.ACTING: ("acting", 0),
    DaemonState.PAUSED: ("paused", 1),
    DaemonState.SHADOW: ("shadow mode", 1),
    DaemonState.BLIND: ("blind", 1),
    DaemonState.SILENT: ("silent", 3),
}


@pytest.mark.parametrize("state", WORDS)
def test_each_state_has_its_word_and_its_exit_code(state: DaemonState) -> None:
    health = State(state, "squeue hangs", 5.0, False)
    assert (health.word, health.exit_code) == WORDS[state]
    assert health.text == f"{WORDS[state][0]}: squeue hangs"
    assert health.document("x")["word"] == health.word


@pytest.mark.parametrize(
    ("state", "late", "said"),
    [
        (DaemonState.ACTING, False, ""),
        (DaemonState.ACTING, True, "slurm-fair: acting: why; what follows is 70 s old\n"),
        (DaemonState.SILENT, False, "slurm-fair: silent: why; what follows is 70 s old\n"),
        (DaemonState.BLIND, False, "slurm-fair: blind: why; what follows is 70 s old\n"),
        (DaemonState.PAUSED, False, "slurm-fair: paused: why; nothing is done to any job\n"),
        (DaemonState.SHADOW, False, ""),
    ],
)
def test_a_view_that_is_old_is_told_to_be_so(
    state: DaemonState, late: bool, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    say_age(State(state, "why", 70.0, late))
    heard = capsys.readouterr()
    assert (heard.out, heard.err) == ("", said)
