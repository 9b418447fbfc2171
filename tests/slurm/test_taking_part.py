"""Nobody gains by staying out: what is left alone is charged live, what cannot be taken back has its own share."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.slurm.harness import Job, Site, stays, wait_until

pytestmark = pytest.mark.slurm
BOTH_GATES = pytest.mark.parametrize("gate", ["begin", "hold"])


@contextmanager
def srun(site: Site, *options: str) -> Iterator[None]:
    """An interactive job for as long as the test looks."""
    argv = ["srun", "-Q", "-n1", *options, "sleep", "600"]
    process = subprocess.Popen(argv, env=site.lab.env, stdin=subprocess.DEVNULL, cwd="/")
    try:
        yield
    finally:
        process.kill()
        process.wait(10)


def tenant(site: Site, name: str) -> dict[str, Any]:
    """The row of a tenant in `status`; nothing before anything is known of it."""
    table = json.loads(site.cli("status", "--json").stdout)["tenants"]
    return next((row for row in table if row["tenant"] == name), {})


WAYS = {
    "interactive": ("-p", "gpu", "--gpus=4"),
    "in a partition that is not managed": ("-p", "other", "-w", "n3", "--gpus=4"),
}


@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
def test_what_is_left_alone_is_charged_while_it_runs(
    new_site: Callable[..., Site], options: tuple[str, ...]
) -> None:
    site = new_site("begin").start()
    before = site.had().get("nlp", 0.0)
    with srun(site, "-A", "nlp", *options):
        wait_until(lambda: tenant(site, "nlp").get("gpus") == 4, 15, "its GPUs are nlp's")
        assert tenant(site, "nlp")["demand_gpus"] == 4
        wait_until(lambda: site.had().get("nlp", 0.0) - before > 8, 15, "it is charged live")
        first = site.had()["nlp"]
        site.ticks_pass(4)
        gained, gpus = site.had()["nlp"] - first, json.loads(site.cli("status", "--json").stdout)["gpus"]
        assert gained == pytest.approx(16, abs=8)
        assert gpus["others"] == 4
        assert sum(gpus.values()) == 24


def test_who_only_waits_for_interactive_jobs_is_owed_its_share_and_starts_when_they_end(
    new_site: Callable[..., Site],
) -> None:
    site = new_site("begin").start()
    wide = ("-A", "nlp", "-p", "gpu", "--gpus=8")
    with srun(site, *wide), srun(site, *wide), srun(site, *wide):
        wait_until(lambda: tenant(site, "nlp").get("gpus") == 24, 15, "they have the whole cluster")
        waits = site.submit(4)
        wait_until(lambda: tenant(site, "vision").get("demand_gpus") == 4, 15, "it claims its share")
        first = tenant(site, "vision")["owed_gpu_seconds"]
        site.ticks_pass(4)
        assert tenant(site, "vision")["owed_gpu_seconds"] > first + 8
        said = site.cli("explain", waits.label).stdout
        assert "jobs that cannot be asked to give way" in said
        assert waits.state == "PENDING"
    wait_until(lambda: waits.state == "RUNNING", 3 * site.term, "it starts when they have ended")


def running(site: Site, *jobs: Job) -> int:
    """The number of them that hold GPUs."""
    return sum(job.state == "RUNNING" for job in jobs)


@BOTH_GATES
def test_plain_jobs_start_within_their_accounts_share_and_are_told_so(
    new_site: Callable[..., Site], gate: str
) -> None:
    """Three accounts of weights 1, 1 and 2, of which two have jobs: twelve of 24 GPUs are nlp's own."""
    site = new_site(gate).start()
    honest = [site.submit(4) for _ in range(8)]
    wait_until(lambda: running(site, *honest) == 6, 20, "vision has the whole cluster")
    hold = ("-H", "--comment=slurm_fair:v0,gate=hold")
    gated = hold if gate == "hold" else ("--begin=now+600", "--comment=slurm_fair:v0,gate=+600")
    plain = [site.submit(4, *gated, "-t", "60", tenant="nlp", stamped=False) for _ in range(5)]
    wait_until(lambda: running(site, *plain) == 3, 6 * site.term, "three of them have nlp's share")
    stays(lambda: running(site, *plain) == 3, 2 * site.term, "no more of them start")
    waits = next(job for job in plain if job.state == "PENDING")
    said = site.cli("explain", waits.label).stdout
    assert "cannot save" in said
    assert "own share" in said
    for job in honest:
        job.cancel()
    stays(lambda: running(site, *plain) == 3, 2 * site.term, "not even on idle GPUs")


def test_plain_jobs_that_the_site_requeues_may_use_all_and_give_way(new_site: Callable[..., Site]) -> None:
    site = new_site("begin")
    site.write_config('[scope]\nplain = "revoke"\npartitions = ["gpu"]\n')
    site.start()
    gated = ("--begin=now+600", "--comment=slurm_fair:v0,gate=+600", "-t", "60")
    plain = [site.submit(8, *gated, tenant="nlp", stamped=False) for _ in range(3)]
    wait_until(lambda: running(site, *plain) == 3, 20, "they have the whole cluster")
    honest = [site.submit(8) for _ in range(3)]
    wait_until(lambda: running(site, *honest) >= 1, 4 * site.term, "another account has its turn")
    assert any("requeue done" in site.acts(job) for job in plain)
    assert not any("ask done" in site.acts(job) for job in plain)


def test_interactive_jobs_wait_for_their_share_where_the_site_gates_them(
    new_site: Callable[..., Site],
) -> None:
    site = new_site("begin")
    site.write_config('[scope]\ninteractive = "gate"\npartitions = ["gpu"]\n')
    site.start()
    honest = [site.submit(8) for _ in range(6)]
    wait_until(lambda: running(site, *honest) == 3, 20, "vision has the whole cluster")
    wide = ("-A", "nlp", "-p", "gpu", "--gpus=8")
    with srun(site, *wide), srun(site, *wide):
        wait_until(lambda: tenant(site, "nlp").get("gpus") == 8, 4 * site.term, "one of them runs")
        stays(lambda: tenant(site, "nlp")["gpus"] == 8, 2 * site.term, "and no other beside it")


@BOTH_GATES
def test_exclusive_jobs_are_planned_and_charged_as_whole_nodes(
    new_site: Callable[..., Site], gate: str
) -> None:
    site = new_site(gate).start()
    neighbour = site.submit(1).runs()
    alone = site.submit(1, "--exclusive", tenant="nlp").runs()
    greedy = site.submit(1, "-c", "64", tenant="nlp").runs()
    assert set(alone.now().nodes).isdisjoint(neighbour.now().nodes)
    assert site.planned(alone) == [alone.now().nodes]
    assert site.planned(greedy) == [greedy.now().nodes]
    wait_until(lambda: tenant(site, "nlp").get("gpus") == 16, 10, "both count as whole nodes")
    first = site.had().get("nlp", 0.0)
    site.ticks_pass(4)
    assert site.had()["nlp"] - first == pytest.approx(64, abs=24)


def test_an_exclusive_job_waits_for_a_whole_node_and_gives_it_back(new_site: Callable[..., Site]) -> None:
    site = new_site("begin").start()
    small = [site.submit(2) for _ in range(12)]
    wait_until(lambda: running(site, *small) == 12, 20, "vision has the whole cluster")
    alone = site.submit(1, "--exclusive", tenant="nlp")
    alone.runs(6 * site.term)
    assert site.planned(alone)[0] == alone.now().nodes
    assert alone.now().restarts == 0
    wait_until(lambda: running(site, *small) == 8, 10, "four made room")


def test_jobs_that_close_their_nodes_to_other_users_take_turns_with_them(
    new_site: Callable[..., Site],
) -> None:
    site = new_site("begin").start()
    closing = [site.submit(1, "--exclusive=user", "-w", f"n{n}", tenant="nlp").runs() for n in (1, 2, 3)]
    wait_until(lambda: tenant(site, "nlp").get("gpus") == 24, 10, "all GPUs of their nodes are nlp's")
    honest = [site.submit(1, user="games") for _ in range(8)]
    wait_until(lambda: running(site, *honest) == 8, 6 * site.term, "another account has its turn")
    assert any("requeue done" in site.acts(job) for job in closing)


def test_memory_and_cpus_by_gpu_are_planned(new_site: Callable[..., Site]) -> None:
    site = new_site("begin").start()
    jobs = [site.submit(1, "--cpus-per-gpu=40", "--mem-per-gpu=1000") for _ in range(3)]
    for job in jobs:
        job.runs()
        assert job.now().nodes == site.planned(job)[0]
    assert len({job.now().nodes for job in jobs}) == 3  # of 64 CPUs two of them have no room together


def test_a_job_that_its_owner_stops_by_a_signal_gives_way_like_all_others(
    new_site: Callable[..., Site],
) -> None:
    """Slurm says STOPPED, and the job keeps its GPUs and goes on."""
    site = new_site("begin").start()
    stopped = [site.submit(8, tenant="nlp").runs() for _ in range(3)]
    for job in stopped:
        site.lab.run("scancel", "--signal=STOP", job.label)
    wait_until(lambda: all(job.state == "STOPPED" for job in stopped), 5, "Slurm calls them stopped")
    honest = site.submit(24)
    honest.runs(4 * site.term)
    assert all(job.now().restarts == 1 for job in stopped)
    honest.cancel()
    for job in stopped:
        job.runs()


def test_a_job_whose_deadline_would_make_it_stay_uses_its_accounts_share_only(
    new_site: Callable[..., Site],
) -> None:
    """Two accounts of equal weights are known: twelve of 24 GPUs are nlp's own."""
    site = new_site("begin").start()
    honest = [site.submit(4) for _ in range(8)]
    wait_until(lambda: running(site, *honest) == 6, 20, "vision has the whole cluster")
    near = [site.submit(4, "-t", "60", "--deadline=now+7000", tenant="nlp") for _ in range(5)]
    wait_until(lambda: running(site, *near) == 3, 6 * site.term, "three of them have nlp's share")
    for job in honest:
        job.cancel()
    stays(lambda: running(site, *near) <= 3, 2 * site.term, "no more of them start on idle GPUs")
    waits = next(job for job in near if job.state == "PENDING")
    assert "deadline" in site.cli("explain", waits.label).stdout
    site.submit(4, "-t", "60", "--deadline=now+10000", tenant="nlp").runs()


def test_a_job_with_a_deadline_far_off_and_no_limit_uses_its_accounts_share_only(
    new_site: Callable[..., Site],
) -> None:
    """Slurm makes the time up to the deadline its limit when it starts; twelve of 24 GPUs are nlp's own."""
    site = new_site("begin").start()
    honest = [site.submit(4) for _ in range(6)]
    wait_until(lambda: running(site, *honest) == 6, 20, "vision has the whole cluster")
    far = [site.submit(4, "--deadline=now+30days", tenant="nlp") for _ in range(5)]
    wait_until(lambda: running(site, *far) == 3, 6 * site.term, "three of them have nlp's share")
    for job in honest:
        job.cancel()
    stays(lambda: running(site, *far) <= 3, 2 * site.term, "no more of them start on idle GPUs")
    site.submit(4, tenant="nlp").runs()
