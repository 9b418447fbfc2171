"""Users and admins always win: holds, begin times, dependencies, cancellations, on a real Slurm."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.slurm.harness import Job, Site, stays, wait_until

pytestmark = pytest.mark.slurm
BOTH_GATES = pytest.mark.parametrize("gate", ["begin", "hold"])
USER = "games"
LEASE = {"term": 6, "grace": 3}
ALL_GPUS = 24


@pytest.fixture
def site(new_site: Callable[..., Site], request: pytest.FixtureRequest) -> Site:
    """A site with the daemon running, under the gate that the test asks for."""
    gate = request.node.callspec.params.get("gate", "begin") if hasattr(request.node, "callspec") else "begin"
    return new_site(gate, LEASE).start()


def full(site: Site) -> Job:
    """A job on every GPU that is never revoked, because it cannot checkpoint."""
    return site.submit(ALL_GPUS, stamped=False).runs()


# -- holds ----------------------------------------------------------------------------------------------------


@BOTH_GATES
def test_a_user_hold_stays_the_users_and_after_release_the_job_takes_part_again(
    site: Site, gate: str
) -> None:
    job = site.submit(4, "-H", gated=False, user=USER)
    stays(lambda: job.now().reason == "JobHeldUser" and job.now().priority == 0, 4)
    assert set(site.acts(job)) <= {"close done"}, "at most a gate for the time after the hold"
    job.scontrol("release", user=USER)
    job.runs()


def test_a_user_hold_of_a_gated_job_is_kept_and_released_by_its_user(site: Site) -> None:
    blocker = full(site)
    job = site.submit(4, user=USER).waits()
    job.scontrol("hold", user=USER)
    blocker.cancel()
    stays(lambda: job.now().reason == "JobHeldUser", 4)
    job.scontrol("release", user=USER)
    job.runs()


@BOTH_GATES
def test_an_admin_hold_is_final_until_the_admin_undoes_it(site: Site, gate: str) -> None:
    blocker = full(site)
    job = site.submit(4, user=USER).waits()
    job.scontrol("hold")
    blocker.cancel()
    stays(lambda: job.state == "PENDING" and job.now().reason == "JobHeldAdmin", 4)
    job.scontrol("release")
    job.runs()


# -- priorities -----------------------------------------------------------------------------------------------


def taken_and_given_back(site: Site, job: Job) -> None:
    """Let a job run, lose its GPUs to another tenant, and run again."""
    job.runs()
    rival = site.submit(ALL_GPUS, tenant="nlp")
    wait_until(lambda: job.now().restarts == 1, 20, "revoked once")
    rival.runs()
    rival.cancel()
    job.runs()


@BOTH_GATES
def test_nice_is_kept_through_gate_start_and_revocation(site: Site, gate: str) -> None:
    job = site.submit(ALL_GPUS, "--nice=77", user=USER)
    taken_and_given_back(site, job)
    assert job.now().nice == 77


def test_a_priority_fixed_by_an_admin_is_kept_through_gate_start_and_revocation(site: Site) -> None:
    blocker = full(site)
    job = site.submit(ALL_GPUS, user=USER).waits()
    job.update("priority=777")
    blocker.cancel()
    taken_and_given_back(site, job)
    assert job.now().priority == 777


# -- begin times and dependencies -----------------------------------------------------------------------------


def test_a_begin_time_of_the_users_own_is_respected_and_then_the_gate_closes(site: Site) -> None:
    blocker = full(site)
    began = time.time()
    job = site.submit(4, "--begin=now+7", gated=False, user=USER)
    early = site.submit(4, "--begin=now+3", gated=False, user=USER)
    wait_until(lambda: time.time() > began + 4 and early.is_gated(), 12, "gated after its begin time")
    blocker.cancel()
    job.runs()
    early.runs()
    assert job.starts()[0].time >= began + 6.5


@BOTH_GATES
def test_a_dependent_job_starts_only_after_what_it_waits_for(site: Site, gate: str) -> None:
    first = site.submit(2, steps=15, user=USER)
    second = site.submit(2, f"--dependency=afterok:{first.label}", steps=3, user=USER)
    first.runs()
    assert "open done" not in site.acts(second)
    second.ends()
    assert second.starts()[0].time > first.starts()[0].time + 15 * 0.2
    assert first.state == "COMPLETED"
    granted = site.events("granted", job=second)
    assert len(granted) == 1, "it went through a grant like any other job"


def test_a_job_whose_dependency_never_came_true_is_left_waiting(site: Site) -> None:
    first = site.submit(2, steps=1, code=3, user=USER)
    second = site.submit(2, f"--dependency=afterok:{first.label}", user=USER)
    first.ends("FAILED")
    stays(lambda: second.state == "PENDING" and not second.starts(), 4)
    assert "open done" not in site.acts(second)


# -- cancellations --------------------------------------------------------------------------------------------


@BOTH_GATES
def test_a_waiting_or_running_job_that_its_user_cancels_is_over(site: Site, gate: str) -> None:
    running = site.submit(ALL_GPUS, user=USER).runs()
    waiting = site.submit(ALL_GPUS, tenant="nlp", user=USER).waits()
    waiting.cancel(USER)
    running.cancel(USER)
    waiting.ends("CANCELLED")
    running.ends("CANCELLED")
    site.ticks_pass(3)
    assert (waiting.state, running.state, len(waiting.starts()), len(running.starts())) == (
        "CANCELLED", "CANCELLED", 0, 1,
    )  # fmt: skip
    site.submit(ALL_GPUS).runs()


@BOTH_GATES
def test_a_job_cancelled_while_it_is_being_revoked_never_runs_again(site: Site, gate: str) -> None:
    job = site.submit(ALL_GPUS, manner="deaf", user=USER).runs()
    rival = site.submit(ALL_GPUS, tenant="nlp")
    wait_until(lambda: "ask done" in site.acts(job), 15, "asked")
    job.cancel(USER)
    rival.runs()
    site.ticks_pass(3)
    assert (job.state, job.now().restarts, len(job.starts())) == ("CANCELLED", 0, 1)


def test_a_job_that_never_answers_is_requeued_at_the_end_of_the_grace(site: Site) -> None:
    job = site.submit(ALL_GPUS, manner="deaf", user=USER).runs()
    rival = site.submit(ALL_GPUS, tenant="nlp")
    wait_until(lambda: "ask done" in site.acts(job), 15, "asked")
    asked = time.time()
    rival.runs()
    assert 2 <= rival.starts()[0].time - asked < 3 + 4
    assert job.now().restarts == 1


# -- other wishes ---------------------------------------------------------------------------------------------


def test_a_user_who_opens_our_gate_wins_for_that_lease_and_is_gated_again(site: Site) -> None:
    full(site)
    job = site.submit(4, user=USER).waits()
    renewed = len(site.acts(job))
    job.update("starttime=now+40", user=USER)  # makes the next gate ours and fresh
    job.update("starttime=now", user=USER)
    wait_until(lambda: len(site.acts(job)) > renewed and job.is_gated(), 15, "a fresh gate")
    job.update("starttime=now", user=USER)
    stays(lambda: not job.is_gated(), 3, "the user's wish holds")
    wait_until(job.is_gated, 14, "gated again in the next lease")


def test_a_job_that_requeues_itself_is_followed_and_not_requeued_twice(site: Site) -> None:
    job = site.submit(4, user=USER).runs()
    job.scontrol("requeue", user=USER)
    wait_until(lambda: job.now().restarts == 1, 10)
    job.runs()
    site.ticks_pass(3)
    assert (job.now().restarts, len(job.starts())) == (1, 2)


def test_nodes_that_a_user_asked_for_or_excluded_are_given_and_avoided(site: Site) -> None:
    wished = site.submit(2, "--nodelist=n2", user=USER)
    avoided = site.submit(2, "--exclude=n1,n2", user=USER)
    assert wished.runs().now().nodes == ("n2",)
    assert avoided.runs().now().nodes == ("n3",)
    rival = site.submit(ALL_GPUS, tenant="nlp")
    rival.runs(25)
    wait_until(lambda: wished.is_gated() and not wished.now().reason.startswith("ReqNode"), 10)
    assert wished.now().pinned == ("n2",), "the user's own list is given back"
