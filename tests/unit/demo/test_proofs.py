"""The proof: each way in which the demo could have gone wrong is noticed, by its own line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_fair.demo.measure import Measures, TenantMeasures
from slurm_fair.demo.proofs import Check, most_astray, prove, prove_plain, ticks
from slurm_fair.demo.scenario import DemoJob, DemoScenario, Scheduler
from slurm_fair.demo.stage import ActFacts
from slurm_fair_templates.demo_counter import chain
from tests.support.builders import runs

JOBS = (DemoJob("a-01", "a", 1, 2, 0.0, 4), DemoJob("b-01", "b", 1, 2, 0.0, 3))
SCENARIO = DemoScenario(1, 4, 5.0, 2.0, JOBS, {"a": 1, "b": 1}, least_rho=0.6)


def tenant(name: str, share: float, rho: float) -> TenantMeasures:
    """One row; the waits do not matter here."""
    return TenantMeasures(name, 1.0, share, rho, rho, 1.0, 2.0, 9.0)


GOOD = Measures((tenant("a", 0.5, 0.9), tenant("b", 0.5, 0.8)), 30, 1.0, 1.0, 2.0, 9.0, 40, 50, 0.9, 1)


def wrote(
    folder: Path,
    job: DemoJob,
    steps: Sequence[tuple[int, int]],
    starts: Sequence[int],
    restarts: int = 0,
    digest: str = "",
) -> None:
    """The files that a counter leaves behind."""
    own = folder / job.name
    own.mkdir()
    (own / "steps.log").write_text("".join(f"{restart} {step}\n" for restart, step in steps))
    (own / "starts.log").write_text("".join(f"{restart} n1 1000.0 0\n" for restart in starts))
    result = {"steps": job.steps, "hash": digest or chain(job.steps), "restarts": restarts}
    (own / "result.json").write_text(json.dumps(result))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two jobs, one of which was pre-empted once and lost nothing."""
    wrote(tmp_path, JOBS[0], [(0, 1), (0, 2), (1, 3), (1, 4)], [0, 1], restarts=1)
    wrote(tmp_path, JOBS[1], [(0, 1), (0, 2), (0, 3)], [0])
    return tmp_path


def again(folder: Path, job: DemoJob) -> Path:
    """Make room for another story of a job."""
    for file in (folder / job.name).iterdir():
        file.unlink()
    (folder / job.name).rmdir()
    return folder


def facts(folder: Path) -> ActFacts:
    """An act without any fault."""
    return ActFacts(runs(), {"a-01": 1, "b-01": 2}, folder, requeued=1)


def broken(checks: Sequence[Check]) -> list[str]:
    """The first words of the checks that do not hold."""
    return [" ".join(check.title.split()[:3]) for check in checks if not check.holds]


def test_a_clean_act_holds_in_every_point(folder: Path) -> None:
    assert broken(prove(SCENARIO, facts(folder), GOOD)) == []
    assert broken(prove_plain(SCENARIO, Scheduler.FIFO, facts(folder))) == []


def test_a_job_without_a_result_is_named(folder: Path) -> None:
    (folder / "b-01" / "result.json").unlink()
    checks = prove(SCENARIO, facts(folder), GOOD)
    assert broken(checks) == ["every job ended"]
    assert "b-01" in checks[0].found


def test_a_wrong_hash_is_noticed(folder: Path) -> None:
    wrote(again(folder, JOBS[1]), JOBS[1], [(0, 1), (0, 2), (0, 3)], [0], digest=chain(4))
    assert broken(prove(SCENARIO, facts(folder), GOOD)) == ["every job ended"]


def test_a_step_run_twice_is_lost_work_unless_the_job_let_the_grace_pass(folder: Path) -> None:
    steps = [(0, 1), (0, 2), (1, 2), (1, 3), (1, 4)]
    wrote(again(folder, JOBS[0]), JOBS[0], steps, [0, 1], restarts=1)
    assert broken(prove(SCENARIO, facts(folder), GOOD)) == ["no pre-emption that"]
    excused = replace(facts(folder), unanswered=frozenset({1}))
    assert broken(prove(SCENARIO, excused, GOOD)) == []
    other = replace(facts(folder), unanswered=frozenset({2}))
    assert broken(prove(SCENARIO, other, GOOD)) == ["no pre-emption that"]


def test_two_starts_under_one_restart_count_are_noticed(folder: Path) -> None:
    wrote(again(folder, JOBS[1]), JOBS[1], [(0, 1), (0, 2), (0, 3)], [0, 0])
    assert broken(prove(SCENARIO, facts(folder), GOOD)) == ["no job ran"]


@pytest.mark.parametrize(
    ("change", "noticed"),
    [
        ({"left": ("job a-01 is still there",)}, "nothing of ours"),
        ({"daemon_code": 1}, "the daemon ran"),
        ({"complaints": ("... ERROR this tick failed",)}, "the daemon ran"),
        ({"requeued": 2}, "jobs, accounting and"),
    ],
    ids=["a job left behind", "the daemon failed", "the daemon complained", "a pre-emption nobody else saw"],
)
def test_what_the_daemon_leaves_is_noticed(folder: Path, change: dict[str, object], noticed: str) -> None:
    assert broken(prove(SCENARIO, replace(facts(folder), **change), GOOD)) == [noticed]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("measures", "noticed"),
    [
        (replace(GOOD, preemptions=2), ["jobs, accounting and"]),
        (replace(GOOD, hungry_seconds=0), ["each tenant's part", "no tenant's rho"]),
        (replace(GOOD, tenants=(tenant("a", 0.7, 1.2), tenant("b", 0.3, 0.7))), ["each tenant's part"]),
        (replace(GOOD, tenants=(tenant("a", 0.5, 0.55), tenant("b", 0.5, 0.55))), ["no tenant's rho"]),
    ],
    ids=["sacct counts more", "never hungry", "parted unfairly", "too much lost to hand-overs"],
)
def test_what_accounting_says_is_noticed(folder: Path, measures: Measures, noticed: list[str]) -> None:
    assert broken(prove(SCENARIO, facts(folder), measures)) == noticed


@pytest.mark.parametrize(
    ("window_seconds", "of_all", "why"),
    [
        (25.0, 0.2, "one lease of 2 GPUs and 50% of the next"),  # 5 s of 2 + 2 GPUs, of 25 s of 4
        (250.0, 0.02, "one lease of 2 GPUs and 50% of the next"),
        (12.5, 0.4, "one lease of 2 GPUs and 50% of the next"),
        (12.0, 0.4, "80% of the smallest due"),
        (0.0, 0.4, "80% of the smallest due"),
    ],
)
def test_as_much_may_go_astray_as_two_leases_of_the_biggest_gangs_tenant_but_nobody_starves(
    window_seconds: float, of_all: float, why: str
) -> None:
    most, found = most_astray(SCENARIO, window_seconds)
    assert most == pytest.approx(of_all)
    assert found == why


def test_the_biggest_gang_may_wait_as_long_as_its_own_tenant_is_owed_one_lease() -> None:
    """The greatest due counts, of the tenants with gangs as big; the others' weights do not."""
    uneven = replace(SCENARIO, weights={"a": 1, "b": 3})
    assert most_astray(uneven, 250.0)[0] == pytest.approx(5.0 * (2 / 4 + 3 / 4) / 250.0)
    only = replace(uneven, jobs=(*JOBS, DemoJob("a-02", "a", 1, 4, 0.0, 3)))
    assert most_astray(only, 250.0)[0] == pytest.approx(5.0 * (4 / 4 + 1 / 4) / 250.0)


@pytest.mark.parametrize(
    ("first", "holds"), [(0.5, True), (0.66, True), (0.67, False), (0.33, False), (1.0, False), (0.0, False)]
)
def test_what_went_astray_is_held_against_that_bound(folder: Path, first: float, holds: bool) -> None:
    parted = replace(GOOD, tenants=(tenant("a", first, 1.0), tenant("b", 1 - first, 1.0)))
    (check,) = (check for check in prove(SCENARIO, facts(folder), parted) if "part of the GPU" in check.title)
    assert check.holds is holds
    assert check.found.endswith("of at most 16.7% (one lease of 2 GPUs and 50% of the next)")


def test_ticks_are_summed_up_in_words() -> None:
    assert ticks([]) == "no ticks"
    assert ticks([0.1, 0.2, 0.9]).startswith("3 ticks, median 0.20 s")
