"""Values for tests of the journal: small clusters with quiet defaults."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from slurm_fair.model import (
    Action,
    Event,
    Explanation,
    JobAccounts,
    JobTable,
    Leases,
    LeaseTerms,
    Ledger,
    NodeTable,
    Outcome,
    PartitionTable,
    Placement,
    Plan,
    Result,
    Retries,
    Snapshot,
    Standing,
    TenantAccounts,
    TenantTable,
    TickRecord,
    Verb,
    pack_keys,
)
from slurm_fair.model.columns import Floats, Ints
from slurm_fair.model.mark import Mark
from slurm_fair.store import Intent, Reader, SqliteJournal, open_journal


def unconcluded(reader: Reader) -> tuple[Intent, ...]:
    """Acts whose end nobody wrote down."""
    return tuple(act for act in reader.intents() if act.result is None)


def keys(count: int) -> Ints:
    """Keys of plain jobs 1..count."""
    return pack_keys(np.arange(1, count + 1), np.full(count, -1))


def jobs(count: int, time: float = 1000.0) -> JobTable:
    """Jobs of four GPUs, every second one running."""
    table = {
        field.name: np.zeros(count, dtype=getattr(JobTable.none(), field.name).dtype)
        for field in fields(JobTable)
    }
    running = np.arange(count) % 2
    table |= {"key": keys(count), "record": np.arange(1, count + 1), "gpus": np.full(count, 4)}
    table |= {"usual_gpus": np.full(count, 4)}
    table |= {"tenant": np.arange(count) % 2, "state": running.astype(np.int8), "weight": np.ones(count)}
    table |= {"gpu_weight": np.ones(count)}
    table |= {"start": np.where(running, time, 0.0), "time_limit_seconds": np.full(count, np.inf)}
    return JobTable(**table)


def snapshot(count: int = 4, time: float = 1000.0) -> Snapshot:
    """Two nodes, two tenants."""
    two = np.full(2, 8)
    none = np.zeros(2, dtype=np.int64)
    nodes = NodeTable(
        ("n1", "n2"), two, none, none, two, none, two, none, np.array([True, False]), ("", "DRAIN")
    )
    table = jobs(count, time)
    held = np.flatnonzero(table.state)
    return Snapshot(
        time=time,
        cluster="lab",
        nodes=nodes,
        partitions=PartitionTable(("gpu",), np.array([True]), np.ones((1, 2), dtype=bool)),
        tenants=TenantTable(("chem", "phys"), np.array([1.0, 3.0])),
        users=("ann", "bob"),
        gpu_types=("a100",),
        jobs=table,
        held=Placement(held, np.zeros(len(held), dtype=np.int64), np.full(len(held), 4)),
        wanted=Placement.none(),
        barred=Placement.none(),
        reasons=("Resources",) * count,
    )


def plan(count: int = 4) -> Plan:
    return Plan(
        verdict=np.zeros(count, dtype=np.int8),
        places=Placement.none(),
        why=Explanation(
            reason=np.zeros(count, dtype=np.int64),
            rank=np.arange(count),
            score=np.where(np.arange(count) % 2, np.nan, 0.5),
            reasons=("others are owed more",),
        ),
        memory={"window": 3, "seen": {7: 1.5}},
    )


def standing(tick: int = 1, count: int = 4, time: float = 1000.0) -> Standing:
    """Accounts that grow with the tick."""
    floats: Floats = np.arange(count, dtype=np.float64) * 1.5 + tick
    ints = np.zeros(count, dtype=np.int64)
    accounts = JobAccounts(
        keys(count), floats, floats, ints, np.arange(count) % 2, ints + 4, floats, floats, floats, floats,
        floats, np.where(np.arange(count) % 2, time, 0.0), floats, np.ones(count, dtype=bool),
        np.ones(count, dtype=bool), np.ones(count), np.where(np.arange(count) % 2, 4, 0),
    )  # fmt: skip
    two = np.array([1.0, 3.0])
    tenants = TenantAccounts(("chem", "phys"), two, two * tick, two * 2, two * 3, two)
    ledger = Ledger(time, 900.0, 8.0, tenants, accounts)
    return Standing(ledger, Leases.none(), tick, {"cursor": [1, 2]}, {5: 1.0}, Retries({9: (2.0, 3)}))


def action(number: int = 1, verb: Verb = Verb.OPEN) -> Action:
    """One act on job `number`."""
    return Action(verb, int(keys(number)[-1]), number, 10.0, 0, ("n1", "n2"), 99.0, why="it is its turn")


def outcome(number: int = 1, result: Result = Result.DONE) -> Outcome:
    """The outcome of an act."""
    return Outcome(action(number), result, "as asked", 0.25)


def event(time: float = 1000.0, kind: str = "started", job: int = 1, /, **detail: Any) -> Event:
    """Something that happened to one job."""
    return Event(time, kind, int(keys(job)[-1]), "phys", 4, detail)


def tick(number: int = 1, count: int = 4, time: float = 1000.0, **changes: Any) -> TickRecord:
    content: dict[str, Any] = {
        "number": number, "time": time, "policy": "astraea", "settings": {"share": "quota"},
        "terms": LeaseTerms(), "seed": 7, "snapshot": snapshot(count, time), "plan": plan(count),
        "outcomes": (outcome(),), "events": (event(time),), "seconds": {"observe": 0.1},
    }  # fmt: skip
    return TickRecord(**(content | changes))


def run_ticks(journal: SqliteJournal, first: int, last: int, step_seconds: float = 10.0) -> None:
    for number in range(first, last + 1):
        time = 1000.0 + step_seconds * number
        journal.append(tick(number, time=time), standing(number, time=time))


def mark(number: int = 1, whole_record: bool = False) -> Mark:
    """A gate on job `number`."""
    return Mark(int(keys(number)[-1]), number, whole_record, 10.0, 0, float("inf"), False, 20.0, "n[1-2]")


def same(one: Any, other: Any) -> bool:
    """Equality that looks into arrays, takes nan for nan and minds types."""
    if isinstance(one, np.ndarray):
        return (
            isinstance(other, np.ndarray)
            and one.dtype == other.dtype
            and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
        )
    if type(one) is not type(other):
        return False
    if is_dataclass(one):
        return all(same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other or (one != one and other != other))


def fill(path: Path) -> None:
    """A new journal with a little of everything in it."""
    with open_journal(path) as journal:
        for number in range(1, 8):
            journal.append(tick(number, count=60, time=100.0 * number), standing(number))
            ids = journal.intend([action(number)], float(number))
            journal.conclude(ids, [outcome(number)], number + 0.5)
        journal.intend([action(9)], 9.0)
        journal.set_marks([mark(number) for number in range(1, 20)])
