"""A dead-man remembers the jobs that it freed while a daemon does nothing, until that one may have acted again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slurm_fair.host.freed_meanwhile import FreedMeanwhile
from slurm_fair.host.state_folder import Heartbeat, Pause, Places, beat, leave_pause
from slurm_fair.slurm.fail_open import NOTHING_FREED, Liberated

DONE = Liberated(1, ("job 3: no",), unfreed=(3,), clear=frozenset({(7, 100.0, 0), (8, 101.0, 2)}))


@pytest.fixture
def places(tmp_path: Path) -> Places:
    made = Places(tmp_path)
    lives(made, seen=10.0)
    return made


def lives(places: Places, seen: float, epoch: int = 1) -> None:
    beat(places, Heartbeat(5, 50.0, 60.0, "hold", seen, "squeue: odd", epoch))


def test_another_process_goes_on_from_what_was_kept(places: Places) -> None:
    assert FreedMeanwhile(places).so_far() is NOTHING_FREED
    FreedMeanwhile(places).keep(DONE)
    found = FreedMeanwhile(places).so_far()
    assert (found.clear, found.to_look_at) == (DONE.clear, (3,))


@pytest.mark.parametrize(("seen", "epoch"), [(20.0, 1), (10.0, 2)])
def test_a_daemon_that_sees_again_or_is_another_gates_anew(places: Places, seen: float, epoch: int) -> None:
    memory = FreedMeanwhile(places)
    memory.keep(DONE)
    lives(places, seen, epoch)
    assert memory.so_far() is NOTHING_FREED
    assert FreedMeanwhile(places).so_far() is NOTHING_FREED


def test_a_pause_goes_on_though_the_daemon_sees(places: Places) -> None:
    leave_pause(places, Pause("why", "root", 40.0))
    memory = FreedMeanwhile(places)
    memory.keep(DONE)
    lives(places, seen=20.0)
    assert memory.so_far().clear == DONE.clear
    leave_pause(places, Pause("again", "root", 45.0))
    assert memory.so_far() is NOTHING_FREED


def test_on_a_full_disk_the_process_remembers(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object) -> None:
        raise OSError

    monkeypatch.setattr("slurm_fair.host.freed_meanwhile.write_text", full)
    memory = FreedMeanwhile(places)
    memory.keep(DONE)
    assert memory.so_far() is DONE
    assert FreedMeanwhile(places).so_far() is NOTHING_FREED


@pytest.mark.parametrize(
    "text",
    ["", "7", "[" * 9999, '{"spell": [1, 10.0, 0.0], "clear": [[1]], "left": []}', '{"spell": [1, 10, 0]}'],
)
def test_what_cannot_be_read_remembers_nothing(places: Places, text: str) -> None:
    places.freed_meanwhile.write_text(text)
    assert FreedMeanwhile(places).so_far() is NOTHING_FREED


def test_the_file_is_plain_json(places: Places) -> None:
    FreedMeanwhile(places).keep(DONE)
    assert json.loads(places.freed_meanwhile.read_text()) == {
        "spell": [1, 10.0, 0.0],
        "clear": [[7, 100.0, 0], [8, 101.0, 2]],
        "left": [3],
    }
