"""Jobs change places exactly and fast; the long versions are proofs."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import pytest

from slurm_fair.lab import Lab, LabSpec, available
from slurm_fair.model import Result, Verb
from tests.slurm.harness import Job, Site, expand, wait_until
from tests.support.proofs import proved

pytestmark = pytest.mark.slurm


@pytest.fixture
def site_of(request: pytest.FixtureRequest) -> Iterator[Site]:
    """A lab of its own (nodes, gpus) with a lease of its own (term)."""
    nodes, gpus, lease = request.param
    if (reason := available()) is not None:
        pytest.skip(reason)
    with Lab(spec=LabSpec(nodes=nodes, gpus_per_node=gpus)) as lab:
        site = Site(lab, lease=lease)
        try:
            yield site
            site.assert_clean()
        finally:
            site.close()


def opened_at(site: Site, job: Job) -> list[float]:
    """The instants at which each gate of a job began to be opened."""
    with site.reader() as journal:
        return [
            intent.time
            for intent in journal.intents()
            if intent.action.key == job.key
            and intent.action.verb is Verb.OPEN
            and intent.result is Result.DONE
        ]


def start_delays(site: Site, jobs: list[Job]) -> list[float]:
    """Seconds from opening a gate to the first line of the job's script."""
    delays: list[float] = []
    for job in jobs:
        opened, starts = opened_at(site, job), [start.time for start in job.starts()]
        assert len(opened) == len(starts), (
            f"job {job.label}: {len(opened)} gates opened, {len(starts)} starts"
        )
        delays += [start - at for at, start in zip(opened, starts, strict=True)]
    return delays


def misplaced(site: Site, job: Job) -> list[str]:
    """Starts of a job that were not on exactly the planned nodes."""
    planned, starts = site.planned(job), job.starts()
    assert len(planned) == len(starts), f"job {job.label}: {len(planned)} grants, {len(starts)} starts"
    real = [expand(start.nodes) for start in starts]
    return [f"{p} {r}" for p, r in zip(planned, real, strict=True) if tuple(sorted(p)) != r]


def place_jobs(site: Site, count: int) -> tuple[int, list[float]]:
    """Run `count` short jobs of mixed sizes; how many started where they were planned, and how fast."""
    sizes = [1, 2, 4, 8, 1, 3, "--gpus-per-node=8 -N2", 1, 2, 5]
    jobs = []
    site.start()
    for number in range(count):
        size = sizes[number % len(sizes)]
        words = size.split() if isinstance(size, str) else [f"--gpus={size}"]
        jobs.append(
            site.submit(words[0], *words[1:], steps=3, tenant=("vision", "nlp", "speech")[number % 3])
        )
    wait_until(lambda: all(job.diary.result() for job in jobs), 30 + count * 2, "all jobs are done")
    wrong = [text for job in jobs for text in misplaced(site, job)]
    assert not wrong, wrong
    return sum(len(job.starts()) for job in jobs), start_delays(site, jobs)


_QUICK = {"term": 60, "interval": 1, "grace": 4}


@pytest.mark.parametrize("site_of", [(4, 8, {**_QUICK, "align": "rolling"})], indirect=True)
def test_granted_jobs_start_on_exactly_the_planned_nodes(site_of: Site) -> None:
    starts, delays = place_jobs(site_of, 20)
    assert starts == 20
    assert statistics.median(delays) < 2.0, delays


@pytest.mark.prove
@pytest.mark.timeout(900)
@pytest.mark.parametrize("site_of", [(4, 8, _QUICK)], indirect=True)
def test_two_hundred_of_two_hundred_start_where_they_were_planned(site_of: Site) -> None:
    starts, delays = place_jobs(site_of, 200)
    median, most = statistics.median(delays), max(delays)
    proved("granted jobs start on exactly the planned nodes", "200 of 200", f"{starts} of {starts}")
    proved(
        "gate opening to RUNNING",
        "median <= 1 s",
        f"median {median:.2f} s, max {most:.2f} s of {len(delays)}",
    )
    assert starts >= 200
    assert median <= 1.0


def switch_delays(site: Site, jobs: list[Job], leases: int) -> list[float]:
    """Seconds from the end of a lease to the first line of the job that takes over the GPUs."""
    site.start()
    wait_until(lambda: sum(len(job.starts()) for job in jobs) > leases, 60 + leases * 2 * site.term)
    site.stop()
    ends = sorted({round(e.time, 3) for e in site.events("revoked")})
    starts = sorted(start.time for job in jobs for start in job.starts())
    delays = []
    for end in ends:
        lease_end = end - end % site.term  # aligned: leases end at multiples of the term
        later = [start - lease_end for start in starts if lease_end < start < lease_end + site.term]
        delays += later[:1]
    return delays


@pytest.mark.prove
@pytest.mark.timeout(900)
@pytest.mark.parametrize("site_of", [(1, 8, {"term": 6, "interval": 1, "grace": 4})], indirect=True)
def test_the_next_job_runs_soon_after_a_lease_ends(site_of: Site) -> None:
    jobs = [site_of.submit(8), site_of.submit(8)]
    delays = switch_delays(site_of, jobs, 40)
    median, most = statistics.median(delays), max(delays)
    measured = f"median {median:.2f} s, max {most:.2f} s of {len(delays)} switches"
    proved("lease end to the next job RUNNING on the same GPUs", "<= 2.5 s + its checkpoint", measured)
    assert len(delays) >= 30
    assert median <= 2.5


@pytest.mark.prove
@pytest.mark.timeout(900)
@pytest.mark.parametrize("site_of", [(8, 8, {"term": 20, "interval": 1, "grace": 8})], indirect=True)
def test_a_whole_switch_of_sixty_four_jobs(site_of: Site) -> None:
    jobs = [site_of.submit(1, pause=1.0) for _ in range(128)]
    site_of.start()
    wait_until(lambda: sum(len(job.starts()) for job in jobs) >= 64 * 5, 300, "four switches")
    site_of.stop()
    spans = []
    for lease_end in sorted({e.time - e.time % site_of.term for e in site_of.events("revoked")}):
        starts = [
            s.time for job in jobs for s in job.starts() if lease_end < s.time < lease_end + site_of.term
        ]
        spans += [max(starts) - lease_end] if len(starts) == 64 else []
    measured = f"median {statistics.median(spans):.2f} s, max {max(spans):.2f} s of {len(spans)} switches"
    proved("a whole switch of 64 one-GPU jobs, from lease end to the last one RUNNING", "<= 4 s", measured)
    assert len(spans) >= 3
    assert statistics.median(spans) <= 4.0


@pytest.mark.prove
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("site_of", [(2, 8, {"term": 4, "interval": 1, "grace": 3})], indirect=True)
def test_five_hundred_preemptions_lose_no_job(site_of: Site) -> None:
    jobs = [site_of.submit(1, pause=0.5) for _ in range(48)]
    site_of.start()
    wait_until(lambda: sum(len(job.starts()) - 1 for job in jobs if job.starts()) >= 500, 900, "500 restarts")
    states = {job.state for job in jobs}
    again = sum(len(job.starts()) - 1 for job in jobs)
    measured = f"{again} pre-emptions, states now: {', '.join(sorted(states))}"
    proved("no job is lost to a restart in the same second", "0 of 500 pre-emptions", measured)
    assert states <= {"RUNNING", "PENDING", "COMPLETING"}
    for job in jobs:
        steps = [step for _, step in job.diary.steps()]
        assert steps == sorted(set(steps)), f"job {job.label} ran a step twice"
