"""A small month of two tenants, for tests of the reports; all times in UTC."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from slurm_fair.model import Event, JobAccounts, Leases, Ledger, Standing, TenantAccounts
from slurm_fair.model.ids import parse_label
from slurm_fair.model.tenant_moment import TenantMoment
from slurm_fair_accounting import EventFile

DAY = 86400.0
FEB_1 = 1769904000.0  # 2026-02-01T00:00:00
MAR_1 = FEB_1 + 28 * DAY
NOW = MAR_1 + 9 * DAY + 12 * 3600  # 2026-03-10T12:00:00
T = FEB_1 + 9 * DAY + 22 * 3600  # 2026-02-10T22:00:00, two hours before midnight


def event(time: float, kind: str, job: str = "17", gpus: int = 4, **detail: Any) -> Event:
    """Something that happened to a job of phys, or of chem when its user is bob."""
    user = detail.setdefault("user", "ann")
    return Event(time, kind, parse_label(job), "chem" if user == "bob" else "phys", gpus, detail)


def revoked_once() -> list[Event]:
    """A job of four GPUs that ran 30 minutes, lost its lease, and ran two hours more across midnight."""
    return [
        event(T, "submitted"),
        event(T + 10, "granted", nodes=["n1", "n2"], until=T + 900, number=1),
        event(T + 30, "started", nodes=["n1", "n2"], restarts=0),
        event(T + 900, "renewed", until=T + 1800, number=2),
        event(T + 1800, "revoked", why="others are owed more", number=2, held_seconds=1770.0),
        event(T + 1800, "asked", why="revoked", nodes=[]),
        event(T + 1830, "stopped", start=T + 30, had=7200.0, restarts=0),
        event(T + 1840, "returned", why="revoked", number=2, held_seconds=1810.0),
        event(T + 3600, "granted", nodes=["n3"], until=T + 4500, number=1),
        event(T + 3605, "started", nodes=["n3"], restarts=1),
        event(T + 10805, "finished", had=36000.0, owed=40000.0, waited=1805.0, ran=9000.0, rho=0.9,
              restarts=1, submit=T, end=T + 10805),
        event(T + 10810, "returned", why="its job ended", number=1, held_seconds=7200.0),
    ]  # fmt: skip


def hostile() -> list[Event]:
    """An array task whose user calls himself an escape sequence; it never ran."""
    return [
        event(T + 60, "submitted", "6_5", 8, user="bob"),
        event(T + 70, "granted", "6_5", 8, user="bob", nodes=["n1"], until=T + 970, number=1),
        event(T + 130, "takenback", "6_5", 8, user="bob", why="Slurm did not start it: Resources"),
        event(T + 200, "finished", "6_5", 8, user="bob", had=0.0, owed=0.0, waited=140.0, ran=0.0, rho=1.0,
              restarts=0, submit=T + 60, end=T + 200, state="\x1b[31mFAILED|\u202e=1"),
    ]  # fmt: skip


def lives() -> list[Event]:
    """A job that was adopted before March and still runs."""
    start = MAR_1 - 3600
    return [
        event(start - 100, "submitted", "40", 2, user="bob"),
        event(start, "started", "40", 2, user="bob", nodes=["n4"], restarts=0),
        event(start + 20, "adopted", "40", 2, user="bob", until=start + 920, start=start),
        event(start + 920, "renewed", "40", 2, user="bob", until=start + 1820, number=2),
    ]


def events() -> list[Event]:
    """All of it, in the order of time."""
    return sorted([*revoked_once(), *hostile(), *lives()], key=lambda event: event.time)


def moments(times: Iterable[float] = (FEB_1 + 30, T + 3600, MAR_1 - 20, NOW - 40)) -> list[TenantMoment]:
    """Accounts that grow linearly from the beginning of February; phys is owed three times as much."""
    return [
        TenantMoment(time, name, weight, had * since, weight * since, 0.5 * weight * since, 4.0, 8.0)
        for time in times
        for name, weight, had in (("chem", 1.0, 0.25), ("phys", 3.0, 1.5))
        for since in [time - FEB_1]
    ]


def standing(time: float = NOW) -> Standing:
    """The ledger now: job 40 runs, job 41 waits, job 42 is held by its owner."""
    start, ints, floats = MAR_1 - 3600, np.zeros(3, dtype=np.int64), np.zeros(3)
    jobs = JobAccounts(
        key=np.array([parse_label(job) for job in ("40", "41", "42")]),
        submit=np.array([start - 100, NOW - 600, NOW - 500]),
        incarnation=floats,
        restarts=ints,
        tenant=np.array([0, 1, 1]),
        gpus=np.array([2, 4, 1]),
        weight=floats + 1.0,
        had=np.array([2.0 * (time - start), 0.0, 0.0]),
        owed=np.array([0.0, 300.0, 0.0]),
        waited=np.array([100.0, 600.0, 0.0]),
        ran=np.array([time - start, 0.0, 0.0]),
        run_start=np.array([start, 0.0, 0.0]),
        run_had=floats,
        active=np.array([True, True, False]),
        waits=np.array([True, True, False]),
        gpu_weight=np.ones(3),
        run_gpus=np.array([2, 0, 0]),
    )
    rows = moments([time])
    columns = ("weight", "had", "owed_quota", "owed_demand")
    weight, had, quota, demand = (np.array([getattr(row, name) for row in rows]) for name in columns)
    names = tuple(row.tenant for row in rows)
    tenants = TenantAccounts(names, weight, had, quota, demand, np.full(2, time))
    return Standing(Ledger(time, FEB_1, 8.0, tenants, jobs), Leases.none(), 9)


class Month(EventFile):
    """The month as a journal would answer, with a ledger."""

    def __init__(self) -> None:
        super().__init__(events(), moments())

    def latest(self) -> Standing:
        return standing()

    def began(self) -> float:
        """The instant at which the ledger began."""
        return FEB_1
