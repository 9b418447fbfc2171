"""A hold or a node list is told to be ours or somebody else's, with the daemon running on a real Slurm."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from slurm_fair.lab import Lab
from tests.slurm.harness import Job, Site, stays, wait_until

pytestmark = pytest.mark.slurm
LEASE = {"term": 6, "grace": 3}


@pytest.mark.parametrize("switching", [False, True])
@pytest.mark.parametrize("by", ["games", None])
def test_a_begin_time_takes_the_place_of_a_submissions_hold_so_that_a_later_hold_wins(
    new_site: Callable[..., Site], by: str | None, switching: bool
) -> None:
    site = new_site("hold", {"term": 6 if switching else 30, "grace": 5}).start()
    running = site.submit(24, manner="deaf").runs()
    if switching:
        site.submit(24, tenant="speech")
        wait_until(lambda: site.events("asked"), 20, "jobs change places")
    job = site.submit(4, tenant="nlp", user="games")
    wait_until(lambda: job.now().priority > 0, 6, "a begin time takes the place of the hold")
    assert job.is_gated()
    job.scontrol("hold", user=by)
    running.cancel()
    stays(lambda: job.now().priority == 0 and job.state == "PENDING", 14)
    assert f"open {job.label}" not in site.said()
    job.scontrol("release", user=by)
    job.runs(40)


def _list_of(lab: Lab, job: Job) -> str:
    return lab.run("squeue", "-h", "-j", job.label, "-O", "ReqNodes:60").stdout.strip()


def _check(site: Site) -> str:
    return site.cli("check", check=False).stdout


def _cure(job: Job) -> str:
    return f"scontrol update JobId={job.label} ReqNodeList="


def test_after_a_lost_journal_every_list_in_doubt_is_named_with_its_cure_until_it_is_gone(
    new_site: Callable[..., Site], scenario_lab: Lab
) -> None:
    site = new_site("begin", LEASE).start()
    ours = site.submit(8, tenant="vision").runs()
    own = site.submit(4, "--nodelist=n2", tenant="speech", stamped=False)
    wait_until(lambda: own.state == "RUNNING", 20)
    pin = _list_of(scenario_lab, ours)
    assert pin, "it runs where the plan said"
    assert "in doubt" not in site.cli("explain", ours.label).stdout
    site.kill()
    for file in site.storage.glob("journal.db*"):
        file.unlink()
    site.start()
    named = site.said().split("a new ledger begins")[-1]
    assert f"job {ours.label} of root: {pin}" in named
    assert f"job {own.label} of root: n2" in named
    assert "scontrol update JobId=N ReqNodeList=" in named
    for job in (ours, own):
        assert _cure(job) in site.cli("explain", job.label).stdout
        assert f"job {job.label} of root" in _check(site)
    later = site.submit(4, "--nodelist=n2", tenant="nlp")
    later.waits()
    assert f"job {later.label} of" not in _check(site), "this journal saw it come"
    ours.scontrol("requeue")
    wait_until(lambda: ours.now().restarts == 1, 20)
    site.ticks_pass(2)
    assert site.stop() == 0
    site.start()
    assert site.said().count("the journal began after these jobs") == 2, "said at each start"
    assert _cure(ours) in site.cli("explain", ours.label).stdout, "also after its requeue"
    site.stop()
    wait_until(lambda: ours.state in ("PENDING", "RUNNING"), 20)
    if ours.state == "RUNNING":
        ours.scontrol("requeue")
        wait_until(lambda: ours.state == "PENDING", 20)
    ours.update("reqnodelist=")
    site.start()
    assert _cure(ours) not in site.cli("explain", ours.label).stdout
    assert _cure(own) in site.cli("explain", own.label).stdout


def test_a_list_in_doubt_is_named_also_on_a_job_that_left_the_scope_meanwhile(
    new_site: Callable[..., Site], scenario_lab: Lab
) -> None:
    site = new_site("begin", LEASE).start()
    ours = site.submit(8, tenant="vision").runs()
    pin = _list_of(scenario_lab, ours)
    foreign = site.submit(1, "-p", "other", "--nodelist=n3", gated=False, stamped=False).label
    site.kill()
    for file in site.storage.glob("journal.db*"):
        file.unlink()
    site.write_config("[tenants]\nweights = {}\n")
    config = site.config.read_text().replace("[scope]\n", '[scope]\naccounts = ["nlp"]\n')
    site.config.write_text(config)
    site.start()
    named = site.said().split("a new ledger begins")[-1]
    assert f"job {ours.label} of root: {pin}" in named
    assert f"job {foreign} of" not in named, "it never was ours"
    assert f"job {ours.label} of root" in _check(site)


def test_a_list_of_ours_that_nobody_alive_takes_away_is_named(
    new_site: Callable[..., Site], scenario_lab: Lab
) -> None:
    site = new_site("begin", LEASE).start()
    job = site.submit(8).runs()
    pin = _list_of(scenario_lab, job)
    assert "until they end" in site.cli("fail-open").stdout + site.said()
    wait_until(lambda: site.process is not None and site.process.poll() is not None, 20)
    scenario_lab.run("scontrol", "update", f"nodename={pin}", "state=drain", "reason=test")
    try:
        job.scontrol("requeue")
        wait_until(lambda: job.state == "PENDING" and job.now().restarts == 1, 20)
        assert _list_of(scenario_lab, job) == pin
        found = _check(site)
        assert f"no daemon takes it away: job {job.label}" in found
        assert "ReqNodeList=" in found
        assert _cure(job) in site.cli("explain", job.label).stdout
        job.update("reqnodelist=")
        assert "no daemon takes it away" not in _check(site)
    finally:
        scenario_lab.run("scontrol", "update", f"nodename={pin}", "state=resume")


@pytest.mark.parametrize("before", [False, True])
def test_a_job_whose_list_reaches_beyond_the_managed_nodes_is_never_moved(
    new_site: Callable[..., Site], scenario_lab: Lab, before: bool
) -> None:
    site = new_site("begin", LEASE)
    if not before:
        site.start()
    beyond = site.submit(8, "-N", "2", "--nodelist=n1,n3", tenant="nlp", stamped=before)
    scenario_lab.run("scontrol", "update", "partitionname=gpu", "nodes=n1,n2")
    try:
        if before:
            site.start()
        others = [site.submit(8, tenant=tenant) for tenant in ("vision", "speech")]
        others[0].runs(30)
        others[1].runs(30)
        site.ticks_pass(3)
        assert _list_of(scenario_lab, beyond) == "n[1,3]"
        assert site.planned(beyond) == []
        told = site.cli("explain", beyond.label).stdout
        assert "it names a node in its --nodelist that is not managed; plain Slurm schedules it" in told
        wait_until(lambda: beyond.now().reason == "BadConstraints", 30, "Slurm itself holds it")
        assert f"job {beyond.label} of" not in site.said(), "a list of ours never reaches beyond our nodes"
    finally:
        scenario_lab.run("scontrol", "update", "partitionname=gpu", "nodes=n1,n2,n3")
    beyond.scontrol("release")
    beyond.ends("RUNNING", 60)
    assert _list_of(scenario_lab, beyond) == "n[1,3]"


def test_nothing_is_said_of_lists_where_nothing_was_lost(new_site: Callable[..., Site]) -> None:
    site = new_site("begin", LEASE).start()
    job = site.submit(4, "--nodelist=n2").runs()
    stays(lambda: "the journal began after" not in site.said(), 3)
    assert site.cli("explain", job.label).stdout
    assert "no job carries a node list that nobody takes away" in _check(site)
