"""Slurm's own troubles: drained nodes, reservations, closed partitions, a controller or database that is away."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

import pytest

from slurm_fair.lab import Lab
from tests.slurm.harness import Job, Site, stays, wait_until
from tests.support.proofs import proved

pytestmark = pytest.mark.slurm
LEASE = {"term": 6, "grace": 3}
ALL_GPUS = 24


@pytest.fixture
def site(new_site: Callable[..., Site]) -> Site:
    """A site with the daemon running."""
    return new_site("begin", LEASE).start()


@pytest.fixture
def drain(scenario_lab: Lab) -> Iterator[Callable[[str], None]]:
    """Drains nodes, and takes them back at the end."""
    drained: list[str] = []

    def drain_one(node: str) -> None:
        drained.append(node)
        scenario_lab.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")

    yield drain_one
    for node in drained:
        scenario_lab.run("scontrol", "update", f"nodename={node}", "state=resume")
    scenario_lab.wait_idle_nodes()


def planned_since(site: Site, moment: float) -> set[str]:
    """Every node that was planned for anybody since then."""
    return {node for e in site.events("granted") if e.time >= moment for node in e.detail["nodes"]}


# -- nodes ----------------------------------------------------------------------------------------------------


def test_a_drained_node_keeps_its_running_job_and_gets_no_new_one(
    site: Site, drain: Callable[[str], None]
) -> None:
    running = site.submit(8).runs()
    drain(running.now().nodes[0])
    site.ticks_pass(2)
    since = time.time()
    others = [site.submit(8, tenant="nlp") for _ in range(3)]
    wait_until(lambda: sum(job.state == "RUNNING" for job in others) == 2, 20)
    stays(lambda: running.state == "RUNNING", 8)
    assert running.now().restarts == 0, "nobody else can use its GPUs"
    assert not planned_since(site, since) & set(running.now().nodes)


def test_a_job_whose_promised_node_is_drained_before_it_starts_goes_elsewhere(
    site: Site, drain: Callable[[str], None]
) -> None:
    holders = [site.submit(8, manner="deaf").runs() for _ in range(3)]
    job = site.submit(8, tenant="nlp")
    wait_until(lambda: site.planned(job), 15, "promised")
    (node,) = site.planned(job)[0]
    drain(node)
    free = next(holder for holder in holders if holder.now().nodes != (node,))
    free.cancel()
    job.runs(15)
    assert job.now().nodes != (node,)


# -- reservations and partitions ------------------------------------------------------------------------------


@pytest.fixture
def maintenance(scenario_lab: Lab) -> Iterator[Callable[[str], None]]:
    """Makes a maintenance reservation that begins now, and deletes it at the end."""

    def reserve(node: str) -> None:
        scenario_lab.run(
            "scontrol", "create", "reservation", "reservationname=maint", "starttime=now", "duration=60",
            f"nodes={node}", "flags=maint,ignore_jobs", "users=root",
        )  # fmt: skip

    yield reserve
    scenario_lab.run("scontrol", "delete", "reservationname=maint", check=False)


def test_a_node_under_maintenance_gets_nothing_and_its_running_job_stays(
    site: Site, maintenance: Callable[[str], None]
) -> None:
    running = site.submit(8).runs()
    (node,) = running.now().nodes
    maintenance(node)
    wait_until(lambda: "reservation maint" in site.cli("status").stdout, 20, "seen")
    since = time.time()
    others = [site.submit(8, tenant="nlp") for _ in range(3)]
    wait_until(lambda: sum(job.state == "RUNNING" for job in others) == 2, 15)
    site.ticks_pass(8, 20)
    assert node not in planned_since(site, since)
    assert (running.state, running.now().restarts) == ("RUNNING", 0)


def test_nothing_starts_in_a_partition_that_is_down_and_all_goes_on_when_it_is_up(site: Site) -> None:
    running = site.submit(4).runs()
    site.lab.run("scontrol", "update", "partitionname=gpu", "state=down")
    try:
        site.ticks_pass(2)
        waiting = site.submit(4, tenant="nlp")
        stays(lambda: waiting.state == "PENDING" and running.state == "RUNNING", 4)
        assert "open done" not in site.acts(waiting)
    finally:
        site.lab.run("scontrol", "update", "partitionname=gpu", "state=up")
    waiting.runs()
    assert running.now().restarts == 0


def test_a_partition_that_is_not_managed_and_the_gpus_it_uses_are_never_touched(site: Site) -> None:
    label = site.sbatch("-p", "other", "-w", "n3", "--gpus=8", str(site.folder / "plain.sh"), "60")
    stranger = site.job(label).runs()
    waiting = site.sbatch("-p", "other", "-w", "n3", "--gpus=8", str(site.folder / "plain.sh"), "60")
    jobs = [site.submit(8, tenant=tenant) for tenant in ("vision", "nlp", "speech")]
    wait_until(lambda: sum(job.state == "RUNNING" for job in jobs) == 2, 15)
    site.ticks_pass(10, 20)
    planned = {node for job in jobs for nodes in site.planned(job) for node in nodes}
    assert planned == {"n1", "n2"}
    assert stranger.state == "RUNNING"
    assert site.acts(stranger) == site.acts(site.job(waiting)) == []
    assert site.rows()[waiting].eligible <= time.time(), "plain Slurm's own order"


# -- a controller or database that is away --------------------------------------------------------------------


def away(site: Site, seconds: float, how: str) -> tuple[Job, Job]:
    """Take slurmctld away while two jobs contend; nothing may be done meanwhile, and all goes on afterwards."""
    running = site.submit(ALL_GPUS).runs()
    waiting = site.submit(ALL_GPUS, tenant="nlp").waits()
    (site.lab.freeze if how == "frozen" else site.lab.halt)("slurmctld")
    gone = time.time()
    try:
        wait_until(lambda: "blind, so nothing is done" in site.said(), 20)
        time.sleep(max(gone + seconds - time.time(), 0))
        blind_since = time.time()
    finally:
        (site.lab.thaw if how == "frozen" else site.lab.revive)("slurmctld")
    acts = acts_between(site, gone + 0.5, blind_since)
    assert acts == [], f"acts while blind: {acts}"
    waiting.runs(30)
    running.waits(10)
    assert running.now().restarts == 1
    assert "sees again after" in site.said()
    assert len(re.findall("blind, so nothing is done", site.said())) == 1, "one line, not one a tick"
    return running, waiting


def acts_between(site: Site, start: float, end: float) -> list[str]:
    """Acts begun while nothing could be seen."""
    with site.reader() as journal:
        return [repr(intent.action) for intent in journal.intents(start) if intent.time < end]


@pytest.mark.parametrize("how", ["frozen", "halted"])
def test_while_slurmctld_is_away_nothing_is_done_and_then_all_goes_on(site: Site, how: str) -> None:
    away(site, 9, how)


@pytest.mark.prove
@pytest.mark.parametrize("how", ["frozen", "halted"])
def test_while_slurmctld_is_away_for_long_nothing_is_done(site: Site, how: str) -> None:
    away(site, 30, how)
    proved(f"slurmctld {how} for 30 s", "no act while blind, then on alone", "0 acts, one line in the log")


def test_without_slurmdbd_scheduling_goes_on_and_charges_settle_when_it_is_back(site: Site) -> None:
    site.lab.kill("slurmdbd")
    try:
        first = site.submit(ALL_GPUS, steps=40, pause=0.1)
        second = site.submit(ALL_GPUS, steps=40, pause=0.1, tenant="nlp")
        wait_until(lambda: first.state == second.state == "COMPLETED", 40)
    finally:
        site.lab.revive("slurmdbd")
    wait_until(lambda: site.billed().get("nlp", 0) and site.billed().get("vision", 0), 30, "accounted")
    wait_until(lambda: finished_in_accounting(site, 2), 30)
    site.stop()
    site.start()
    for tenant, billed in site.billed().items():
        assert site.had()[tenant] == pytest.approx(billed, rel=0.001), tenant


def finished_in_accounting(site: Site, jobs: int) -> bool:
    """True where accounting knows the ends of all."""
    ids = ",".join(job.label for job in site.jobs)
    out = site.lab.run("sacct", "-n", "-P", "-X", "-j", ids, "-o", "State").stdout
    return out.split().count("COMPLETED") == jobs
