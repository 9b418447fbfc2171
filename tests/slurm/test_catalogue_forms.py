"""Every form in which people ask for GPUs, and jobs that are left alone, on a real Slurm."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests.slurm.harness import Job, Row, Site, expand, stays, wait_until

pytestmark = pytest.mark.slurm
LEASE = {"term": 6, "grace": 3}
ALL_GPUS = 24


@pytest.fixture
def site(new_site: Callable[..., Site]) -> Site:
    """A site with the daemon running."""
    return new_site("begin", LEASE).start()


# In this order they fill the three nodes to the last GPU.
FORMS = {
    "per node on two nodes": ("-N2", "--gpus-per-node=1"),
    "two nodes, any split": ("-N2", "--gpus=2"),
    "more than one node has": ("--gpus=12",),
    "per job": ("--gpus=2",),
    "per job, by type": ("--gpus=a100:1",),
    "per node": ("--gpus-per-node=1",),
    "as a generic resource": ("--gres=gpu:1",),
    "as a generic resource, by type": ("--gres=gpu:a100:1",),
    "per task": ("-n2", "--gpus-per-task=1"),
}


def test_every_form_of_asking_starts_on_exactly_the_planned_nodes(site: Site) -> None:
    jobs = {what: site.submit("", *options) for what, options in FORMS.items()}
    for what, job in jobs.items():
        job.runs()
        wait_until(lambda job=job: site.planned(job))  # type: ignore[misc]  # written when all acts are done
        (planned,) = site.planned(job)
        assert expand(job.starts()[0].nodes) == tuple(sorted(planned)), what
        assert job.now().nodes == tuple(sorted(planned)), what


def test_every_form_of_asking_survives_a_revocation(site: Site) -> None:
    jobs = {what: site.submit("", *options, steps=100) for what, options in FORMS.items()}
    for job in jobs.values():
        job.runs()
    rival = site.submit(ALL_GPUS, steps=5, tenant="nlp")
    wait_until(lambda: rival.state == "COMPLETED", 40)
    for what, job in jobs.items():
        job.ends()
        ran_on = [expand(start.nodes) for start in job.starts()]
        assert ran_on == [tuple(sorted(nodes)) for nodes in site.planned(job)], what
        assert len(ran_on) > 1, f"{what}: nobody revoked it"


# None of these says how many nodes it wants, and each needs two (of 64 CPUs and 512,000 MB).
WIDE_BY_NEED = {
    "CPUs of its tasks": ("-n2", "-c40", "--gpus-per-task=1"),
    "CPUs of its tasks, GPUs by the node": ("-n2", "-c40", "--gres=gpu:1"),
    "tasks of a node": ("-n2", "--ntasks-per-node=1", "--gpus=2"),
    "CPUs of its GPUs": ("--gpus=2", "--cpus-per-gpu=40"),
}


def test_a_gang_that_needs_several_nodes_starts_again_after_a_requeue(site: Site) -> None:
    for what, options in WIDE_BY_NEED.items():
        job = site.submit("", *options).runs()
        job.scontrol("requeue")
        wait_until(lambda job=job: job.now().restarts == 1)  # type: ignore[misc]
        assert len(job.runs().now().nodes) == 2, what
        job.cancel()


SPLIT_BY_SLURM = {
    "fills the first of its nodes": ("--gpus=12",),
    "leaves one for the second of its nodes": ("-N2", "--gpus=8"),
    "leaves one for each of the others": ("-N3", "--gpus=6"),
}


@pytest.mark.parametrize("options", SPLIT_BY_SLURM.values(), ids=SPLIT_BY_SLURM)
def test_what_is_promised_beside_a_gang_that_slurm_splits_is_free_whoever_starts_first(
    new_site: Callable[..., Site], options: tuple[str, ...]
) -> None:
    site = new_site("begin", {"term": 600, "align": "rolling"}).start()
    gang = site.submit("", *options)
    others = [site.submit(1) for _ in range(ALL_GPUS - gpus_of(options))]
    wait_until(lambda: all(job.state == "RUNNING" for job in (gang, *others)), 20)
    site.ticks_pass(1)  # what the last tick did is written down
    assert {len(site.planned(job)) for job in (gang, *others)} == {1}, "a promise was not kept"


def gpus_of(options: tuple[str, ...]) -> int:
    return int(options[-1].removeprefix("--gpus="))


# -- arrays ---------------------------------------------------------------------------------------------------


def waiting_records(rows: dict[str, Row], tasks: list[Job]) -> int:
    """Slurm's records of the tasks that wait."""
    listed = [rows[task.label] for task in tasks if task.label in rows]
    return len({row.record for row in listed if row.state == "PENDING"})


def test_each_task_of_an_array_is_a_job_and_the_base_record_is_split_no_more_than_needed(site: Site) -> None:
    label = site.submit(2, "--array=0-19%4", steps=4).label
    tasks = [site.job(f"{label}_{number}") for number in range(20)]
    most = 0

    def all_done() -> bool:
        nonlocal most
        rows = site.rows()
        states = [rows[task.label].state for task in tasks if task.label in rows]
        assert states.count("RUNNING") <= 4, "the array's own limit"
        most = max(most, waiting_records(rows, tasks))
        return states.count("COMPLETED") == 20

    wait_until(all_done, 60)
    assert most <= 1 + 4, f"{most} records of waiting tasks: more than the base and those about to start"
    assert all(len(task.starts()) == 1 for task in tasks)


def test_waiting_tasks_of_an_array_stay_in_one_record_while_some_are_revoked(site: Site) -> None:
    label = site.submit(8, "--array=0-9").label
    tasks = [site.job(f"{label}_{number}") for number in range(10)]
    wait_until(lambda: sum(task.state == "RUNNING" for task in tasks) == 3, 20)
    rival = site.submit(ALL_GPUS, tenant="nlp").runs(25)
    assert [start.time - rival.starts()[0].time < 0 for task in tasks for start in task.starts()] == [
        True
    ] * 3
    assert waiting_records(site.rows(), tasks) <= 1 + 3, "the base and the three that ran"
    rival.cancel()
    wait_until(lambda: sum(task.state == "RUNNING" for task in tasks) == 3, 20)


# -- jobs that keep their GPUs --------------------------------------------------------------------------------


def test_jobs_that_cannot_checkpoint_or_be_requeued_get_leases_and_are_never_revoked(site: Site) -> None:
    plain = site.submit(16, stamped=False).runs()
    stubborn = site.submit(8, "--no-requeue").runs()
    rival = site.submit(ALL_GPUS, tenant="nlp").waits()
    stays(lambda: plain.state == stubborn.state == "RUNNING" and rival.state == "PENDING", 13)
    for job in (plain, stubborn):
        assert not {"ask done", "requeue done"} & set(site.acts(job))
        assert (job.now().restarts, len(job.starts())) == (0, 1)
        assert site.events("renewed", job=job), "its lease was renewed"


# -- jobs that are left alone ---------------------------------------------------------------------------------


@pytest.fixture
def interactive(site: Site) -> Iterator[str]:
    """An srun in the managed partition; its job's id."""
    words = ["srun", "-p", "gpu", "-A", "vision", "--gpus=2", "-J", "interactive", "sleep", "60"]
    process = subprocess.Popen(
        words,
        env=site.lab.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    named = ("squeue", "-h", "-n", "interactive", "-t", "R", "-o", "%i")
    wait_until(lambda: site.lab.run(*named).stdout.strip(), 15)
    yield site.lab.run(*named).stdout.strip()
    process.kill()
    process.wait(10)


def test_cpu_het_and_interactive_jobs_are_left_alone_and_the_reason_is_said(
    site: Site, interactive: str
) -> None:
    plain = str(site.folder / "plain.sh")
    cpu = site.sbatch("-A", "vision", "-n1", plain, "60")
    het = site.sbatch("-A", "vision", "--gpus=1", ":", "--gpus=1", plain, "60")
    wait_until(lambda: site.job(cpu).state == "RUNNING", 10)
    wait_until(lambda: all(site.rows()[f"{het}+{part}"].state == "RUNNING" for part in (0, 1)), 20)
    site.ticks_pass(3)
    board = json.loads(site.cli("queue", "--json").stdout)
    reasons = {job["job"]: job["reason"] for job in board["left_alone"]}
    assert "no GPU" in reasons[cpu]
    assert "heterogeneous" in reasons[het]
    assert "interactive" in reasons[interactive]
    for label in (cpu, het, interactive):
        assert reasons[label] in site.cli("explain", label).stdout
        assert site.acts(site.job(label)) == []
