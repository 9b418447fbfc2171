"""A waiting job that its owner or an admin changes by scontrol is planned as it is now, on a real Slurm."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.slurm.harness import Site, expand, stays, wait_until

pytestmark = pytest.mark.slurm
USER = "games"
LEASE = {"term": 12, "grace": 3}


@pytest.fixture
def site(new_site: Callable[..., Site]) -> Site:
    """A site whose daemon does not run yet: three nodes of eight GPUs."""
    return new_site("begin", LEASE)


@pytest.mark.parametrize("by", [USER, None])
def test_a_job_whose_exclusion_is_taken_back_starts(site: Site, by: str | None) -> None:
    job = site.submit(4, user=USER).waits()
    job.update("ExcNodeList=n1,n2,n3", user=USER)  # Slurm takes that in an update alone
    site.start().ticks_pass(3)
    assert site.planned(job) == []
    job.update("ExcNodeList=", user=by)
    job.runs(25)


def test_a_job_that_excludes_a_node_later_gets_another_and_nobody_is_stopped_for_it(site: Site) -> None:
    site.start()
    others = [site.submit(8, f"--nodelist={name}").runs() for name in ("n1", "n2")]
    job = site.submit(8, tenant="nlp", user=USER).runs()
    assert expand(job.starts()[0].nodes) == ("n3",)
    job.scontrol("requeuehold")
    wait_until(lambda: job.state == "PENDING" and job.now().restarts == 1, 20)
    job.scontrol("release")
    job.scontrol("hold", user=USER)
    site.ticks_pass(2)
    job.update("ExcNodeList=n1,n2,n3", user=USER)
    before = [other.now().restarts for other in others]
    first = len(site.planned(job))
    job.scontrol("release", user=USER)
    stays(lambda: job.state == "PENDING", 15, "it excludes every node")
    assert [other.now().restarts for other in others] == before
    assert len(site.planned(job)) == first
    job.update("ExcNodeList=n1,n2", user=USER)
    job.runs(25)
    assert site.planned(job)[first:] == [("n3",)]
