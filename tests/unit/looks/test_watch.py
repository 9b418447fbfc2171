"""Between two looks: a look follows each change, seldom enough for slurmctld, and one is never long in coming."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from slurm_fair.looks.pace import Allowance, Ending, next_look
from slurm_fair.model import JobState, LeaseTerms
from slurm_fair.slurm.command import CommandResult
from tests.support.daemon_bench import Bench, bench_in, crowd, lines
from tests.support.fake_slurm import Work

AUTO = {"interval": "auto", "term": 600.0}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A daemon whose looks follow changes."""
    with bench_in(tmp_path / "s", lease=AUTO) as made:
        yield made


def live(bench: Bench, seconds: float, happens: Callable[[float], None] = lambda now: None) -> list[float]:
    """The instants of its looks in so much time; `happens` is called whenever time has passed."""
    looks, until, daemon = [], bench.now + seconds, bench.daemon
    sleep = bench.world.clock.sleep_until

    def pass_time(instant: float) -> None:
        sleep(min(instant, until))
        happens(bench.now)
        bench.world.catch_up()

    daemon.watch.clock = Slept(bench.world.clock.now, pass_time)
    while bench.now < until:
        looks.append(bench.now)
        daemon.once()
        due = min(daemon.next_look(looks[-1]), until)
        daemon.watch.wait_until(due, looks[-1], daemon.rules.terms, lambda: False)
    return looks


class Slept:
    """A clock on which something happens while the daemon sleeps."""

    def __init__(self, now: Callable[[], float], sleep_until: Callable[[float], None]) -> None:
        self.now, self.sleep_until = now, sleep_until


def questions(bench: Bench) -> list[int]:
    """Counts the questions for change from now on, in a list of one."""
    asked, run = [0], bench.commands.run

    def counted(*argv: str, stdin: str | None = None, timeout_seconds: float | None = None) -> CommandResult:
        asked[0] += argv == ("sdiag",)
        return run(*argv, stdin=stdin, timeout_seconds=timeout_seconds)

    bench.commands.run = counted  # type: ignore[method-assign]
    return asked


def gaps(looks: list[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.diff(np.array(looks))


def test_where_nothing_happens_it_asks_every_second_and_looks_every_ten(bench: Bench) -> None:
    asked = questions(bench)
    looks = live(bench, 100)
    assert gaps(looks) == pytest.approx(10.0)
    assert asked[0] == pytest.approx(100, abs=11)


def test_a_submission_has_its_look_within_a_second(bench: Bench) -> None:
    live(bench, 30)
    submitted: list[int] = []

    def submit(now: float) -> None:
        if not submitted:
            submitted.append(bench.world.submit(8, "a"))

    began = bench.now
    looks = live(bench, 8, submit)
    assert looks[1] - began <= 2.0
    bench.daemon.once()
    assert bench.world.record(submitted[0]).state == "RUNNING"


def test_gpus_that_come_free_go_to_the_next_job_within_two_seconds(bench: Bench) -> None:
    bench.world.submit(8, "a", work=Work(25.5))
    waiting = bench.world.submit(8, "b", gate_seconds=1200)
    live(bench, 60)
    starts = {start.key: start.time for start in bench.world.starts}
    first, second = sorted(starts.values())
    assert bench.world.record(waiting).state == "RUNNING"
    assert second - (first + 25.5) <= 3.5, "a second until the question, one of Slurm's, and the end itself"


def test_whoever_rings_all_the_time_has_a_look_a_second_and_no_more(bench: Bench) -> None:
    looks = live(bench, 30, lambda now: setattr(bench.daemon.watch.bell, "rung", True))
    assert gaps(looks).min() >= 1.0
    assert len(looks) == pytest.approx(30, abs=2)


def test_changes_without_end_have_a_look_a_second_and_no_more(bench: Bench) -> None:
    bench.world.submit(8, "a")
    live(bench, 10)
    looks = live(bench, 30, lambda now: bench.commands.said.append("somebody's update"))
    assert gaps(looks).min() >= 1.0
    assert len(looks) == pytest.approx(30, abs=2)


@pytest.mark.parametrize("cost", [0.02, 0.1])
def test_looks_take_a_twentieth_of_a_core_of_slurmctld(bench: Bench, cost: float) -> None:
    bench.commands.look_seconds, run, took = cost, bench.commands.run, [0.0]

    def slow(*argv: str, stdin: str | None = None, timeout_seconds: float | None = None) -> CommandResult:
        if argv != ("sdiag",):
            took[0] += cost
            bench.world.clock.advance(2 * cost)  # half of which is the client's own
        return run(*argv, stdin=stdin, timeout_seconds=timeout_seconds)

    bench.commands.run = slow  # type: ignore[method-assign]
    bench.world.submit(8, "a")
    looks = live(bench, 600, lambda now: bench.commands.said.append("somebody's update"))
    at_rest = 0.05 * 600 + 3.0  # what was saved up before
    assert took[0] <= max(at_rest, 600 / 10 * 4 * cost) + 4 * cost
    assert took[0] >= 0.8 * 0.05 * 600, "it is used where something happens"
    assert gaps(looks).max() <= 10.0 + 10 * cost


def test_a_slurm_that_does_not_say_whether_something_has_changed_is_looked_at_every_ten_seconds(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    run = bench.commands.run

    def mute(*argv: str, stdin: str | None = None, timeout_seconds: float | None = None) -> CommandResult:
        if argv == ("sdiag",):
            return CommandResult(argv, 1, "", "sdiag: error: not for you", 0.01)
        return run(*argv, stdin=stdin, timeout_seconds=timeout_seconds)

    bench.commands.run = mute  # type: ignore[method-assign]
    assert gaps(live(bench, 60)) == pytest.approx(10.0)
    assert lines(caplog, "follow changes") == [
        "looks cannot follow changes: sdiag: sdiag: error: not for you"
    ]


def test_a_fixed_interval_asks_nothing_and_listens_to_nobody(tmp_path: Path) -> None:
    with bench_in(tmp_path / "s") as bench:
        asked = questions(bench)
        looks = live(bench, 50, lambda now: bench.commands.said.append("somebody's update"))
        assert gaps(looks) == pytest.approx(10.0)
        assert asked == [0]


def test_an_end_of_a_lease_has_its_look_at_its_instant(bench: Bench) -> None:
    crowd(bench)
    end = float(bench.daemon.standing.leases.end.min())
    looks = live(bench, end - bench.now + 2)
    assert min(abs(look - end) for look in looks) < 1e-6


def test_leases_that_end_one_shortly_after_the_other_share_a_look(bench: Bench) -> None:
    crowd(bench)
    standing, now = bench.daemon.standing, bench.now
    soon = standing.leases.with_columns(end=np.full(len(standing.leases.key), now + 0.2))
    ends = standing._replace(leases=soon)
    assert next_look(ends, bench.daemon.rules.terms, now, now) == pytest.approx(now + 1.0)


def test_gpus_are_granted_until_a_second_before_leases_end_together() -> None:
    terms = LeaseTerms(term=600.0, interval=10.0, interval_min=1.0)
    assert [terms.grants_at(600 - left) for left in (9.0, 1.5, 1.0, 0.5)] == [True, True, False, False]
    assert terms.end_for(598.5) == 600.0
    assert terms.end_for(599.5) == 1200.0


def test_the_allowance_is_saved_up_for_a_minute_and_no_longer() -> None:
    full = Allowance().after(0.0, 0.0)
    assert full.seconds == pytest.approx(3.0)
    assert full.after(0.0, 1e6).seconds == pytest.approx(3.0)
    spent = full.after(4.0, 0.0)
    assert spent.wait_seconds() == pytest.approx(20.0)
    assert spent.after(0.0, 20.0).wait_seconds() == 0.0
    assert spent.after(0.0, -1e6).wait_seconds() == pytest.approx(20.0), "the clock was set back"


def test_a_job_that_goes_on_ending_is_looked_at_more_and_more_seldom(bench: Bench) -> None:
    bench.world.submit(8, "a", work=Work(1000.0))
    bench.world.submit(8, "b", gate_seconds=1200)
    live(bench, 5)
    record = bench.daemon.once().record
    assert record is not None
    jobs = record.snapshot.jobs
    running = jobs.state == JobState.RUNNING
    assert running.any()
    state = np.where(running, np.int8(JobState.ENDING), jobs.state).astype(np.int8)
    ends = record._replace(snapshot=replace(record.snapshot, jobs=jobs.with_columns(state=state)))
    ending, seconds = Ending(), []
    for _ in range(4):
        ending = ending.after(ends)
        seconds.append(ending.seconds)
    assert seconds == [0.25, 0.5, 1.0, 2.0]
    assert ending.after(record) == Ending()


@pytest.mark.parametrize("back", [20.0, 7200.0])
def test_a_clock_that_is_set_back_while_it_waits_makes_it_look_at_once(bench: Bench, back: float) -> None:
    bench.daemon.once()
    waking: list[float] = []

    def sleep(instant: float) -> None:
        bench.world.clock.sleep_until(instant)
        waking.append(bench.now)
        if len(waking) == 3:
            bench.world.clock.advance(-back)

    began, daemon = bench.now, bench.daemon
    daemon.watch.clock = Slept(bench.world.clock.now, sleep)
    daemon.watch.wait_until(began + 10, began, daemon.rules.terms, lambda: False)
    assert len(waking) == 3
    assert bench.now == pytest.approx(began + 3 - back, abs=0.5)
