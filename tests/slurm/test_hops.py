"""Hops drives the daemon on a real Slurm with two GPU types: elastic jobs change size and go on."""

from __future__ import annotations

import json

import pytest

from tests.slurm.harness import Job, Site, wait_until

pytestmark = pytest.mark.slurm
LEASE = {"term": 6, "interval": 1, "grace": 4, "align": "aligned"}
OF_EACH_TYPE = 2
EXTRA = ""


def sizes_of_runs(site: Site, job: Job) -> list[int]:
    """GPUs of each of its runs, as the journal tells of their starts."""
    return [event.gpus for event in site.events("started", job=job)]


def runs(job: Job) -> bool:
    return job.state == "RUNNING"


def test_an_elastic_job_makes_room_for_those_that_waited_and_grows_again(site: Site) -> None:
    elastic = site.submit(2, choices=(1, 2, 4, 8))
    wait_until(lambda: sizes_of_runs(site, elastic)[:1] == [8], 60, "alone it has the size that is fastest")
    others = [site.submit("--gres=gpu:4", "-t", "2", tenant="nlp") for _ in range(3)]
    wait_until(lambda: all(map(runs, others)), 90, "all three that ask for four GPUs run")
    wait_until(lambda: sizes_of_runs(site, elastic)[-1] <= 4, 60, "and the elastic one beside them")
    for other in others:
        site.lab.run("scancel", other.label)
    wait_until(lambda: sizes_of_runs(site, elastic)[-1] == 8, 90, "it grows when they have gone")
    steps = [start.step for start in elastic.starts()]
    assert steps == sorted(steps)
    assert steps[-1] > 0


def test_a_plan_of_hops_is_made_in_a_process_of_its_own_and_none_fails(site: Site) -> None:
    jobs = [site.submit(gpus, choices=(1, gpus)) for gpus in (2, 4)]
    wait_until(lambda: all(map(runs, jobs)), 60, "they run")
    status = json.loads(site.cli("status", "--json").stdout)
    assert status["plans"]["made"] > 0
    assert status["plans"]["failed"] == 0
