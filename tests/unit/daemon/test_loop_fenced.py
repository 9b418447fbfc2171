"""A daemon that stood still, was fenced meanwhile and wakes sends nothing more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slurm_fair.errors import NotTheOwner
from slurm_fair.model import Verb
from slurm_fair.slurm.command import CommandResult
from slurm_fair.store import fence
from tests.support.daemon_bench import Bench, bench_in


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with bench_in(tmp_path / "s", lease={"term": 60.0, "grace": 10.0}) as made:
        yield made


@pytest.mark.parametrize("heartbeat", ["left", "taken away"])
def test_a_fenced_daemon_sends_no_command(bench: Bench, heartbeat: str) -> None:
    """The dead-man takes the heartbeat away when all is free."""
    bench.run(5)
    fence(bench.places.journal, by="the dead-man")
    if heartbeat == "taken away":
        bench.places.heartbeat.unlink()
    bench.pass_time(5)
    with pytest.raises(NotTheOwner):
        bench.commands.run("scancel", "--batch", "--signal=USR2", "1")
    assert bench.acts() == []


def test_no_job_is_asked_by_a_daemon_that_was_fenced_after_its_intent(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.world.submit(8, "a")
    bench.run(20)
    bench.world.submit(8, "b", gate_seconds=1200)
    bench.run(20)
    run = bench.commands.run
    before = len(bench.acts())

    def stands_still(*argv: str, **more: Any) -> CommandResult:
        answer = run(*argv, **more)
        asks = [i for i in bench.journal.intents() if i.result is None and i.action.verb is Verb.ASK]
        if asks and argv[0] == "squeue":
            fence(bench.places.journal, by="the dead-man")
            bench.pass_time(300)
        return answer

    monkeypatch.setattr(bench.commands, "run", stands_still)
    with pytest.raises(NotTheOwner):
        bench.run(120)
    assert [line for line in bench.acts()[before:] if "scancel" in line] == []


def test_a_fenced_daemon_that_waits_for_a_plan_ends_at_its_next_command(bench: Bench) -> None:
    bench.run(5)
    left = bench.places.heartbeat.read_bytes()
    fence(bench.places.journal, by="the dead-man")
    bench.pass_time(5)
    bench.daemon.waits()
    assert bench.places.heartbeat.read_bytes() == left
    with pytest.raises(NotTheOwner):
        bench.commands.run("squeue")
