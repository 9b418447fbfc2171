"""Deadlines (`sbatch --deadline`) on a real Slurm: seen, served in time, and what Slurm ends stays ended."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
import pytest

from slurm_fair.model import Verdict
from tests.slurm.harness import Job, Site, stays, wait_until

pytestmark = pytest.mark.slurm
ALL_GPUS = 24
# Urgent is who has less than term + grace + interval to spare: time enough to be started in by a slow machine.
LEASE = {"term": 24, "grace": 10}


# Of `astraea` the settings are the harness's own.
POLICIES = {"astraea": "", "fair": '[policy]\nname = "fair"\n'}


@pytest.fixture(params=POLICIES)
def site(new_site: Callable[..., Site], request: pytest.FixtureRequest) -> Site:
    """A site with the daemon running, under each policy that minds deadlines."""
    return new_site("begin", LEASE, extra=POLICIES[request.param]).start()


def due(site: Site, spare_seconds: float) -> Job:
    """A job of one minute that must start within so many seconds; sbatch wants no deadline before our gate."""
    job = site.submit(ALL_GPUS, "--time=1", "--deadline=now+900").waits()
    job.update(f"deadline=now+{60 + spare_seconds:.0f}")
    return job


def seen_deadline(site: Site, job: Job) -> float:
    """The deadline as the last tick has it; nan where that came before the job."""
    with site.reader() as journal:
        last = site.last_tick()
        (tick,) = journal.ticks(last, last)
    told, keys = tick.snapshot.told, tick.snapshot.jobs.key.tolist()
    if job.key not in keys:
        return math.nan
    return math.inf if told is None else float(told.deadline[keys.index(job.key)])


def reasons_of_renewals(site: Site, job: Job) -> set[str]:
    """The reasons of its renewals, as the ticks of that moment have them."""
    found = set()
    with site.reader() as journal:
        for tick in journal.ticks():
            for row in np.flatnonzero(tick.snapshot.jobs.key == job.key).tolist():
                if tick.plan.verdict[row] == Verdict.RENEW:
                    found.add(tick.plan.explanation.reasons[tick.plan.explanation.reason[row]])
    return found


def test_a_job_that_has_to_run_now_goes_before_an_older_one_of_its_tenant(site: Site) -> None:
    blocker = site.submit(ALL_GPUS, stamped=False).runs()
    older = site.submit(ALL_GPUS, "--time=1").waits()
    wait_until(lambda: seen_deadline(site, older) == math.inf, 10, "a job without a deadline is seen")
    urgent = due(site, 30)
    wanted = time.time() + 90
    wait_until(lambda: abs(seen_deadline(site, urgent) - wanted) < 5, 10, "its deadline is seen")
    blocker.cancel()
    urgent.runs()
    assert older.state == "PENDING"
    assert "the same plan as then" in site.cli("replay-tick").stdout
    urgent.cancel()
    older.runs()


def test_a_job_that_slurm_ends_for_its_deadline_is_over_and_the_next_one_runs(site: Site) -> None:
    blocker = site.submit(ALL_GPUS, stamped=False).runs()
    late, other = due(site, -20), site.submit(ALL_GPUS).waits()
    stays(lambda: late.state == "PENDING", 2)
    assert "can no longer make its deadline" in site.cli("explain", late.label).stdout
    blocker.cancel()
    late.ends("DEADLINE")
    other.runs()
    stays(lambda: late.state == "DEADLINE", 3)


def test_a_job_that_slurm_would_not_start_again_is_renewed_though_others_are_owed_more(site: Site) -> None:
    blocker = site.submit(ALL_GPUS, stamped=False).runs()
    kept = due(site, 22)
    blocker.cancel()
    kept.runs()
    rival = site.submit(ALL_GPUS, tenant="nlp").waits()
    wait_until(lambda: site.events("renewed", job=kept), 40, "its lease was renewed")
    assert {"it would lose work if it were stopped now"} == reasons_of_renewals(site, kept)
    assert (kept.now().restarts, rival.state) == (0, "PENDING")
    kept.cancel()
    rival.runs()
