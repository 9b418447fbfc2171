"""A waiting job that somebody changes by scontrol is soon planned as it is now."""

from __future__ import annotations

import pytest

from slurm_fair.model import LeaseTerms, Snapshot
from tests.support.fake_cluster import Site

TERMS = LeaseTerms(
    term=60.0, interval=10.0, grace=10.0, start_timeout=20.0, reserve_after=60.0, renewal=15.0, aligned=False
)


@pytest.fixture
def site() -> Site:
    """Two nodes of four GPUs."""
    return Site.build({"n1": 4, "n2": 4}, terms=TERMS)


def lists_since(site: Site, first: int, job: int) -> list[str]:
    """The node lists that one job was given."""
    lines = [
        line for line in site.commands.said[first:] if line.startswith(f"update jobid={job} reqnodelist=")
    ]
    return [name for line in lines if (name := line.partition("reqnodelist=")[2].partition(" ")[0])]


def test_a_job_whose_exclusion_is_taken_back_starts(site: Site) -> None:
    job = site.world.submit(4, "a", gate_seconds=600.0)
    site.world.records[job].excluded = ("n1", "n2")
    site.run(30)
    assert site.running() == set()
    site.world.records[job].excluded = ()
    site.run(30)
    assert site.running() == {job}


def test_a_job_whose_constraint_is_dropped_starts(site: Site) -> None:
    job = site.world.submit(4, "a", gate_seconds=600.0)
    site.world.records[job].constraint = "nvlink"
    site.run(30)
    assert site.running() == set()
    site.world.records[job].constraint = ""
    site.run(30)
    assert site.running() == {job}


def test_a_job_that_excludes_a_node_while_it_is_held_is_never_given_that_node(site: Site) -> None:
    runs = site.world.submit(4, "b", gate_seconds=600.0)
    site.run(20)
    (taken,) = site.world.records[runs].on
    free = {"n1": "n2", "n2": "n1"}[taken]
    job = site.world.submit(4, "a", gate_seconds=600.0, begin=0)
    site.world.hold(job, -1, "JobHeldUser")
    site.run(20)
    site.world.records[job].excluded = (free,)
    site.world.release(job)
    said = len(site.commands.said)
    site.run(300)
    assert lists_since(site, said, job)[:1] == [taken]
    assert free not in lists_since(site, said, job)
    assert site.world.records[job].restarts == 0
    assert site.world.records[runs].restarts == 1


def test_nobody_is_stopped_for_a_job_that_excludes_all_nodes_by_now(site: Site) -> None:
    job = site.world.submit(4, "a", gate_seconds=600.0)
    site.world.hold(job, -1, "JobHeldUser")
    site.run(10)
    others = [site.world.submit(4, "b", gate_seconds=600.0) for _ in range(2)]
    site.run(30)
    assert site.running() == set(others)
    site.world.records[job].excluded = ("n1", "n2")
    site.world.release(job)
    site.run(600)
    assert site.running() == set(others)
    assert [site.world.records[other].restarts for other in others] == [0, 0]


def test_a_stamp_that_comes_later_counts(site: Site) -> None:
    job = site.world.submit(4, "a", begin=site.now + 3600, stamped=False)
    saves = []
    for comment in ("", "slurm_fair:v1", "slurm_fair:v1"):
        site.world.records[job].comment = comment
        seen = site.cluster.observe({})
        assert isinstance(seen, Snapshot)
        saves.append(seen.jobs.checkpoints.item(0))
        site.world.clock.advance(6.0)
    assert saves == [False, False, True]
