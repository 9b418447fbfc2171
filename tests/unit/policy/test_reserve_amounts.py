"""Nodes set aside for jobs that lack CPUs or memory: one GPU that comes free is not enough for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slurm_fair.model import JobState, Leases, Plan, Snapshot, Verdict
from slurm_fair.model.reservation import reservations, with_reservations
from slurm_fair.policy import View
from slurm_fair.policy.check import objections
from slurm_fair.policy.registry import load
from slurm_fair.policy.reserve import set_aside, with_new
from slurm_fair.sim.world import load as world
from slurm_fair.trace import uniform
from tests.support.accounts import Account, places, verdicts, view
from tests.support.builders import JobSpec, job, lease, leases, node, snapshot
from tests.support.simulated import Rounds, arrival, simulated

NOW, TERM = 10_000.0, 900.0
ASTRAEA = load("astraea", {})


def running(base: int, cpus: int = 16, memory_mb: int = 1, gpus: int = 2) -> JobSpec:
    return job(base, gpus=gpus, on={"n1": gpus}, cpus=cpus, memory_mb=memory_mb, state=JobState.RUNNING)


FULL = tuple(running(number) for number in (1, 2, 3, 4))
# The first of four leases on one node is over, the others end later, one after the other.
ENDS = (0.0, 100.0, 200.0, 300.0)


def cluster(*jobs: JobSpec, now: float = NOW) -> Snapshot:
    return snapshot(time=now, nodes={"n1": node(8, memory_mb=64_000)}, jobs=jobs)


def held(runs: tuple[JobSpec, ...], ends: tuple[float, ...] = ENDS) -> Leases:
    return leases(
        *(lease(spec.base, spec.on or {}, end=NOW + end) for spec, end in zip(runs, ends, strict=False))
    )


def shown(jobs: Snapshot, of: Leases, earlier: Plan | None = None) -> View:
    made = view(jobs, of, tenants={"a": Account(10, 10), "b": Account(0, 10), "c": Account(1, 10)})
    terms = replace(made.terms, aligned=False, term=TERM, reserve_after=TERM)
    return set_aside(replace(made, terms=terms, memory=earlier.memory if earlier else {}), ASTRAEA)


def planned(now: View) -> Plan:
    plan = with_new(ASTRAEA.plan(now), now, ASTRAEA)
    assert objections(plan, now) == ""
    return plan


def waits(**columns: Any) -> JobSpec:
    return job(9, tenant="b", submit=NOW - 2 * TERM, **columns)


@pytest.mark.parametrize(
    ("job", "due"),
    [
        (waits(gpus=1, cpus=16), None),  # the lease that is over leaves as much
        (waits(gpus=1, cpus=8, memory_mb=2), None),
        (waits(gpus=1, cpus=32), 200.0),
        (waits(gpus=1, cpus=33), 300.0),
        (waits(gpus=2, cpus=64), TERM),  # with the lease that is over and is renewed
        (waits(gpus=4, cpus=4), 200.0),  # for want of GPUs
        (waits(gpus=1, cpus=1, memory_mb=63_998), 200.0),
    ],
)
def test_a_node_is_set_aside_until_the_leases_end_that_leave_enough_of_all(
    job: JobSpec, due: float | None
) -> None:
    now = shown(cluster(*FULL, job), held(FULL))
    found = reservations(planned(now).memory)
    assert [round(each.due - NOW) for each in found] == ([] if due is None else [round(due)])
    assert [(each.cpus, each.memory_mb) for each in found] == ([(job.cpus, job.memory_mb)] if found else [])


def test_cpus_that_come_free_there_go_to_nobody_else() -> None:
    first = planned(shown(cluster(*FULL, waits(gpus=1, cpus=48)), held(FULL)))
    left, small = FULL[1:], job(7, gpus=1, cpus=8, tenant="c", submit=NOW)
    jobs = cluster(*left, waits(gpus=1, cpus=48), small, now=NOW + 50)
    of = held(left, (100.0, 200.0, 300.0))
    now = shown(jobs, of, earlier=first)
    assert (now.bare_cpus.tolist(), now.spare_cpus.tolist()) == ([16], [0])
    assert verdicts(jobs, planned(now))["7"] == Verdict.WAIT
    without = shown(jobs, of)
    assert places(jobs, ASTRAEA.plan(without))["7"] == {"n1": 1}


def test_what_is_beyond_its_need_goes_to_others() -> None:
    first = planned(shown(cluster(*FULL, waits(gpus=1, cpus=20)), held(FULL)))
    left, small = FULL[1:], job(7, gpus=1, cpus=8, tenant="c", submit=NOW)
    jobs = cluster(*left, waits(gpus=1, cpus=20), small, now=NOW + 50)
    now = shown(jobs, held(left, (60.0, 200.0, 300.0)), earlier=first)
    assert now.spare_cpus.tolist() == [12]  # 16 are free, and 16 of the 20 come back in time


def test_a_plan_of_an_older_version_set_gpus_alone_aside() -> None:
    memory = {"reserved": [[9 << 20, NOW, NOW + 5, ["n1"], 8, 0]]}
    (found,) = reservations(memory)
    assert (found.gpus, found.gpu_type, found.cpus, found.memory_mb) == (8, 0, 0, 0)
    assert reservations(with_reservations({}, [found])) == (found,)


def with_cpus(cpus_of: Callable[[int], int], fill: Callable[..., None]) -> Callable[..., None]:
    """A trace says nothing of CPUs: here a job's number of GPUs says how many it wants."""

    def filled(jobs: Any, *more: Any) -> None:
        fill(jobs, *more)
        jobs.cpus[:] = [cpus_of(gpus) for gpus in jobs.gpus.tolist()]

    return filled


@pytest.mark.parametrize("policy", ["fair", "astraea", "las", "srtf"])
@pytest.mark.parametrize(
    ("flood", "wide", "cpus"), [(2, 1, 32), (1, 2, 32), (1, 2, 56)], ids=["1 of 2", "2 of 1", "nearly all"]
)
@pytest.mark.parametrize("renewal", [None, 150.0], ids=["a term", "a quarter"])
def test_a_job_with_many_cpus_starts_within_the_bound_against_a_flood(
    policy: str, flood: int, wide: int, cpus: int, renewal: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = {flood: 8 * flood, wide: cpus}
    monkeypatch.setattr(world, "_fill", with_cpus(table.__getitem__, world._fill))
    jobs = [arrival(20.0 * number, gpus=flood, seconds=20_000.0 + number, tenant="a") for number in range(60)]
    jobs.append(arrival(3_000.0, gpus=wide, seconds=1_000.0, tenant="b", weight=4.0))
    machines = replace(uniform(16, 8), cpus=np.full(2, 64))
    how = Rounds(aligned=False, reserve_after=600.0, renewal=renewal)
    done = simulated(jobs, policy, machines=machines, how=how, until=12_000.0).outcomes
    waited = (done.start - done.submit)[done.gpus == wide].item()
    # Until the next end of a lease, at which nodes are set aside, one term, a grace, and two looks.
    assert waited <= 600.0 + 20.0 + 600.0 + 60.0 + 2 * 10.0
