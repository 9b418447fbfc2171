"""Reports of running jobs go through the whole daemon: into its journal, to the next job, and past its end."""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_fair.board.board import draw
from slurm_fair.cli.replay_tick import replayed, same_plan
from slurm_fair.config.sections import PolicySection
from slurm_fair.ledger import LedgerSettings
from slurm_fair.model import TickRecord
from slurm_fair.slurm.reading.messages import job_directory
from tests.support.daemon_bench import Bench, bench_in, changed
from tests.support.fake_slurm import Work

ME = pwd.getpwuid(os.geteuid()).pw_name
TRAIN = {"UserName": ME, "%j": "train-1"}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A site whose daemon reads files; jobs are ours, so that their files are their users'."""
    (tmp_path / "jobs").mkdir()
    with bench_in(tmp_path / "storage") as made:
        policy = PolicySection("srtf")  # it goes by what is left
        made.config = replace(changed(made.config, slurm={"reports": "file"}), policy=policy)
        made.commands.work = str(tmp_path / "jobs")
        made.restart()
        yield made


def submit(bench: Bench, name: str = "train-1", gpus: int = 2, work: float = 1e6) -> int:
    """A job of ours with a name."""
    number = bench.world.submit(gpus, work=Work(work, checkpoints=True))
    bench.world.records[number].raw = {"UserName": ME, "User": ME, "%j": name}
    return number


def report(bench: Bench, number: int, **keys: object) -> None:
    """A report as lease.py writes it."""
    folder = job_directory(f"{bench.commands.work}/{number}", str(number))
    folder.mkdir(parents=True, exist_ok=True)
    for each in (folder.parent, folder):
        each.chmod(0o711)
    head = {"v": 1, "what": "report", "job": str(number), "restart": 0, "time": bench.now}
    (folder / "report.json").write_text(json.dumps(head | keys))


def last(bench: Bench) -> TickRecord:
    """The newest tick of the journal."""
    numbers = bench.journal.tick_numbers()
    assert numbers is not None
    (tick,) = bench.journal.ticks(numbers[1])
    return tick


def trains(bench: Bench, number: int, seconds: int, steps_per_second: float = 5.0) -> None:
    """The job runs and reports."""
    start = bench.world.records[number].start
    for _ in range(0, seconds, 20):
        bench.run(20)
        report(bench, number, step=steps_per_second * (bench.now - start), steps=50_000, batch_size=32)
    bench.run(11)


def test_a_report_is_seen_in_the_journal_and_explained(bench: Bench) -> None:
    number = submit(bench)
    bench.run(15)
    trains(bench, number, 200)
    tick = last(bench)
    seen = tick.snapshot
    assert seen.told is not None
    assert seen.reported is not None
    assert seen.told.steps_per_second.tolist() == pytest.approx([5.0], rel=0.02)
    assert seen.told.batch_size.tolist() == [32]
    assert seen.told.left_seconds.item() == pytest.approx(10_000 - 200, rel=0.05)
    row = draw(tick, bench.daemon.standing).find(str(number))
    assert row is not None
    assert row["reported"]["steps"] == 50_000
    assert row["reported"]["clamped"] is False
    assert row["job_class"] == "a: name=train-#"


def test_the_next_job_of_the_class_is_known_at_its_first_look_and_after_a_restart(bench: Bench) -> None:
    number = submit(bench)
    bench.run(15)
    trains(bench, number, 120)
    bench.daemon.remember()
    bench.restart()
    second = submit(bench, "train-2", gpus=8)
    bench.daemon.once()
    seen = last(bench).snapshot
    assert seen.speeds is not None
    row = [key >> 23 for key in seen.jobs.key.tolist()].index(second)
    assert seen.speeds.classes[seen.speeds.job_class[row]] == "a: name=train-#"


def test_run_times_of_ended_jobs_tell_of_the_next_ones(bench: Bench) -> None:
    for _ in range(3):
        submit(bench, work=300.0)
    bench.run(400)
    submit(bench, "train-9")
    bench.run(20)
    told = last(bench).snapshot.told
    assert told is not None
    assert told.left_seconds.max() == pytest.approx(300, rel=0.1)


def test_without_learning_nothing_is_kept(bench: Bench) -> None:
    bench.config = changed(bench.config, throughput={"learn": False}, slurm={"reports": "file"})
    bench.restart()
    number = submit(bench)
    bench.run(15)
    trains(bench, number, 120)
    bench.daemon.remember()
    assert len(bench.journal.known()[0].samples) == 0
    assert last(bench).snapshot.speeds is None
    told = last(bench).snapshot.told
    assert told is not None
    assert told.steps_per_second.tolist() == pytest.approx([5.0], rel=0.02)


def test_a_replayed_tick_sees_what_was_known_then(bench: Bench) -> None:
    number = submit(bench)
    bench.run(15)
    trains(bench, number, 120)
    assert last(bench).snapshot.speeds is not None
    first, newest = bench.journal.tick_numbers() or (0, 0)
    for tick in range(first, newest + 1):
        again, then = replayed(bench.journal, tick, LedgerSettings())
        assert same_plan(again, then.plan), tick
