"""The daemon on a real Slurm with a policy that grants sizes: jobs change theirs and go on where they were."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slurm_fair.lab import Lab
from tests.slurm.harness import Job, Site, wait_until

pytestmark = pytest.mark.slurm
LEASE = {"term": 6, "interval": 1, "grace": 4, "align": "rolling"}
TURNING = '[policy]\nname = "turning"\n'
ENTRY = "[slurm_fair.policies]\nturning = tests.support.turning_sizes:TurningSizes\n"


@pytest.fixture
def with_policy(scenario_lab: Lab, tmp_path: Path) -> Iterator[None]:
    """A package beside ours brings the policy of the tests."""
    package = tmp_path / "turning-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: turning\nVersion: 1\n")
    (package / "entry_points.txt").write_text(ENTRY)
    scenario_lab.env["PYTHONPATH"] = str(tmp_path)
    yield
    del scenario_lab.env["PYTHONPATH"]


def sizes_of_runs(site: Site, job: Job) -> list[int]:
    """GPUs of each of its runs, as the journal tells of their starts."""
    return [event.gpus for event in site.events("started", job=job)]


def asks_for(site: Site, job: Job) -> str:
    """Its request as squeue shows it."""
    return site.lab.run("squeue", "-h", "-j", job.label, "-O", "tres-per-node:|").stdout.strip().rstrip("|")


def test_a_job_changes_its_size_between_leases_and_goes_on_where_it_was(
    with_policy: None, new_site: Callable[..., Site]
) -> None:
    site = new_site("begin", LEASE, extra=TURNING)
    site.start()
    job = site.submit("--gres=gpu:2", choices=(1, 2, 4))
    rigid = site.submit("--gpus-per-task=1", "-n2", choices=(1, 2, 4))
    wait_until(lambda: sizes_of_runs(site, job)[:3] == [1, 2, 4], 90, "it ran with each size")
    assert set(sizes_of_runs(site, rigid)) == {2}
    steps = [start.step for start in job.starts()[:3]]
    assert steps == sorted(set(steps))
    told = site.cli("explain", job.label).stdout
    assert "it can run with 1, 2, 4 GPUs" in told
    assert "its usual size is 2" in told
    assert (
        "keeps 2 GPUs all the same: its GPUs are asked for by the task"
        in site.cli("explain", rigid.label).stdout
    )
    assert "jobs name sizes and keep one" in site.cli("check", check=False).stdout
    stops = [event for event in site.events("stopped", job=job) if event.gpus > 1]
    assert all(event.detail["had"] > 1.5 * event.gpus for event in stops)


def test_when_the_controller_lets_go_jobs_wait_with_their_own_request(
    with_policy: None, new_site: Callable[..., Site]
) -> None:
    site = new_site("begin", LEASE, extra=TURNING)
    site.start()
    job = site.submit("--gres=gpu:2", choices=(1, 2, 4))
    wait_until(lambda: sizes_of_runs(site, job)[:1] == [1], 30, "it runs with one GPU")
    job.runs()
    assert asks_for(site, job) == "gres:gpu:1"
    wait_until(
        lambda: job.is_gated() and asks_for(site, job) == "gres:gpu:2", 30, "it waits with its own request"
    )
    said = site.cli("fail-open").stdout
    assert not re.search(r"could not|left", said), said
    job.runs()
    assert asks_for(site, job) == "gres:gpu:2"
