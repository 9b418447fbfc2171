"""A plan that came late: what of it still fits."""

from __future__ import annotations

from slurm_fair.model import JobState, Verdict
from slurm_fair.policy import View
from slurm_fair.policy.check import objections
from slurm_fair.policy.late import carried_over
from tests.support.accounts import places, verdicts, view
from tests.support.builders import JobSpec, job, lease, leases, snapshot
from tests.support.solving_policies import plain

GRANT, RENEW, KEEP, WAIT, REVOKE, LEAVE = (
    Verdict.GRANT,
    Verdict.RENEW,
    Verdict.KEEP,
    Verdict.WAIT,
    Verdict.REVOKE,
    Verdict.LEAVE,
)


def runs(base: int, node: str, submit: float = 50.0) -> JobSpec:
    return job(base, gpus=8, on={node: 8}, state=JobState.RUNNING, submit=submit)


def cluster(*jobs: JobSpec, nodes: int = 2, over: tuple[int, ...] = ()) -> View:
    """Running jobs hold leases, which are over for some."""
    seen = snapshot(time=1000.0, nodes={f"n{n}": 8 for n in range(1, nodes + 1)}, jobs=jobs)
    held = [
        lease(j.base, j.on, end=999.0 if j.base in over else 2000.0)
        for j in jobs
        if j.state == JobState.RUNNING and j.on
    ]
    return view(seen, leases(*held))


def late(then: View, now: View) -> dict[str, Verdict]:
    plan = carried_over(plain(then), then, now, "late")
    assert objections(plan, now) == ""
    return verdicts(now.snapshot, plan)


def test_a_job_that_ended_or_began_meanwhile_is_granted_nothing() -> None:
    then = cluster(job(2, gpus=4), job(3, gpus=4), job(4, gpus=4), nodes=3)
    now = cluster(runs(3, "n3"), job(4, gpus=4), nodes=3)
    assert late(then, now) == {"3": KEEP, "4": GRANT}


def test_gpus_that_somebody_has_taken_meanwhile_are_not_given_twice() -> None:
    then = cluster(job(2, gpus=8), job(3, gpus=8))
    assert late(then, cluster(job(2, gpus=8), job(3, gpus=8), runs(9, "n2"))) == {
        "2": GRANT,
        "3": WAIT,
        "9": KEEP,
    }


def test_a_node_that_is_gone_takes_its_gangs_with_it_and_the_others_keep_their_nodes_by_name() -> None:
    then = cluster(job(2, gpus=8), job(3, gpus=8), job(4, gpus=16), nodes=4)
    assert places(then.snapshot, plain(then))["4"] == {"n3": 8, "n4": 8}
    seen = snapshot(
        time=1000.0, nodes={"n2": 8, "n3": 8}, jobs=[job(2, gpus=8), job(3, gpus=8), job(4, gpus=16)]
    )
    now = view(seen)
    plan = carried_over(plain(then), then, now, "late")
    assert verdicts(seen, plan) == {"2": WAIT, "3": GRANT, "4": WAIT}
    assert places(seen, plan) == {"3": {"n2": 8}}


def test_nobody_is_stopped_for_a_job_that_has_gone() -> None:
    then = cluster(runs(1, "n1"), job(2, gpus=8, submit=1.0), nodes=1, over=(1,))
    assert verdicts(then.snapshot, plain(then)) == {"1": REVOKE, "2": GRANT}
    assert late(then, then) == {"1": REVOKE, "2": GRANT}
    assert late(then, cluster(runs(1, "n1"), nodes=1, over=(1,))) == {"1": KEEP}


def test_a_lease_that_came_to_its_end_meanwhile_stays_for_the_next_plan() -> None:
    then = cluster(runs(1, "n1"), job(2, gpus=8, submit=1.0))
    assert late(then, cluster(runs(1, "n1"), job(2, gpus=8, submit=1.0), over=(1,))) == {
        "1": KEEP,
        "2": GRANT,
    }


def test_a_lease_that_the_plan_renews_is_renewed() -> None:
    then = cluster(runs(1, "n1"), nodes=1, over=(1,))
    assert late(then, then) == {"1": RENEW}


def test_a_queue_that_is_empty_now_or_was_empty_then_is_no_trouble() -> None:
    empty, full = cluster(), cluster(job(2))
    assert late(full, empty) == {}
    assert late(empty, full) == {"2": WAIT}
    assert late(empty, empty) == {}
