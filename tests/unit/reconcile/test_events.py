"""Events say whose job it is, how many GPUs it is about, and when."""

from __future__ import annotations

from slurm_fair.model import Event, EventKind
from slurm_fair.reconcile.events import job_event, lease_event
from tests.support.builders import job, lease, leases, snapshot

SHOWN = snapshot(time=50.0, jobs=[job(1, gpus=2, tenant="b"), job(2, gpus=3, tenant="a")])
HELD = leases(lease(2, {"n1": 4}), lease(9, {"n1": 1}))
KEY, GONE = HELD.key.tolist()


def test_an_event_of_a_job_is_its_tenants_and_of_its_gpus() -> None:
    event = job_event(7.0, EventKind.ASKED, SHOWN, 1, waits=True)
    assert event == Event(7.0, EventKind.ASKED, KEY, "a", 3, {"waits": True})


def test_an_event_of_a_lease_is_of_the_gpus_of_the_lease_at_the_time_of_the_look() -> None:
    for row, tenant in enumerate("ba"):
        event = lease_event(EventKind.ASKED, HELD, 0, SHOWN, row)
        assert event == Event(50.0, EventKind.ASKED, KEY, tenant, 4, {})


def test_a_job_that_is_gone_is_nobodys() -> None:
    assert lease_event(EventKind.ASKED, HELD, 1, SHOWN, -1) == Event(50.0, EventKind.ASKED, GONE, "", 1, {})
