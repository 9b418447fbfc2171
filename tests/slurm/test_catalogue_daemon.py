"""The controller's own troubles: killed, frozen, doubled, paused, misconfigured, and gone for good."""

from __future__ import annotations

import pwd
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.slurm.crowds import ALL_GPUS, USER, crowd, is_plain
from tests.slurm.harness import REPOSITORY, Job, Site, stays, wait_until
from tests.support.proofs import proved

pytestmark = pytest.mark.slurm
BOTH_GATES = pytest.mark.parametrize("gate", ["begin", "hold"])
LEASE = {"term": 6, "grace": 3}


# -- killed and started again ---------------------------------------------------------------------------------


def killed_again_and_again(site: Site, kills: int, seconds: float) -> None:
    """Jobs of two tenants count while the daemon is killed at random moments; nothing is lost or run twice."""
    steps = int(seconds / 2 / 0.1)
    jobs = [
        site.submit(12, tenant=tenant, steps=steps, pause=0.1, user=USER)
        for tenant in ("vision", "nlp")
        for _ in range(2)
    ]
    dice = random.Random(kills)
    for _ in range(kills):
        time.sleep(dice.uniform(0.5, seconds / kills))
        site.kill()
        site.start()
    for job in jobs:
        job.ends(seconds=60 + 2 * seconds)
        assert job.diary.result() is not None
    ledger_equals_accounting(site)


def ledger_equals_accounting(site: Site) -> None:
    """Tenants had by the ledger what sacct says of the same runs, over all of them."""
    wait_until(lambda: all(site.billed().get(tenant) for tenant in ("vision", "nlp")), 20, "accounted")
    time.sleep(2)  # the last ends reach slurmdbd
    site.stop()
    site.start()  # settles with accounting in its first tick
    site.ticks_pass(2)
    billed, had = site.billed(), site.had()
    for tenant in ("vision", "nlp"):
        assert had[tenant] == pytest.approx(billed[tenant], rel=0.001), (had, billed)


@BOTH_GATES
def test_a_daemon_killed_at_random_moments_loses_nothing_and_starts_nothing_twice(
    new_site: Callable[..., Site], gate: str
) -> None:
    killed_again_and_again(new_site(gate, LEASE).start(), 3, 6)


@pytest.mark.prove
@pytest.mark.timeout(900)
@BOTH_GATES
def test_a_daemon_killed_twenty_times_loses_nothing(new_site: Callable[..., Site], gate: str) -> None:
    site = new_site(gate, LEASE).start()
    killed_again_and_again(site, 20, 80)
    starts = sum(len(job.starts()) for job in site.jobs)
    measured = f"{len(site.jobs)} jobs, {starts} starts: every hash right, ledger as sacct says within 0.1 %"
    proved(
        f"daemon killed with -9 at 20 random moments, {gate} gate", "nothing lost, nothing twice", measured
    )


# -- jobs that end by themselves when they are revoked --------------------------------------------------------


def leavers(site: Site, batch: int, count: int) -> int:
    """Jobs complete, fail or are cancelled at about the moment of their requeue, and none of them runs again.

    How many were met in their revocation: asked, and over before they could be requeued.
    """
    jobs = [
        site.submit(ALL_GPUS // count, manner="leave", code=number % 2, user=USER) for number in range(count)
    ]
    for job in jobs:
        job.runs()
    rival = site.submit(ALL_GPUS, tenant="nlp")
    cancelled = jobs[::3]
    wait_until(lambda: "ask done" in site.acts(cancelled[0]), 20, "asked")
    time.sleep(random.Random(batch).uniform(0, 0.4))
    for job in cancelled:
        job.cancel(USER)
    rival.runs()
    rival.cancel()
    wait_until(lambda: site.rows()[rival.label].state == "CANCELLED", 10)
    site.ticks_pass(2)
    return sum(ended_in_its_revocation(site, job, number) for number, job in enumerate(jobs))


def ended_in_its_revocation(site: Site, job: Job, number: int) -> bool:
    """True where it was asked and then ended for good: neither accounting nor the job knows a later run."""
    runs = runs_in_accounting(site, job)
    over = [at for at, state in enumerate(runs) if state in ("COMPLETED", "FAILED", "CANCELLED")]
    requeued = runs.count("REQUEUED")
    assert len(over) <= 1, (number, runs)
    assert not over or over[0] == len(runs) - 1, (number, runs)
    assert job.now().restarts == requeued, (number, runs, job.now())
    assert len(job.starts()) <= 1 + requeued, (number, runs)
    met = "ask done" in site.acts(job) and bool(over) and not requeued
    job.cancel()
    return met


def runs_in_accounting(site: Site, job: Job) -> list[str]:
    """The final state of each run of a job, oldest first; a run under way counts too."""
    words = ("sacct", "-n", "-P", "-X", "-D", "-j", job.label, "-o", "Start,State")
    rows = sorted(line.split("|") for line in site.lab.run(*words).stdout.splitlines())
    return [state.split()[0] for start, state in rows if start[:1].isdigit()]


@BOTH_GATES
def test_jobs_that_end_at_the_moment_of_their_revocation_never_run_again(
    new_site: Callable[..., Site], gate: str
) -> None:
    site, met, batches = new_site(gate, LEASE).start(), 0, 0
    while met < 4 and batches < 3:  # how many are met depends on who is faster
        met, batches = met + leavers(site, batches, 12), batches + 1
    assert met >= 4, f"{met} of {12 * batches} jobs ended in their revocation: nothing was tried"


@pytest.mark.prove
@pytest.mark.timeout(900)
@BOTH_GATES
def test_a_hundred_jobs_that_end_at_the_moment_of_their_revocation_never_run_again(
    new_site: Callable[..., Site], gate: str
) -> None:
    site, met, batches = new_site(gate, LEASE).start(), 0, 0
    while met < 100 and batches < 40:  # how many are met depends on who is faster
        met, batches = met + leavers(site, batches, 12), batches + 1
    claim = "jobs that complete, fail or are cancelled at the moment of their revocation never run again"
    proved(f"{claim}, {gate} gate", "0 of 100 or more", f"0 of {met} that ended between request and requeue")
    assert met >= 100


# -- gone, frozen, freed --------------------------------------------------------------------------------------


@BOTH_GATES
def test_within_a_lease_of_the_daemons_death_the_queue_is_plain_slurms(
    new_site: Callable[..., Site], gate: str
) -> None:
    site = new_site(gate, LEASE).start()
    running, waiting = crowd(site, ALL_GPUS, 8, 8)
    site.kill()
    wait_until(lambda: is_plain(site, [running, *waiting]), site.term + 1, "free within a lease")
    running.cancel()
    wait_until(lambda: any(job.state == "RUNNING" for job in waiting), 10, "plain Slurm starts them")
    wait_until(lambda: not site.deadmen(), 10, "the dead-man ends when its work is done")


def test_with_daemon_and_dead_man_gone_begin_gates_open_by_themselves(new_site: Callable[..., Site]) -> None:
    site = new_site("begin", LEASE).start()
    blocker = site.submit(ALL_GPUS, stamped=False).runs()
    job = site.submit(8, gated=False, tenant="nlp").waits()
    site.kill()
    for pid in site.deadmen():
        subprocess.run(["kill", "-9", str(pid)], check=True)
    blocker.cancel()
    job.runs(2 * site.term + 5)


@pytest.mark.parametrize(
    ("gate", "daemon"),
    [("begin", "alive"), ("hold", "alive"), ("begin", "dead"), ("hold", "dead"), ("hold", "frozen")],
)
def test_fail_open_frees_every_job_with_the_daemon_alive_dead_or_frozen(
    new_site: Callable[..., Site], gate: str, daemon: str
) -> None:
    # no lease ends before it is done
    lasting = LEASE if daemon == "frozen" else {**LEASE, "term": 60, "align": "rolling"}
    site = new_site(gate, lasting).start()
    running, waiting = crowd(site, ALL_GPUS, 8, 8)
    if daemon == "dead":
        site.kill()
    if daemon == "frozen":
        site.signal(signal.SIGSTOP)
    began = time.monotonic()
    done = site.cli("fail-open")
    assert "the queue flows as plain Slurm" in done.stdout
    assert time.monotonic() - began < 10
    assert is_plain(site, [running, *waiting])
    if daemon == "frozen":
        site.signal(signal.SIGCONT)
    assert site.process is not None
    assert site.process.wait(10) == {"alive": 0, "dead": -9, "frozen": 1}[daemon]
    stays(lambda: is_plain(site, [running, *waiting]), 2)
    assert (running.state, running.now().restarts) == ("RUNNING", 0)


def test_a_daemon_frozen_for_longer_than_a_lease_acts_no_more_when_it_wakes(
    new_site: Callable[..., Site],
) -> None:
    site = new_site("hold", LEASE).start()
    running, waiting = crowd(site, ALL_GPUS, 8, 8)
    site.signal(signal.SIGSTOP)
    wait_until(lambda: is_plain(site, [running, *waiting]), site.term + 1)
    since = time.time()
    site.signal(signal.SIGCONT)
    assert site.process is not None
    assert site.process.wait(15) == 1
    assert "the dead-man" in site.said().splitlines()[-1]
    assert site.acts(since=since) == []
    site.start()
    waiting[0].runs(25)


# -- two of them ----------------------------------------------------------------------------------------------


def test_a_second_daemon_ends_with_one_line_and_the_first_goes_on(new_site: Callable[..., Site]) -> None:
    site = new_site("begin", LEASE).start()
    argv = [sys.executable, "-m", "slurm_fair.cli", "--config", str(site.config), "run"]
    second = subprocess.run(
        argv, cwd=REPOSITORY, env=site.lab.env, capture_output=True, text=True, timeout=20
    )
    assert second.returncode == 1
    assert len(second.stderr.strip().splitlines()) == 1
    assert second.stderr.startswith("slurm-fair: ")
    site.ticks_pass(2)
    assert len(site.deadmen()) == 1


# -- switches -------------------------------------------------------------------------------------------------


def test_while_paused_nothing_is_done_the_queue_flows_and_after_resume_all_goes_on(
    new_site: Callable[..., Site],
) -> None:
    site = new_site("hold", LEASE).start()
    first, waiting = crowd(site, ALL_GPUS, 8, 8)
    site.cli("pause", "--why", "a test")
    since = time.time() + 1
    rest = [first, *waiting]
    wait_until(lambda: is_plain(site, rest), site.term + 2, "plain Slurm within a lease")
    assert "paused" in site.cli("status").stdout
    # The lease of the first may have ended before the pause.
    wait_until(lambda: any(job.state == "RUNNING" for job in rest), 10, "a job runs")
    running = next(job for job in rest if job.state == "RUNNING")
    others = [job for job in rest if job is not running]
    stays(lambda: running.state == "RUNNING" and is_plain(site, others), 3)
    assert site.acts(since=since) == []
    site.cli("resume")
    others[0].runs(25)
    site.kill()
    wait_until(lambda: is_plain(site, rest), site.term + 2, "the dead-man watches again after a pause")


def test_sighup_takes_a_good_configuration_and_refuses_a_bad_one(new_site: Callable[..., Site]) -> None:
    site = new_site("begin", LEASE).start()
    site.lease = {**site.lease, "term": 9}
    site.write_config()
    site.signal(signal.SIGHUP)
    wait_until(lambda: "configuration read again" in site.said(), 10)
    wait_until(lambda: last_term(site) == 9, 10)
    site.write_config("[leese]\nterm = 3\n")
    site.signal(signal.SIGHUP)
    wait_until(lambda: "the old configuration stays" in site.said(), 10)
    assert "did you mean 'lease'" in site.said()
    site.ticks_pass(2)
    assert last_term(site) == 9
    site.submit(4).runs()


def last_term(site: Site) -> float:
    """The lease term that the last tick went by."""
    with site.reader() as journal:
        numbers = journal.tick_numbers()
        assert numbers is not None
        return next(iter(journal.ticks(numbers[1]))).terms.term


def test_sigterm_ends_the_daemon_in_good_order(new_site: Callable[..., Site]) -> None:
    site = new_site("begin", LEASE).start()
    running, waiting = crowd(site, ALL_GPUS, 8, 8)
    assert site.stop() == 0
    wait_until(lambda: is_plain(site, [running, *waiting]), site.term + 2)


# -- rights ---------------------------------------------------------------------------------------------------


@BOTH_GATES
def test_an_operator_without_any_other_right_runs_the_controller(
    new_site: Callable[..., Site], gate: str
) -> None:
    site = new_site(gate, LEASE, account="daemon").start()
    assert site.process is not None
    assert Path(f"/proc/{site.process.pid}").stat().st_uid == pwd.getpwnam("daemon").pw_uid
    first = site.submit(ALL_GPUS, user=USER).runs()
    second = site.submit(ALL_GPUS, tenant="speech", user="news").runs()
    assert first.now().restarts == 1
    asked = {event.detail["why"] for event in site.events("requeued", job=first)}
    assert asked == {"it answered"}, "its acknowledgement could be read"
    second.cancel("news")
    first.runs()
