"""The report on leases, with their ends."""

from __future__ import annotations

import pytest

from slurm_fair_accounting import (
    EventFile,
    Period,
)
from tests.support import months
from tests.support.asked_reports import FEBRUARY, WHOLE, rows
from tests.support.months import DAY, FEB_1, T

pytestmark = pytest.mark.usefixtures("utc")


def test_leases_are_told_with_their_ends() -> None:
    told = [
        (row["job"], row["lease"], row["nodes"], row["granted"] - T, row["start"] and row["start"] - T,
         row["end"] and row["end"] - T, row["ended_by"], row["start_delay_seconds"])
        for row in rows("leases", Period(FEB_1, T + DAY))
    ]  # fmt: skip
    assert told == [
        ("17", 1, "n1,n2", 10, 30, 900, "renewed", 20),
        ("6_5", 1, "n1", 70, None, 130, "takenback", None),
        ("17", 2, "n1,n2", 900, 900, 1830, "revoked", 0),
        ("17", 1, "n3", 3600, 3605, 10805, "finished", 5),
    ]


def test_a_lease_that_reaches_over_the_period_keeps_its_nodes_and_its_end() -> None:
    (lease,) = rows("leases", Period(T + 800, T + 1000))
    assert (lease["nodes"], lease["end"], lease["ended_by"]) == ("n1,n2", T + 1830, "revoked")


def test_a_lease_is_its_users_in_a_period_after_its_jobs_submission() -> None:
    first, *others = months.revoked_once()  # a submission and an end alone tell it
    events = [first, *(each._replace(detail={**each.detail, "user": ""}) for each in others)]
    period, source = Period(T + 800, T + 1000), EventFile(events, [])
    assert [lease["user"] for lease in rows("leases", period, source)] == ["ann"]
    assert rows("leases", period, source, user="ann") == rows("leases", period, source)


def test_each_lease_of_an_elastic_job_has_the_gpus_of_its_run() -> None:
    events = [
        months.event(T, "submitted", gpus=4),
        months.event(T + 10, "granted", gpus=4, nodes=["n1"], number=1),
        months.event(T + 30, "started", gpus=8, nodes=["n1"], restarts=0),
        months.event(T + 900, "renewed", gpus=8, number=2),
        months.event(T + 1800, "stopped", gpus=8, start=T + 30, had=1.0, restarts=0),
        months.event(T + 2000, "started", gpus=2, nodes=["n2"], restarts=1),
        months.event(T + 2000.5, "granted", gpus=4, nodes=["n2"], number=1),
        months.event(T + 3000, "granted", "6", gpus=4, nodes=["n1"], number=1),
        months.event(T + 3000, "finished", gpus=4, had=1.0, owed=1.0, waited=1.0, ran=1.0, submit=T),
    ]
    assert [lease["gpus"] for lease in rows("leases", FEBRUARY, EventFile(events, []))] == [8, 8, 2, 4]


def test_a_lease_that_slurm_would_not_end_is_told_as_renewed_and_its_job_as_never_preempted() -> None:
    events = [
        months.event(T, "submitted"),
        months.event(T + 10, "granted", nodes=["n1"], until=T + 900, number=1),
        months.event(T + 30, "started", nodes=["n1"], restarts=0),
        months.event(T + 900, "revoked", why="others are owed more", number=1),
        months.event(T + 900, "stays", why="Requested operation is presently disabled", until=T + 1800, number=2),
        months.event(T + 1000, "stopped", start=T + 30, had=3880.0, restarts=0),
        months.event(T + 1000, "returned", why="requeued by somebody else", number=2),
        months.event(T + 1100, "finished", had=3880.0, owed=3880.0, waited=130.0, ran=970.0, rho=1.0, restarts=1,
                     submit=T, end=T + 1100),
    ]  # fmt: skip
    source = EventFile(events, [])
    told = [(row["lease"], row["end"] - T, row["ended_by"]) for row in rows("leases", FEBRUARY, source)]
    assert told == [(1, 900, "renewed"), (2, 1000, "stopped")]
    assert [row["preemptions"] for row in rows("tenants", FEBRUARY, source)] == [0]


def test_each_lease_has_the_reason_of_its_grant_and_one_that_was_not_renewed_that_of_its_end() -> None:
    events = [
        months.event(T, "submitted"),
        months.event(T + 10, "granted", nodes=["n1"], until=T + 900, number=1, why="it is nearly done"),
        months.event(T + 30, "started", nodes=["n1"], restarts=0),
        months.event(T + 900, "renewed", until=T + 1800, number=2, why="its tenant has less than its quota"),
        months.event(T + 1800, "revoked", why="another is nearly done", number=2),
        months.event(T + 1810, "returned", why="revoked", number=2),
    ]
    found = [
        (row["lease"], row["why"], row["why_ended"])
        for row in rows("leases", FEBRUARY, EventFile(events, []))
    ]
    assert found == [
        (1, "it is nearly done", ""),
        (2, "its tenant has less than its quota", "another is nearly done"),
    ]


def test_an_open_lease_has_no_end() -> None:
    last = rows("leases", WHOLE)[-1]
    assert (last["job"], last["lease"], last["end"], last["ended_by"]) == ("40", 2, None, "")
