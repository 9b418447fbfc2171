"""The bell: it wakes, it never keeps anybody waiting, and a user can do no more with it than ring."""

from __future__ import annotations

import os
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm_fair.looks.bell import NAME, Bell, place, ring
from slurm_fair.looks.wall_clock import WallClock
from tests.support.trees import ROOT

WAKE = ROOT / "plugins" / "slurm" / "slurm_fair_wake.sh"


@pytest.fixture
def bell(tmp_path: Path) -> Iterator[Bell]:
    """One that hangs in a folder of ours."""
    tmp_path.chmod(0o755)
    hung = Bell()
    hung.hang(str(tmp_path))
    yield hung
    hung.close()


def has_rung(bell: Bell) -> bool:
    return bell.rung


def wait(bell: Bell, seconds: float = 0.05) -> bool:
    return bell.wait(seconds)


def test_it_rings_once_for_each_answer(bell: Bell, tmp_path: Path) -> None:
    assert not wait(bell)
    for _ in range(3):
        ring(str(tmp_path))
        assert wait(bell, 5)
        assert has_rung(bell)
        began = time.monotonic()
        assert not wait(bell, 0.1), "one that has rung is only slept beside"
        assert time.monotonic() - began >= 0.09
        bell.answer()
        assert not has_rung(bell)
        assert not wait(bell)


def test_a_sleep_ends_when_it_rings(bell: Bell, tmp_path: Path) -> None:
    clock = WallClock(bell)
    threading.Timer(0.2, ring, (str(tmp_path),)).start()
    began = time.monotonic()
    clock.sleep_until(clock.now() + 30)
    assert 0.1 < time.monotonic() - began < 10


def test_the_script_for_the_end_of_a_job_rings(bell: Bell, tmp_path: Path) -> None:
    script = tmp_path / "wake.sh"
    script.write_text(WAKE.read_text().replace("@WAKE@", place(str(tmp_path))))
    subprocess.run(["sh", str(script)], check=True, timeout=10)
    assert wait(bell, 5)


def test_the_script_waits_for_nothing_and_makes_nothing(tmp_path: Path) -> None:
    script, there = tmp_path / "wake.sh", tmp_path / NAME
    script.write_text(WAKE.read_text().replace("@WAKE@", str(there)))
    subprocess.run(["sh", str(script)], check=True, timeout=10)
    assert not there.exists()
    there.write_text("kept")
    subprocess.run(["sh", str(script)], check=True, timeout=10)
    assert there.read_text() == "kept"
    there.unlink()
    os.mkfifo(there)  # that nobody listens to
    subprocess.run(["sh", str(script)], check=True, timeout=10)


def test_who_writes_into_it_or_keeps_it_open_only_wakes(bell: Bell, tmp_path: Path) -> None:
    holder = os.open(place(str(tmp_path)), os.O_RDWR | os.O_NONBLOCK)
    try:
        os.write(holder, b"x" * 4096)
        assert wait(bell, 5)
        bell.answer()
        assert not wait(bell), "what was written is gone"
    finally:
        os.close(holder)


def test_it_is_made_anew_where_it_was_taken_away_or_replaced(bell: Bell, tmp_path: Path) -> None:
    there = tmp_path / NAME
    for replace in (lambda: None, lambda: there.write_text("x"), lambda: os.mkfifo(there)):
        there.unlink()
        replace()
        bell.hang(str(tmp_path))
        assert stat.S_IMODE(there.stat().st_mode) == 0o666
        ring(str(tmp_path))
        assert wait(bell, 5)
        bell.answer()


def test_it_hangs_in_no_folder_that_others_can_change(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    bell = Bell()
    for folder in (str(tmp_path), str(tmp_path / "nowhere"), ""):
        bell.hang(folder)
        assert not bell.wait(0.01)
    assert not (tmp_path / NAME).exists()


def test_it_moves_with_the_folder_and_ringing_nowhere_is_nothing(bell: Bell, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir(mode=0o755)
    bell.hang(str(other))
    ring(str(tmp_path))
    assert not wait(bell)
    ring(str(other))
    assert wait(bell, 5)
    bell.hang("")
    ring(str(other))
    ring("")
    assert not wait(bell)
