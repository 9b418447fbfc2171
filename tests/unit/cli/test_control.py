"""`pause`, `resume` and the dead-man's single look: what they leave behind and what they say."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from slurm_fair.host.state_folder import Heartbeat, Places, beat, leave_all_free, pause_of, paused_since
from slurm_fair.slurm.fail_open import Liberated
from slurm_fair.store import is_owned, open_journal
from tests.support.command_line import call


@pytest.fixture
def places(tmp_path: Path) -> Places:
    (tmp_path / "s").mkdir(mode=0o750)
    (tmp_path / "fair.toml").write_text(f'[storage]\ndir = "{tmp_path}/s"\n')
    return Places(tmp_path / "s")


def said(places: Places, *words: str) -> tuple[int, str, str]:
    done = call("--config", str(places.directory.parent / "fair.toml"), *words)
    return done.code, done.out, done.err


def test_a_pause_keeps_who_when_and_why(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "ann\x1b[31m")
    code, out, err = said(places, "pause", "--why", "the storage\nis upgraded")
    assert (code, out) == (0, "paused: nothing is done to any job until `slurm-fair resume`\n")
    assert "no daemon runs" in err
    pause = pause_of(places)
    assert pause is not None
    assert pause.why == "the storage is upgraded"
    assert "sudo by ann[31m" in pause.who
    assert abs(pause.time - time.time()) < 60
    assert paused_since(places) == pause.time
    assert pause.in_words().endswith(": the storage is upgraded")
    assert said(places, "resume")[0] == 0
    assert pause_of(places) is None
    assert paused_since(places) is None
    assert said(places, "resume")[1] == "it was not paused\n"


def test_with_a_daemon_that_runs_nothing_more_is_said(places: Places) -> None:
    with open_journal(places.journal):
        assert is_owned(places.journal)
        assert said(places, "pause")[2] == ""
        assert said(places, "resume")[2] == ""
    assert not is_owned(places.journal)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", ""),
        ("for lunch", "for lunch"),
        ("[1]", ""),
        ("{}", ""),
        ('{"why": null, "time": 1e999}', ""),
        ("\xff", "ÿ"),
    ],
)
def test_a_pause_made_by_hand_is_one_too(places: Places, text: str, why: str) -> None:
    places.paused.write_text(text)
    pause = pause_of(places)
    assert pause is not None
    assert pause.why == why
    assert paused_since(places) == pytest.approx(time.time(), abs=60)


def test_a_single_look_says_what_there_was_to_watch(places: Places) -> None:
    assert said(places, "deadman", "--once")[1] == "no daemon was ever here\n"
    with open_journal(places.journal):
        assert "acts on nothing" in said(places, "deadman", "--once")[1]
        beat(places, Heartbeat(1, time.time(), 60.0, "begin", time.time()))
        assert said(places, "deadman", "--once")[1] == "the daemon lives\n"
    places.heartbeat.unlink()
    assert "`slurm-fair fail-open` frees what an earlier one" in said(places, "deadman", "--once")[1]


def test_a_single_look_where_all_was_freed_says_that_nobody_waits(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    freed = [0, 3]
    monkeypatch.setattr("slurm_fair.deadman.read_notices", lambda commands: ())
    monkeypatch.setattr("slurm_fair.deadman.liberate", lambda *given, **more: Liberated(freed.pop(), ()))
    with open_journal(places.journal):
        pass
    assert leave_all_free(places, 5.0)
    assert said(places, "deadman", "--once")[1] == "3 jobs freed\n"
    assert said(places, "deadman", "--once")[1] == "no daemon runs, and no job waits behind a gate of ours\n"
