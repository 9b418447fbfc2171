"""One job that cannot be placed stops nobody's turns, and nobody is stopped for nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from slurm_fair.lab import Lab
from slurm_fair.reconcile.for_whom import NEEDED_NO_MORE
from tests.slurm.harness import Job, Site, stays, wait_until

pytestmark = pytest.mark.slurm
LEASE = {"term": 6, "grace": 3}


@pytest.fixture
def drained(scenario_lab: Lab) -> Iterator[str]:
    """A managed node that takes no new work until the test is over."""
    scenario_lab.run("scontrol", "update", "nodename=n3", "state=drain", "reason=test")
    yield "n3"
    scenario_lab.run("scontrol", "update", "nodename=n3", "state=resume")
    scenario_lab.wait_idle_nodes()


def _ran(jobs: list[Job]) -> bool:
    return all(len(job.starts()) > 0 for job in jobs)


def test_turns_go_on_beside_a_plain_job_that_names_a_drained_node(
    new_site: Callable[..., Site], drained: str
) -> None:
    site = new_site("begin", LEASE).start()
    stuck = site.submit(4, f"--nodelist={drained}", tenant="speech", stamped=False)
    first = [site.submit(8, tenant="vision").runs() for _ in range(2)]
    later = [site.submit(8, tenant=tenant) for tenant in ("speech", "nlp", "speech")]
    wait_until(
        lambda: _ran(later), 8 * site.term, "its own tenant's other jobs and another tenant's get turns"
    )
    wait_until(
        lambda: all(len(job.starts()) > 1 for job in (*first, *later[1:2])), 16 * site.term, "and so on"
    )
    assert stuck.state == "PENDING"
    assert not site.planned(stuck)
    told = site.cli("explain", stuck.label).stdout
    assert "the nodes that it may use cannot take its gang now" in told, told


def test_a_job_asked_for_one_that_was_cancelled_goes_on(new_site: Callable[..., Site]) -> None:
    site = new_site("begin", {**LEASE, "grace": 8}).start()
    running = [site.submit(8, tenant="vision", manner="deaf").runs() for _ in range(3)]
    wants = site.submit(8, tenant="nlp")
    wait_until(lambda: site.events("asked"), 4 * site.term, "one of them is asked")
    (asked,) = site.events("asked")
    assert asked.detail["for"] == [wants.label]
    wants.cancel()
    wait_until(lambda: site.events("stays"), 10, "the request is withdrawn")
    assert [event.detail["why"] for event in site.events("stays")] == [NEEDED_NO_MORE]
    stays(lambda: all(job.state == "RUNNING" and job.now().restarts == 0 for job in running), 14)


@pytest.fixture
def reserved_soon(scenario_lab: Lab) -> Iterator[Callable[[str], None]]:
    """Makes a maintenance reservation that begins in three quarters of a minute."""

    def reserve(node: str) -> None:
        scenario_lab.run(
            "scontrol", "create", "reservation", "reservationname=soon", "starttime=now+45", "duration=60",
            f"nodes={node}", "flags=maint,ignore_jobs", "users=root",
        )  # fmt: skip

    yield reserve
    scenario_lab.run("scontrol", "delete", "reservationname=soon", check=False)


def test_a_node_whose_reservation_begins_within_the_lease_gets_nothing_and_holds_nobody_back(
    new_site: Callable[..., Site], reserved_soon: Callable[[str], None]
) -> None:
    reserved_soon("n3")
    site = new_site("begin", {"term": 60, "grace": 3, "align": "rolling"}).start()
    stuck = site.submit(4, "--nodelist=n3", tenant="speech")
    others = [site.submit(8, tenant=tenant) for tenant in ("speech", "vision", "nlp")]
    wait_until(lambda: sum(job.state == "RUNNING" for job in others) == 2, 20, "the other two nodes are used")
    stays(lambda: not site.planned(stuck), 5)
    granted = [node for event in site.events("granted") for node in event.detail["nodes"]]
    assert "n3" not in granted, "the lease would end after the reservation has begun"
