"""The last store of lease.py: what a job keeps in memory reaches the disk when it is asked amid a long step."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from slurm_fair import lease
from slurm_fair.lease import Lease, save_snapshot

# A training whose steps we hold in our hand: each order is a line; a "long" step and a "call" end with the file
# `over`, the states of the steps in the file `unwritable` cannot be written, "state 99" is never done with it.
TRAINING = """
import ctypes, os, sys, time
from pathlib import Path
from slurm_fair import lease

def write(state, path):
    path.write_text(state)
    unwritable = Path("unwritable")
    if unwritable.exists() and state.split()[1] in unwritable.read_text().split():
        raise OSError("disk full")
    if state == "state 99":
        time.sleep(600)

for order in sys.stdin:
    word, _, step = order.strip().partition(" ")
    print("begins", order, end="", flush=True)
    if word == "long":
        while not Path("over").exists():
            time.sleep(0.01)
        Path("over").unlink()
    if word == "call":
        ctypes.CDLL(None).system(b"until rm over 2>/dev/null; do sleep 0.05; done")
    if word == "forks" and os.fork() == 0:
        time.sleep(0.5)
        os.kill(os.getpid(), 12)
        time.sleep(0.5)
        os._exit(0)
    if word == "forks":
        os.wait()
    if word == "saves":
        lease.on_checkpoint(lambda: print("saves itself", flush=True) or int(step))
    elif step:
        waited = lease.keep("snapshots", int(step), f"state {step}", write)
        print("kept", step, "waited" if waited else "at once", len(os.listdir("/proc/self/task")), flush=True)
"""


class Training:
    """The training above, run as run 1 of a job, and what a controller does to it and sees of it."""

    def __init__(self, folder: Path, grace: int = 1, **more: str) -> None:
        self.folder, self.requests = folder, 0
        self.messages = folder / "messages"
        self.messages.mkdir(exist_ok=True)
        with (folder / "output").open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", TRAINING],
                cwd=folder,
                env={
                    **os.environ,
                    "PYTHONPATH": str(Path(lease.__file__).parents[1]),
                    **environment(self.messages, SLURM_FAIR_GRACE=str(grace), **more),
                },
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                text=True,
                start_new_session=True,
            )

    def said(self) -> str:
        """The lines that it has printed."""
        return (self.folder / "output").read_text()

    def until(self, true: Callable[[], bool], seconds: float = 20) -> None:
        deadline = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < deadline, f"not within {seconds} s; it said: {self.said()}"
            time.sleep(0.02)

    def orders(self, *words: str) -> None:
        """Let it begin with these steps, one after the other."""
        assert self.process.stdin is not None
        for word in words:
            self.process.stdin.write(f"{word}\n")
            self.process.stdin.flush()
        self.until(lambda: f"begins {words[-1]}\n" in self.said())

    def ends_step(self) -> None:
        """End the long step that runs."""
        (self.folder / "over").touch()

    def asks(self) -> None:
        """A request as the runtime makes it."""
        self.requests += 1
        head = {"v": 1, "what": "request", "job": "7", "restart": 1}
        request = {**head, "request": self.requests, "time": 1}
        lease.replace(self.messages / "request.json", json.dumps(request).encode())
        self.process.send_signal(signal.SIGUSR2)

    def answer(self) -> tuple[Any, ...]:
        """Request, saved and step of the acknowledgement."""
        with suppress(FileNotFoundError):
            document = json.loads((self.messages / "ack.json").read_text())
            return document["request"], document["saved"], document["step"]
        return ()

    def answers(self, request: int, saved: bool, step: int | None) -> None:
        """Wait for this answer."""
        self.until(lambda: self.answer() == (request, saved, step))

    def stored(self) -> list[str]:
        """The contents of the snapshots, the newest first."""
        return [snapshot.path.read_text() for snapshot in lease.snapshots(self.folder / "snapshots")]

    def stop(self) -> None:
        """Kill it and what it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait(20)


def environment(folder: Path, **more: str) -> dict[str, str]:
    """The variables that the runtime sets, for run 1 of job 7."""
    return {
        "SLURM_FAIR_MANAGED": "1",
        "SLURM_FAIR_DIR": str(folder),
        "SLURM_FAIR_GRACE": "1",
        "SLURM_FAIR_SIGNAL": "USR2",
        "SLURM_JOB_ID": "7",
        "SLURM_RESTART_COUNT": "1",
        **more,
    }


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Training]]:
    """Starts trainings; none outlives the test."""
    begun: list[Training] = []

    def begin(**more: Any) -> Training:
        begun.append(Training(tmp_path, **more))
        return begun[-1]

    yield begin
    for training in begun:
        training.stop()


def test_asked_amid_a_long_step_it_stores_at_once_and_again_when_the_step_ends(
    start: Callable[..., Training],
) -> None:
    job = start(grace=30)
    job.orders("short 10", "long 11")
    assert not (job.folder / "snapshots").exists()
    job.asks()
    job.answers(1, True, 10)
    assert job.stored() == ["state 10"]
    job.ends_step()
    job.answers(1, True, 11)
    assert job.stored() == ["state 11", "state 10"]
    assert "kept 11" not in job.said(), "it makes no more progress: it waits for the requeue"
    job.process.send_signal(signal.SIGTERM)
    assert job.process.wait(20) == -signal.SIGTERM


def test_a_job_that_nobody_fetches_goes_on_and_answers_the_next_request(
    start: Callable[..., Training],
) -> None:
    job = start(grace=1)
    job.orders("short 10", "long 11")
    job.asks()
    job.answers(1, True, 10)
    job.ends_step()
    job.until(lambda: "kept 11 waited" in job.said())
    job.orders("short 12", "long 13")
    job.asks()
    job.answers(2, True, 12)


def test_asked_twice_in_one_step_it_answers_twice(start: Callable[..., Training]) -> None:
    job = start()
    job.orders("short 10", "long 11")
    for request in (1, 2):
        job.asks()
        job.answers(request, True, 10)


def test_a_job_that_is_never_asked_starts_no_thread_and_writes_nothing(
    start: Callable[..., Training],
) -> None:
    job = start(grace=60)
    job.orders(*(f"short {step}" for step in range(10, 20)))
    job.until(lambda: "kept 19" in job.said())
    assert re.findall(r"kept \d+ (.*)", job.said()) == ["at once 1"] * 10
    assert not (job.folder / "snapshots").exists()
    assert list(job.messages.iterdir()) == []


def test_a_step_that_is_one_call_without_python_is_no_hindrance(start: Callable[..., Training]) -> None:
    job = start(grace=1)
    job.orders("long 10")
    time.sleep(0.6)  # more than half the grace: its steps are known to be long
    job.ends_step()
    job.orders("call 11")
    job.asks()
    job.answers(1, True, 10)
    job.ends_step()
    job.answers(1, True, 11)


def test_not_saved_is_said_when_nothing_is_and_not_before_the_step_has_ended(
    start: Callable[..., Training],
) -> None:
    job = start()
    (job.folder / "unwritable").write_text("10 11")
    job.orders("short 10", "long 11")
    job.asks()
    job.until(lambda: "OSError: disk full" in job.said())
    assert job.answer() == ()
    job.ends_step()
    job.answers(1, False, None)
    job.orders("short 12")
    job.until(lambda: "kept 12" in job.said())


def test_what_cannot_be_stored_amid_a_step_is_made_up_for_at_its_end(start: Callable[..., Training]) -> None:
    job = start()
    (job.folder / "unwritable").write_text("10")
    job.orders("short 10", "long 11")
    job.asks()
    job.until(lambda: "OSError: disk full" in job.said())
    job.ends_step()
    job.answers(1, True, 11)


def test_a_newer_state_that_cannot_be_stored_leaves_the_answer_with_the_older(
    start: Callable[..., Training],
) -> None:
    job = start()
    (job.folder / "unwritable").write_text("11")
    job.orders("short 10", "long 11")
    job.asks()
    job.answers(1, True, 10)
    job.ends_step()
    job.until(lambda: "kept 11 waited" in job.said())
    assert "OSError: disk full" in job.said()
    assert (job.answer(), job.stored()) == ((1, True, 10), ["state 10"])


def test_a_job_that_saves_in_its_own_way_at_the_end_of_the_step_answers_with_that(
    start: Callable[..., Training],
) -> None:
    job = start()
    job.orders("short 10", "long")
    job.asks()
    job.answers(1, True, 10)
    job.ends_step()
    job.orders("saves 11")
    job.answers(1, True, 11)
    job.until(lambda: "saves itself" in job.said())


def test_a_process_forked_from_the_training_neither_stores_nor_answers(
    start: Callable[..., Training],
) -> None:
    """Such as one that loads data: it has the training's handler, and a state of when it was forked."""
    job = start()
    job.orders("short 10", "forks", "long 11")
    assert not (job.folder / "snapshots").exists()
    assert job.answer() == ()
    job.asks()
    job.answers(1, True, 10)


def test_what_it_was_writing_when_it_was_ended_is_cleared_away_by_the_next_run(
    start: Callable[..., Training],
) -> None:
    job = start()
    job.orders("short 10", "short 99", "long 100")
    job.asks()
    snapshots = job.folder / "snapshots"
    job.until(lambda: any(path.name.startswith(".snapshot") for path in snapshots.glob(".*")))
    job.process.kill()
    job.process.wait(20)
    assert lease.latest(snapshots) is None
    (later := start(SLURM_RESTART_COUNT="2")).orders("short 10", "long 11")
    later.process.send_signal(signal.SIGUSR2)
    later.until(lambda: [path.name for path in snapshots.iterdir()] == ["snapshot-r000002-s000000000010"])


def test_a_run_that_a_later_one_has_overtaken_stores_nothing(tmp_path: Path) -> None:
    save_snapshot(tmp_path / "snapshots", 3, lambda path: path.write_text("new run"), restart=2)
    job = asked_before_it_keeps(tmp_path)
    assert job.keep(tmp_path / "snapshots", 11, "old run", write_text)
    assert [path.read_text() for path in (tmp_path / "snapshots").iterdir()] == ["new run"]
    assert json.loads((tmp_path / "ack.json").read_text())["saved"] is False


def test_only_rank_0_stores_but_all_ranks_wait(tmp_path: Path) -> None:
    job = asked_before_it_keeps(tmp_path, RANK="1")
    assert job.keep(tmp_path / "snapshots", 11, None, lambda *_: pytest.fail("it is not the leader"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["request.json"]


def test_outside_slurm_nothing_is_kept(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGUSR2)
    assert not Lease({}).keep(tmp_path, 1, "state", lambda *_: pytest.fail("nobody asked"))
    assert signal.getsignal(signal.SIGUSR2) == before
    assert list(tmp_path.iterdir()) == []


def test_it_keeps_as_many_snapshots_as_it_is_told(tmp_path: Path) -> None:
    for step in range(5):
        save_snapshot(tmp_path / "snapshots", step, lambda path: path.write_text("x"), keep=9, restart=0)
    assert asked_before_it_keeps(tmp_path).keep(tmp_path / "snapshots", 11, "x", write_text, keep=4)
    assert [snapshot.step for snapshot in lease.snapshots(tmp_path / "snapshots")] == [11, 4, 3, 2]


def test_two_threads_may_save_the_same_step(tmp_path: Path) -> None:
    def folder(path: Path) -> None:
        path.mkdir()
        (path / "weights").write_text("w" * 1000)

    with ThreadPoolExecutor(4) as pool:
        saved = list(pool.map(lambda _: save_snapshot(tmp_path, 7, folder, restart=0), range(60)))
    assert len(set(saved)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["snapshot-r000000-s000000000007"]


def write_text(state: str, path: Path) -> None:
    """The way in which the states of these tests are written."""
    path.write_text(state)


def asked_before_it_keeps(folder: Path, **more: str) -> Lease:
    """A run that was asked, by the file alone, before it keeps its next step."""
    job = Lease(environment(folder, SLURM_FAIR_GRACE="0", **more))
    request = '{"v": 1, "what": "request", "job": "7", "restart": 1, "request": 1, "time": 1}'
    (folder / "request.json").write_text(request)
    return job


@pytest.fixture(autouse=True)
def _own_signals() -> Iterator[None]:
    """No test leaves a handler behind."""
    before = signal.getsignal(signal.SIGUSR2)
    yield
    signal.signal(signal.SIGUSR2, before)
