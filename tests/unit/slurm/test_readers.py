"""Readers: what hangs in one user's folder costs one look a second, and nobody else an answer."""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm_fair.slurm.reading.messages import ACK, Wanted, job_directory
from slurm_fair.slurm.reading.readers import Message, Readers
from tests.support.hanging import hanging

ME = pwd.getpwuid(os.geteuid()).pw_name
# Never answers in a folder that hangs; ends in one that kills it.
ODD = """import sys, time, os
print(flush=True)
for line in sys.stdin:
    if "hangs" in line: time.sleep(1000)
    if "kills" in line: os._exit(1)
    print("{}", flush=True)
"""


def asked(user: str, work_dir: str | Path, job: str = "7", what: str = ACK) -> Wanted:
    """A message of a job."""
    return Wanted(user, str(work_dir), job, what)


def saved(found: dict[int, Message]) -> dict[int, object]:
    """The word of each answer on the state; None where there is no answer."""
    return {key: message.get("saved") for key, message in found.items()}


def answer(work_dir: Path, job: str = "7") -> None:
    """The job has saved."""
    folder = job_directory(str(work_dir), job)
    for each in (folder.parent, folder):
        each.mkdir(exist_ok=True)
        each.chmod(0o711)
    document = {"what": "ack", "job": job, "restart": 0, "saved": True, "time": time.time()}
    (folder / "ack.json").write_text(json.dumps(document))


@pytest.fixture
def readers() -> Iterator[Readers]:
    """The readers as the daemon has them."""
    made = Readers()
    yield made
    made.close()


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[Readers]:
    """Readers for which some folders hang."""
    (tmp_path / "odd.py").write_text(ODD)
    made = Readers((sys.executable, "-I", "-S", str(tmp_path / "odd.py")), patience=1.0)
    yield made
    made.close()


def processes(readers: Readers) -> list[int]:
    """The processes that wait for the next look."""
    return [reader.process.pid for reader in readers._idle]


def test_answers_come_through_a_process(readers: Readers, tmp_path: Path) -> None:
    for job in ("7", "8_1"):
        answer(tmp_path, job)
    wanted = {1: asked(ME, tmp_path), 2: asked(ME, tmp_path, "8_1"), 3: asked(ME, tmp_path, "9")}
    assert saved(readers.read(wanted)) == {1: True, 2: True, 3: None}
    assert len(processes(readers)) == 1
    kept = processes(readers)
    assert saved(readers.read(wanted)) == {1: True, 2: True, 3: None}
    assert processes(readers) == kept


def test_it_is_said_why_a_folder_is_not_read(readers: Readers, tmp_path: Path) -> None:
    answer(tmp_path)
    (tmp_path / ".slurm-fair").chmod(0o777)
    told = readers.complaints({1: asked(ME, tmp_path), 2: asked(ME, "/nonexistent")})
    assert "not its user's alone" in told[1]
    assert told[2] == "there is no /nonexistent"


def test_users_whose_folders_hang_delay_one_look_and_no_other_users_answer(odd: Readers) -> None:
    hanging = {number: asked(f"bob{number}", "/hangs") for number in range(20)}
    more = {100 + number: asked("bob0", "/hangs") for number in range(50)}
    fine = {1000 + number: asked(f"alice{number % 30}", "/fine") for number in range(90)}
    began = time.monotonic()
    assert odd.read(hanging | more | fine) == {key: {} for key in fine}
    assert time.monotonic() - began < 5
    assert odd.hangs() == sorted(f"bob{number}" for number in range(20))
    odd.patience, began = 30.0, time.monotonic()
    assert odd.read(hanging | more | fine) == {key: {} for key in fine}
    assert time.monotonic() - began < 10, "users that hang are not tried again at the next look"
    assert len(processes(odd)) == 4, "many users need no more processes than few"


def test_more_users_that_hang_than_processes_keep_nobody_waiting_for_ever(odd: Readers) -> None:
    odd.at_once = 4
    wanted = {number: asked(f"bob{number}", "/hangs") for number in range(12)} | {99: asked("alice", "/fine")}
    for _ in range(4):
        found = odd.read(wanted)
        if found:
            break
    assert found == {99: {}}


def test_a_user_is_read_again_when_the_folder_answers_again(odd: Readers) -> None:
    assert odd.read({1: asked("bob", "/hangs")}) == {}
    assert odd.read({1: asked("bob", "/fine")}) == {}
    odd._rests["bob"].until = 0.0  # as if the time had passed
    for _, reader in odd._dying:
        reader.process.wait(10)
    assert odd.read({1: asked("bob", "/fine")}) == {1: {}}
    assert odd.hangs() == []


def test_a_user_whose_folder_goes_on_hanging_rests_longer_each_time_up_to_ten_minutes(odd: Readers) -> None:
    odd.patience = 0.05
    rests = []
    for _ in range(6):
        odd.read({1: asked("bob", "/hangs")})
        rests.append(odd._rests["bob"].until - time.monotonic())
        odd._rests["bob"].until = 0.0  # as if the time had passed
        while any(reader.process.poll() is None for _, reader in odd._dying):
            time.sleep(0.01)
    assert rests == pytest.approx([30, 60, 120, 240, 480, 600], abs=2)


def test_a_user_is_not_read_while_a_process_of_the_last_read_cannot_die(odd: Readers) -> None:
    odd.read({1: asked("alice", "/fine")})
    undead = odd._idle.pop()
    odd._dying.append(("bob", undead))
    assert odd.read({1: asked("bob", "/fine"), 2: asked("alice", "/fine")}) == {2: {}}
    undead.end()
    undead.process.wait(10)
    assert odd.read({1: asked("bob", "/fine")}) == {1: {}}


def test_a_process_that_ends_or_is_stopped_is_replaced(odd: Readers) -> None:
    wanted = {1: asked("alice", "/fine"), 2: asked("bob", "/kills")}
    assert odd.read(wanted) == {1: {}}
    for pid in processes(odd):
        os.kill(pid, signal.SIGSTOP)
    assert odd.read({1: asked("carol", "/fine")}) == {}
    assert odd.read({1: asked("dave", "/fine")}) == {1: {}}


def test_processes_that_do_not_start_cost_nobody_a_rest() -> None:
    for program in (["/nonexistent"], ["/bin/false"]):
        readers = Readers(program)
        assert readers.read({1: asked("alice", "/fine")}) == {}
        assert readers.hangs() == []
        readers.close()


def test_a_process_is_isolated_from_where_and_how_the_daemon_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('run from the working folder')")
    (tmp_path / "sitecustomize.py").write_text("raise SystemExit('run from PYTHONPATH')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("SECRET", "x")
    answer(tmp_path)
    readers = Readers()
    try:
        assert saved(readers.read({1: asked(ME, tmp_path)})) == {1: True}
        (pid,) = processes(readers)
        assert os.readlink(f"/proc/{pid}/cwd") == "/"
        assert Path(f"/proc/{pid}/environ").read_bytes() == b"LC_ALL=C.UTF-8\0"
    finally:
        readers.close()


OWNER = """import sys
from slurm_fair.slurm.reading.messages import Wanted
from slurm_fair.slurm.reading.readers import Readers
readers = Readers(sys.argv[1:], patience=0.2)
readers.read({1: Wanted("bob", "/hangs", "7"), 2: Wanted("alice", "/fine", "7")})
print(*[reader.process.pid for _, reader in readers._dying], *[r.process.pid for r in readers._idle], flush=True)
"""


def test_no_process_outlives_the_daemon_or_keeps_it(tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(ODD)
    argv = [sys.executable, "-c", OWNER, sys.executable, "-I", "-S", str(tmp_path / "odd.py")]
    began = time.monotonic()
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True)
    assert time.monotonic() - began < 5
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 2
    assert not [pid for pid in pids if Path(f"/proc/{pid}/cwd").exists()]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_file_system_that_really_hangs_costs_a_second_once(readers: Readers, tmp_path: Path) -> None:
    answer(tmp_path)
    (tmp_path / "dead").mkdir()
    with hanging(tmp_path / "dead") as place:
        wanted = {1: asked("nobody", place), 2: asked(ME, tmp_path)}
        began = time.monotonic()
        assert saved(readers.read(wanted)) == {2: True}
        assert 0.9 < time.monotonic() - began < 5
        readers.patience, began = 30.0, time.monotonic()
        assert saved(readers.read(wanted)) == {2: True}
        assert time.monotonic() - began < 10
