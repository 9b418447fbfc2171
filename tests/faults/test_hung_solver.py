"""The daemon over a fake Slurm under a policy whose solver hangs, crashes or bloats in one look of three.

Time is virtual but for the planning process: its deadline is on the wall.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_fair.board.health import DaemonState
from slurm_fair.daemon.plan_tally import NAME, PlanTally
from slurm_fair.policy import Policy
from tests.support.daemon_bench import Bench, bench_in, changed
from tests.support.planning import comes_true, lives
from tests.support.solving_policies import Solving, SolvingQuick

LIMIT = 4.0  # time enough to load the policy anew
SMALL = 2.5  # by which a busy machine may be later
LOOKS = 12


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with bench_in(tmp_path / "s", nodes={"n1": 8, "n2": 8}) as made:
        yield made
        made.daemon.end_planner()


def take(bench: Bench, policy: Policy) -> None:
    """The daemon goes by this policy from now on, and has it loaded."""
    daemon = bench.daemon
    bench.pass_time(10.0)
    daemon.rules = replace(daemon.rules, policy=policy, plan_limit_seconds=LIMIT)
    daemon.take_planner()
    assert daemon.planner is not None
    with_time = replace(daemon.rules, plan_limit_seconds=60.0)
    daemon.rules, short = with_time, daemon.rules
    daemon.once()
    daemon.rules = short


def ticks(bench: Bench, looks: int) -> tuple[list[float], list[str]]:
    """The wall clock of each tick and the note of its plan, ten seconds apart."""
    seconds, notes = [], []
    for _ in range(looks):
        bench.pass_time(10.0)
        began = time.monotonic()
        done = bench.daemon.once()
        seconds.append(time.monotonic() - began)
        assert done.record is not None, done.blind
        notes.append(done.record.plan.note)
        assert bench.daemon.health().state == DaemonState.ACTING
    return seconds, notes


def crowd(bench: Bench) -> None:
    """Twice as many jobs as there is room for."""
    for number in range(8):
        bench.world.submit(4, "ab"[number % 2], gate_seconds=600.0)


@pytest.mark.parametrize("does", ["waits for ever", "crashes", "bloats"])
def test_leases_go_on_and_no_tick_is_held_up(bench: Bench, does: str) -> None:
    crowd(bench)
    take(bench, Solving(does, every=3))
    seconds, notes = ticks(bench, LOOKS)
    assert max(seconds) < LIMIT + SMALL
    assert sum(map(bool, notes)) == LOOKS / 3
    asked = [act for act in bench.acts() if "requeue" in act]
    assert asked, "leases end, and jobs change places"
    ran = {job.number for job in bench.world.living() if job.restarts or job.state == "RUNNING"}
    assert len(ran) > 4
    tally = PlanTally.read(bench.places.directory / NAME)
    assert tally is not None
    assert tally.failed == LOOKS / 3
    assert tally.why


def test_where_every_plan_fails_its_quick_plan_runs_the_cluster(bench: Bench) -> None:
    crowd(bench)
    take(bench, SolvingQuick("raises", every=1))
    _, notes = ticks(bench, 9)
    assert all("the policy raised" in note for note in notes)
    assert any(note.endswith("its quick plan stands in") for note in notes), (
        "wherever there is anything to have"
    )
    assert sum(job.state == "RUNNING" for job in bench.world.living()) == 4


def test_where_every_plan_fails_and_there_is_no_other_all_leases_stay(bench: Bench) -> None:
    crowd(bench)
    bench.run(30)
    before = {job.number for job in bench.world.living() if job.state == "RUNNING"}
    assert len(before) == 4
    take(bench, Solving("raises", every=1))
    ticks(bench, 9)
    assert {job.number for job in bench.world.living() if job.state == "RUNNING"} == before


def test_the_process_goes_with_its_policy_and_with_its_daemon(bench: Bench) -> None:
    crowd(bench)
    take(bench, Solving())
    first = process_of(bench)
    take(bench, Solving(every=2))
    second = process_of(bench)
    assert comes_true(lambda: not lives(first))
    assert lives(second)
    bench.daemon.reload = lambda: changed(bench.config, policy={"name": "astraea"})  # it solves nothing
    bench.daemon.reload_config()
    assert process_of(bench) == 0
    assert bench.daemon.rules.planner is None
    assert comes_true(lambda: not lives(second))
    assert bench.daemon.once().record is not None


def process_of(bench: Bench) -> int:
    """The number of the daemon's planning process; 0 = it has none."""
    planner = bench.daemon.planner
    return planner.process.number if planner is not None and planner.process is not None else 0
