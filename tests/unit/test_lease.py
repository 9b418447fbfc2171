"""lease.py: requests, answers, reports, snapshots and their fence; one module, usable alone."""

from __future__ import annotations

import ast
import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from slurm_fair import lease
from slurm_fair.lease import Lease, learning_rate_factor, save_snapshot
from tests.support.lease_folder import ask, environment, read

FILE = Path(lease.__file__)


@pytest.fixture(autouse=True)
def _own_signals(monkeypatch: pytest.MonkeyPatch) -> Any:
    """No test waits for the file to be looked at again, and none leaves a handler behind."""
    monkeypatch.setattr(lease, "LOOK_SECONDS", 0.0)
    before = signal.getsignal(signal.SIGUSR2)
    yield
    signal.signal(signal.SIGUSR2, before)


def test_it_imports_nothing_but_the_standard_library() -> None:
    names: set[str] = set()
    for node in ast.walk(ast.parse(FILE.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names.add(node.module or "")
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names


def test_its_syntax_is_that_of_python_3_8() -> None:
    ast.parse(FILE.read_text(), feature_version=(3, 8))


def test_outside_slurm_every_call_does_nothing(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGUSR2)
    free = Lease({})
    assert not free.should_stop()
    assert not free.acknowledge(3)
    assert not free.on_checkpoint(lambda: pytest.fail("nobody asked"))
    assert not free.report(step=1)
    free.wait_for_requeue()
    with free.step(1), free.profile("forward"):
        pass
    assert free.status() == lease.Status(0, 0, None, 1.0)
    assert signal.getsignal(signal.SIGUSR2) == before
    assert list(tmp_path.iterdir()) == []


def test_a_request_by_file_is_seen_and_answered_once(tmp_path: Path) -> None:
    job = Lease(environment(tmp_path))
    assert not job.should_stop()
    ask(tmp_path, 1)
    assert job.should_stop()
    assert job.acknowledge(40, path="/data/x")
    answer = read(tmp_path, "ack.json")
    assert answer.pop("time") > 1e9
    assert 0 <= answer.pop("save_s") < 5
    head = {"v": 1, "what": "ack", "job": "7", "restart": 1}
    assert answer == {**head, "request": 1, "saved": True, "step": 40}
    assert not job.should_stop()
    assert not job.acknowledge(41)
    ask(tmp_path, 2)
    assert job.should_stop()
    assert job.acknowledge(50, saved=False)
    assert (read(tmp_path, "ack.json")["request"], read(tmp_path, "ack.json")["saved"]) == (2, False)


def test_a_request_to_another_run_is_not_ours(tmp_path: Path) -> None:
    ask(tmp_path, 4, restart=0)
    assert not Lease(environment(tmp_path)).should_stop()


def test_a_second_process_of_the_run_knows_what_the_first_answered(tmp_path: Path) -> None:
    ask(tmp_path, 1)
    assert Lease(environment(tmp_path)).acknowledge(3)
    assert not Lease(environment(tmp_path)).should_stop()
    ask(tmp_path, 2)
    assert Lease(environment(tmp_path)).should_stop()


def test_a_new_run_is_not_bound_by_the_answer_of_the_last(tmp_path: Path) -> None:
    ask(tmp_path, 1, restart=0)
    assert Lease(environment(tmp_path, SLURM_RESTART_COUNT="0")).acknowledge(3)
    ask(tmp_path, 1)
    assert Lease(environment(tmp_path)).should_stop()


def test_a_signal_is_a_request_and_the_handler_before_ours_still_runs(tmp_path: Path) -> None:
    heard: list[int] = []
    signal.signal(signal.SIGUSR2, lambda number, _frame: heard.append(number))
    job = Lease(environment(tmp_path))
    assert not job.should_stop()
    os.kill(os.getpid(), signal.SIGUSR2)
    assert job.should_stop()
    assert heard == [signal.SIGUSR2]
    assert job.acknowledge(9)
    assert read(tmp_path, "ack.json")["request"] == 1


def test_the_signal_of_a_request_in_the_file_is_not_counted_twice(tmp_path: Path) -> None:
    job = Lease(environment(tmp_path))
    assert not job.should_stop()
    ask(tmp_path, 1)
    os.kill(os.getpid(), signal.SIGUSR2)
    assert job.acknowledge(9)
    assert not job.should_stop()


def test_term_keeps_ending_the_process_even_as_request_signal(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    Lease(environment(tmp_path, SLURM_FAIR_SIGNAL="TERM")).should_stop()
    assert signal.getsignal(signal.SIGTERM) == before


def test_on_checkpoint_saves_answers_and_waits_for_the_grace(tmp_path: Path) -> None:
    job = Lease(environment(tmp_path, SLURM_FAIR_GRACE="1"))
    saves: list[int] = []

    def save() -> int:
        saves.append(1)
        return 12

    assert not job.on_checkpoint(save)
    ask(tmp_path, 1)
    assert job.on_checkpoint(save)
    assert saves == [1]
    assert read(tmp_path, "ack.json")["step"] == 12


def test_waiting_ends_early_when_it_is_asked_again(tmp_path: Path) -> None:
    job = Lease(environment(tmp_path))
    ask(tmp_path, 1)
    assert job.acknowledge(1)
    ask(tmp_path, 2)
    job.wait_for_requeue(timeout_seconds=200)
    assert job.should_stop()


def test_only_rank_0_writes_but_all_ranks_stop(tmp_path: Path) -> None:
    ask(tmp_path, 1)
    for variable in ("RANK", "SLURM_PROCID"):
        other = Lease(environment(tmp_path, **{variable: "3"}))
        assert other.should_stop()
        assert other.acknowledge(5)
        assert not other.should_stop()
        assert not other.report(step=5)
    assert not (tmp_path / "ack.json").exists()
    assert not (tmp_path / "report.json").exists()


def test_reports_are_written_now_and_then_and_carry_what_came_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Lease(environment(tmp_path))
    assert job.report(step=1, steps=9, loss=math.nan, path=Path("x"), odd=[object()])
    first = read(tmp_path, "report.json")
    assert {key: first[key] for key in ("v", "restart", "step", "steps")} == {
        "v": 1,
        "restart": 1,
        "step": 1,
        "steps": 9,
    }
    assert set(first) == {"v", "what", "job", "restart", "step", "steps", "time"}
    assert not job.report(step=2, epoch=1)
    assert read(tmp_path, "report.json")["step"] == 1
    monkeypatch.setattr(lease, "REPORT_SECONDS", 0.0)
    with job.profile("data"):
        pass
    assert job.report(step=3)
    last = read(tmp_path, "report.json")
    assert (last["step"], last["epoch"], list(last["phases"])) == (3, 1, ["data"])


class Seconds:
    """A stopwatch that the test turns."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("slurm_fair.lease.time.perf_counter", lambda: self.now)
        monkeypatch.setattr(lease, "REPORT_SECONDS", 0.0)

    def phases(self, job: Lease, **seconds: float) -> None:
        """Phases one after another."""
        for name, lasts in seconds.items():
            with job.profile(name):
                self.now += lasts


def test_a_step_tells_its_phases_and_that_data_came_before_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, clock = Lease(environment(tmp_path)), Seconds(monkeypatch)
    with job.step(1, steps=9, batch_size=8):
        clock.phases(job, data=2.0)
        clock.phases(job, forward=1.0, backward=1.0)
        clock.phases(job, forward=2.0, backward=2.0, update=0.5)  # gradients of two batches
    said = read(tmp_path, "report.json")
    assert said["phases"] == {"data": 2.0, "forward": 3.0, "backward": 3.0, "update": 0.5}
    assert (said["step"], said["steps"], said["batch_size"], said["pattern"]) == (1, 9, 8, 2)


def test_data_that_another_thread_loads_meanwhile_are_pattern_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, clock = Lease(environment(tmp_path)), Seconds(monkeypatch)
    with job.step(1):
        began = clock.now
        clock.phases(job, data=2.0)
        clock.now = began  # the other thread is not waited for
        clock.phases(job, forward=1.0, backward=2.0, sync=0.5)
    assert read(tmp_path, "report.json")["pattern"] == 1
    with job.step(2, pattern=2):
        clock.phases(job, forward=1.0)
    assert read(tmp_path, "report.json")["pattern"] == 2, "what the user says stands"


@pytest.mark.parametrize(
    ("phases", "whole", "pattern"),
    [
        ({"data": 0.04, "forward": 1.0}, 1.0, 0),
        ({"data": 1.0}, 1.0, 0),
        ({"forward": 1.0, "backward": 1.0}, 2.0, 0),
        ({"data": 1.0, "backward": 3.0, "sync": 1.0}, 4.0, 2),
        ({"data": 1.0, "backward": 3.0}, 3.4, 1),
        ({"data": 1.0, "backward": 3.0}, 3.6, 2),
        ({"data": 1.0, "backward": 3.0}, 9.0, 2),
        ({"data": 5.0, "backward": 3.0}, 5.0, 1),
        ({"data": 1.0, "backward": 3.0}, 0.0, 0),
    ],
)
def test_the_pattern_is_found_where_data_take_time(
    phases: dict[str, float], whole: float, pattern: int
) -> None:
    assert lease.pattern_of(phases, whole) == pattern


def test_a_step_that_fails_is_not_done(tmp_path: Path) -> None:
    job = Lease(environment(tmp_path))
    with pytest.raises(KeyError), job.step(1):
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_a_report_longer_than_the_controller_reads_is_not_written(tmp_path: Path) -> None:
    assert not Lease(environment(tmp_path)).report(note="x" * 70_000)
    assert list(tmp_path.iterdir()) == []


def test_a_later_runs_files_are_not_overwritten(tmp_path: Path) -> None:
    later, earlier = Lease(environment(tmp_path, SLURM_RESTART_COUNT="2")), Lease(environment(tmp_path))
    assert later.report(step=90)
    assert not earlier.report(step=70)
    assert read(tmp_path, "report.json")["step"] == 90


def test_a_folder_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    job = Lease(environment(gone))
    assert not job.report(step=1)
    assert not job.should_stop()
    gone.mkdir()
    ask(gone, 1)
    assert job.should_stop()
    (gone / "request.json").unlink()
    gone.rmdir()
    assert not job.acknowledge(1)
    assert not job.should_stop()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"request": "x"}', '{"restart": 1, "request": null}', "\0"])
def test_a_broken_request_file_is_no_request(tmp_path: Path, text: str) -> None:
    (tmp_path / "request.json").write_text(text)
    assert not Lease(environment(tmp_path)).should_stop()


def test_an_unknown_phase_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="none of data, forward"), lease.profile("sleeping"):
        pass


@pytest.mark.parametrize(
    ("rule", "gpus", "reference", "factor"),
    [
        ("fixed", 8, 2, 1.0),
        ("linear", 8, 2, 4.0),
        ("linear", 1, 4, 0.25),
        ("sqrt", 8, 2, 2.0),
        ("2=0.1,8=0.3", 8, 2, 3.0),
        ("2=0.1,8=0.3", 4, 2, 1.0),
        ("linear", 0, 2, 1.0),
        ("", 8, 2, 1.0),
    ],
)
def test_the_learning_rate_follows_the_rule(rule: str, gpus: int, reference: int, factor: float) -> None:
    assert learning_rate_factor(rule, gpus, reference) == pytest.approx(factor)


def test_the_status_is_that_of_this_run(tmp_path: Path) -> None:
    job = Lease(
        environment(
            tmp_path,
            SLURM_GPUS_ON_NODE="4",
            SLURM_JOB_NUM_NODES="2",
            SLURM_FAIR_GPUS_CHOICES="2,4,8",
            SLURM_FAIR_LR_RULE="linear",
            SLURM_FAIR_PUBLISH_DIR=str(tmp_path),
        )
    )
    assert job.status() == lease.Status(1, 8, None, 4.0, 2)
    (tmp_path / "7.json").write_text('{"restart": 1, "lease_end": 1234.5}')
    assert job.status().lease_end == 1234.5
    (tmp_path / "7.json").write_text('{"restart": 0, "lease_end": 1234.5}')
    assert job.status().lease_end is None


def test_an_array_task_is_called_by_the_arrays_number() -> None:
    assert (
        lease.job_name({"SLURM_JOB_ID": "9", "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "2"}) == "7_2"
    )
    assert lease.job_name({"SLURM_JOB_ID": "9"}) == "9"


def write_text(text: str) -> Any:
    """A save function that writes one file."""
    return lambda path: path.write_text(text)


def test_the_newest_snapshot_is_that_of_the_latest_run_not_of_the_highest_step(tmp_path: Path) -> None:
    for restart, step in ((0, 100), (1, 120), (0, 900), (1, 80)):
        (tmp_path / f"snapshot-r{restart:06d}-s{step:012d}").write_text("x")
    assert [(s.restart, s.step) for s in lease.snapshots(tmp_path)] == [(1, 120), (1, 80), (0, 900), (0, 100)]
    newest = lease.latest(tmp_path)
    assert newest is not None
    assert (newest.restart, newest.step) == (1, 120)


def test_half_written_empty_and_refused_snapshots_are_passed_over(tmp_path: Path) -> None:
    assert lease.latest(tmp_path / "absent") is None
    save_snapshot(tmp_path, 1, write_text("good"), restart=0)
    save_snapshot(tmp_path, 2, write_text("bad"), restart=0)
    (tmp_path / "snapshot-r000000-s000000000003").write_text("")
    (tmp_path / "snapshot-r000000-s000000000004").mkdir()
    (tmp_path / ".snapshot-r000000-s000000000005.1.1").write_text("half")
    newest = lease.latest(tmp_path, lambda path: path.read_text() == "good")
    assert newest is not None
    assert newest.step == 1


def test_a_run_that_a_later_one_has_overtaken_writes_nothing_more(tmp_path: Path) -> None:
    assert save_snapshot(tmp_path, 10, write_text("old run"), restart=0) is not None
    assert save_snapshot(tmp_path, 10, write_text("new run"), restart=1) is not None
    before = sorted(path.name for path in tmp_path.iterdir())
    assert not lease.may_write(tmp_path, restart=0)
    assert save_snapshot(tmp_path, 999, write_text("zombie"), restart=0) is None
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert lease.may_write(tmp_path, restart=1)


def test_a_save_that_fails_leaves_the_last_snapshot_and_no_rubbish(tmp_path: Path) -> None:
    save_snapshot(tmp_path, 1, write_text("good"), restart=0)

    def fail(path: Path) -> None:
        path.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        save_snapshot(tmp_path, 2, fail, restart=0)
    assert [path.name for path in tmp_path.iterdir()] == ["snapshot-r000000-s000000000001"]


def test_a_snapshot_may_be_a_folder_and_be_saved_twice_and_old_ones_go(tmp_path: Path) -> None:
    def folder(path: Path) -> None:
        (path / "deep").mkdir(parents=True)
        (path / "deep" / "weights").write_text("w")

    for step in (1, 2, 3, 3):
        path = save_snapshot(tmp_path, step, folder, keep=2, restart=0)
        assert path is not None
        assert (path / "deep" / "weights").read_text() == "w"
    assert sorted(int(path.name[-3:]) for path in tmp_path.iterdir()) == [2, 3]


def run_alone(tmp_path: Path, *arguments: str, restart: int = 1) -> subprocess.CompletedProcess[str]:
    """A copy of the file, by itself, as on a compute node."""
    alone = tmp_path / "alone" / "lease.py"
    alone.parent.mkdir(exist_ok=True)
    alone.write_bytes(FILE.read_bytes())
    env = {**environment(tmp_path, SLURM_RESTART_COUNT=str(restart)), "PATH": os.environ["PATH"]}
    return subprocess.run(
        [sys.executable, "-I", alone, *arguments],
        env=env,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )


def test_shell_scripts_can_ask_answer_and_report(tmp_path: Path) -> None:
    assert run_alone(tmp_path, "should-stop").returncode == 1
    assert run_alone(tmp_path, "ack", "--step", "3").returncode == 1
    ask(tmp_path, 1)
    assert run_alone(tmp_path, "should-stop").returncode == 0
    assert run_alone(tmp_path, "ack", "--step", "3", "--path", "p").returncode == 0
    assert read(tmp_path, "ack.json")["step"] == 3
    assert run_alone(tmp_path, "should-stop").returncode == 1
    assert run_alone(tmp_path, "report", "step=3", "loss=0.5").returncode == 0
    assert read(tmp_path, "report.json")["loss"] == 0.5
    assert json.loads(run_alone(tmp_path, "status").stdout)["restart"] == 1
