"""Expected starts: they know what can be revoked and what cannot, and what they do not know they do not say."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from slurm_fair.board.estimates import Estimates
from slurm_fair.forecast import Forecast, ForecastBounds, forecast
from slurm_fair.model import Blocked, Event, JobState, Snapshot, Standing, TickRecord
from slurm_fair.model.ids import parse_label
from slurm_fair.policy import Policy
from slurm_fair.sim import Submission
from slurm_fair.tick import Rules, decide, prepare, reconcile
from slurm_fair.trace import uniform
from tests.support.builders import JobSpec, job, snapshot
from tests.support.deadline_views import with_deadlines
from tests.support.fake_slurm import PushedClock
from tests.support.outlook_play import RULES, TERMS, Play, busy, played, whole_turns
from tests.support.solving_policies import Solving, SolvingQuick
from tests.support.virtual_scene import Scene

T0 = 600_000.0
NODES = {f"n{number}": 8 for number in range(1, 5)}
RUNS = JobState.RUNNING
_CLOCK = PushedClock(T0)


def ticked(*jobs: JobSpec, rules: Rules = RULES) -> tuple[TickRecord, Standing]:
    """The first tick of these jobs on four nodes of eight GPUs."""
    return _of(snapshot(time=T0, nodes=NODES, jobs=jobs), rules)


def _of(seen: Snapshot, rules: Rules) -> tuple[TickRecord, Standing]:
    ready = prepare(Standing.new(T0 - 100), seen, rules)
    plan = decide(ready.view, rules, _CLOCK)
    leases, _, _ = reconcile(ready, plan, rules)
    record = TickRecord(
        1, T0, rules.policy_name, {}, rules.terms, 0, ready.snapshot, plan, (), (), {}, dry_run=False
    )
    return record, ready.standing._replace(leases=leases, memory=plan.memory)


def expected(found: Forecast, label: str) -> float:
    """Seconds from now until a job is expected to start."""
    return found.starts[parse_label(label)] - T0


def plain(base: int, node: str, limit: float) -> JobSpec:
    """A job on a whole node that cannot save."""
    return job(
        base, gpus=8, tenant="nlp", state=RUNS, start=T0 - 60, on={node: 8}, checkpoints=False,
        time_limit_seconds=limit,
    )  # fmt: skip


def leased(base: int, node: str) -> JobSpec:
    """A job on a whole node that saves when it is asked."""
    return job(base, gpus=8, tenant="nlp", state=RUNS, start=T0 - 60, on={node: 8})


def test_plain_jobs_are_waited_for_until_their_limit_and_not_until_the_next_lease_ends() -> None:
    record, standing = ticked(
        *(plain(number, f"n{number}", 1800.0) for number in range(1, 5)), job(5, gpus=8, tenant="speech")
    )
    assert expected(forecast(record, standing, RULES), "5") == pytest.approx(1740, abs=TERMS.interval)
    assert parse_label("5") not in whole_turns(record, standing), "it is not in the order until then"


def test_jobs_that_save_make_room_when_their_leases_end() -> None:
    record, standing = ticked(
        *(leased(number, f"n{number}") for number in range(1, 5)), job(5, gpus=8, tenant="speech")
    )
    assert expected(forecast(record, standing, RULES), "5") == pytest.approx(600, abs=2 * TERMS.interval)


@pytest.mark.parametrize(
    ("policy", "starts"),
    [(Solving("raises"), 0), (SolvingQuick("raises"), 1), (SolvingQuick("raises", quick="raises"), 0)],
)
def test_a_policy_that_solves_is_played_by_its_quick_plans_alone(policy: Policy, starts: int) -> None:
    record, standing = ticked(
        *(leased(number, f"n{number}") for number in range(1, 5)), job(5, gpus=8, tenant="speech")
    )
    assert len(forecast(record, standing, replace(RULES, policy=policy)).starts) == starts


def test_a_gang_of_everything_waits_for_the_last_plain_job() -> None:
    record, standing = ticked(
        plain(1, "n1", 3600.0),
        leased(2, "n2"),
        job(5, gpus=8, tenant="speech", submit=T0 - 50),
        job(6, gpus=32, nodes=4, tenant="vision", submit=T0 - 40),
    )
    found = forecast(record, standing, RULES)
    assert expected(found, "6") >= 3540


def test_of_what_never_ends_it_is_said_until_when_nothing_starts() -> None:
    record, standing = ticked(
        *(plain(number, f"n{number}", math.inf) for number in range(1, 5)), job(5, gpus=8, tenant="speech")
    )
    found = forecast(record, standing, RULES, ForecastBounds(looks=20))
    assert found.starts == {}
    assert found.not_before[parse_label("5")] - T0 == pytest.approx(20 * 600, abs=1200)


@pytest.mark.parametrize("blocked", [Blocked.USER_HOLD, Blocked.DEPENDENCY, Blocked.LIMIT, Blocked.PARTITION])
def test_of_what_is_held_back_by_somebody_nothing_is_said(blocked: Blocked) -> None:
    record, standing = ticked(leased(1, "n1"), job(5, gpus=8, tenant="speech", blocked=blocked))
    found = forecast(record, standing, RULES)
    assert (dict(found.starts), dict(found.not_before)) == ({}, {})


def test_tasks_over_their_arrays_limit_follow_each_other() -> None:
    tasks = [job(7, task=task, gpus=1, tenant="speech", array_limit=1) for task in (2, 3)]
    running = job(
        7, task=1, gpus=1, tenant="speech", array_limit=1, state=RUNS, start=T0 - 60, on={"n1": 1},
        time_limit_seconds=1000.0,
    )  # fmt: skip
    limited = [
        JobSpec(
            **{name: getattr(task, name) for name in JobSpec.__slots__}
            | {"blocked": Blocked.ARRAY_LIMIT, "time_limit_seconds": 1000.0}
        )
        for task in tasks
    ]
    record, standing = ticked(running, *limited)
    found = forecast(record, standing, RULES)
    assert 940 <= expected(found, "7_2") <= 1000
    assert expected(found, "7_3") >= 1900


def test_a_job_whose_own_begin_time_lies_ahead_starts_then() -> None:
    waits = job(5, gpus=8, tenant="speech", blocked=Blocked.OWN_BEGIN, gate_until=T0 + 1500)
    record, standing = ticked(leased(1, "n1"), waits)
    assert expected(forecast(record, standing, RULES), "5") == pytest.approx(1500, abs=TERMS.interval)


def test_a_job_that_is_too_late_for_its_deadline_takes_nobodys_place() -> None:
    late, waits = job(5, gpus=32, time_limit_seconds=3600.0), job(6, gpus=32, submit=T0)
    seen = snapshot(time=T0, nodes=NODES, jobs=[late, waits])
    ahead = [forecast(*_of(with_deadlines(seen, j5=(s, 60.0)), RULES), RULES).starts for s in (1800.0, 1e6)]
    assert [set(starts) == {parse_label("6")} for starts in ahead] == [True, False]


def test_a_gate_of_ours_in_the_place_of_a_begin_time_does_not_say_when_its_job_starts() -> None:
    waits = job(5, gpus=8, tenant="speech", blocked=Blocked.OWN_BEGIN, gated=True, gate_until=T0 + 1500)
    record, standing = ticked(waits)
    assert expected(forecast(record, standing, RULES), "5") <= 2 * TERMS.interval


def test_only_the_first_by_rank_are_played_and_the_others_are_not_told_a_start() -> None:
    waits = [job(base, gpus=8, tenant="speech") for base in range(10, 40)]
    record, standing = ticked(*(leased(number, f"n{number}") for number in range(1, 5)), *waits)
    found = forecast(record, standing, RULES, ForecastBounds(jobs=5, looks=30))
    assert len(found.starts) == 5
    assert len(found.not_before) == 25


def test_it_takes_no_longer_than_it_may() -> None:
    seconds = iter(np.arange(0.0, 1000.0, 0.3).tolist())
    record, standing = ticked(
        *(plain(number, f"n{number}", math.inf) for number in range(1, 5)), job(5, gpus=8, tenant="speech")
    )
    found = forecast(record, standing, RULES, ForecastBounds(seconds=1.0), clock=lambda: next(seconds))
    assert found.looks <= 4


def test_a_policy_that_fails_is_no_forecast_and_no_error() -> None:
    class Broken:
        def plan(self, view: object) -> None:
            raise RuntimeError("broken")

    record, standing = ticked(leased(1, "n1"), *(job(base, gpus=32, nodes=4, tenant="b") for base in (5, 6)))
    found = forecast(record, standing, replace(RULES, policy=Broken()))  # type: ignore[arg-type]
    assert parse_label("6") not in found.starts


@pytest.mark.parametrize("blocked", [Blocked.KEPT, Blocked.REQUEUED, Blocked.BACKOFF])
def test_what_passes_by_itself_blocks_no_estimate(blocked: Blocked) -> None:
    holders = [plain(number, f"n{number}", 1800.0) for number in range(1, 5)]
    record, standing = ticked(*holders, job(5, gpus=8, tenant="speech"))
    jobs = record.snapshot.jobs
    kept = jobs.with_columns(blocked=np.where(jobs.key == parse_label("5"), np.int8(blocked), jobs.blocked))
    record = record._replace(snapshot=replace(record.snapshot, jobs=kept))
    assert expected(forecast(record, standing, RULES), "5") == pytest.approx(1740, abs=2 * TERMS.interval)


def test_nothing_of_the_tick_is_changed_by_playing_on() -> None:
    record, standing = ticked(*(leased(number, f"n{number}") for number in range(1, 5)), job(5, gpus=8))
    state, ends = record.snapshot.jobs.state.copy(), standing.leases.end.copy()
    had = standing.ledger.tenants.had.copy()
    forecast(record, standing, RULES)
    assert np.array_equal(record.snapshot.jobs.state, state)
    assert np.array_equal(standing.leases.end, ends)
    assert np.array_equal(standing.ledger.tenants.had, had)


def test_estimates_are_far_better_than_whole_turns_of_the_cluster() -> None:
    """Over four days together: of the 25 jobs of one day the worst tenth are two or three, and tell little."""
    old, new = list[float](), list[float]()
    for seed in range(4):
        play = Play(Scene(machines=uniform(32, 8)), busy(seed), {"old": whole_turns, "new": played})
        done = play.run(6 * 3600)
        old, new = old + done.errors("old"), new + done.errors("new")
    assert len(new) > 60
    assert np.median(new) < 0.7 * np.median(old)
    assert np.mean(new) < 0.7 * np.mean(old)
    assert np.quantile(new, 0.9) < 0.8 * np.quantile(old, 0.9)


def test_where_nobody_comes_later_most_estimates_are_right_to_two_looks() -> None:
    errors: list[float] = []
    for seed in range(3):
        jobs: list[tuple[float, Submission]] = [(0.0, each) for _, each in busy(seed)]
        errors += Play(Scene(machines=uniform(32, 8)), jobs, {"new": played}).run(6 * 3600).errors("new")
    assert np.median(errors) <= 2 * TERMS.interval


# -- how far off they were ------------------------------------------------------------------------------------


def started(key: int, time: float) -> Event:
    return Event(time, "started", key, "a", 1)


def test_the_first_estimate_of_each_start_is_held_to_it() -> None:
    kept = Estimates()
    kept.note({1: 100.0, 2: 200.0, 3: 300.0})
    kept.note({1: 150.0})
    kept.hear([started(1, 160.0), started(2, 190.0), started(9, 5.0), Event(1.0, "finished", 3, "a", 1)])
    kept.hear([started(3, 999.0)])
    assert kept.summary(1000.0) == {
        "n": 2,
        "median_seconds": 35.0,
        "p90_seconds": pytest.approx(55.0),
        "late_seconds": 25.0,
    }
    assert kept.summary(100.0 + 2 * 86_400) == {}


def test_past_estimates_outlive_a_restart(tmp_path: Path) -> None:
    kept = Estimates()
    kept.note({1: 100.0, 2: 200.0})
    kept.hear([started(1, 160.0)])
    (tmp_path / "e.json").write_text(kept.text())
    again = Estimates.read(tmp_path / "e.json")
    again.hear([started(2, 230.0)])
    assert again.summary(300.0)["n"] == 2


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"v": 1}', '{"v": 1, "open": [[1, 1e999]], "errors": []}', "[" * 50_000, '{"v": 2}'],
)
def test_estimates_that_cannot_be_read_are_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "e.json").write_text(text)
    assert Estimates.read(tmp_path / "e.json").summary(0.0) == {}
    assert Estimates.read(tmp_path / "absent").summary(0.0) == {}
