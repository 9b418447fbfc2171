"""A board for tests of what people are told: one full cluster, three tenants, jobs of every kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from slurm_fair.model import (
    Blocked,
    Explanation,
    JobState,
    LeasePhase,
    Leases,
    LeaseTerms,
    LeftAlone,
    Placement,
    Plan,
    Snapshot,
    Standing,
    TickRecord,
    Verdict,
)
from tests.support.accounts import Account, ledger
from tests.support.builders import job, lease, leases, snapshot

NOW = 1_700_000_000.0
TERM = 900.0
ENDS = NOW + 26
RUNS = JobState.RUNNING


def scene() -> tuple[Snapshot, Leases]:
    """32 GPUs: 1 and 2 save when asked, 3 cannot, 4 has been asked; 10, 11, 12 wait, 20_* are an array."""
    seen = snapshot(
        time=NOW,
        nodes={f"n{number}": 8 for number in range(1, 5)},
        weights={"vision": 1.0, "speech": 1.0, "nlp": 2.0},
        left_alone=[LeftAlone("99", "asks for no GPU"), LeftAlone("98", "has a row too short", "mel", True)],
        jobs=[
            job(1, gpus=8, tenant="vision", state=RUNS, start=NOW - 900, on={"n1": 8}),
            job(2, gpus=8, tenant="vision", state=RUNS, start=NOW - 900, on={"n2": 8}),
            job(
                3, gpus=8, tenant="nlp", state=RUNS, start=NOW - 900, on={"n3": 8}, checkpoints=False,
                time_limit_seconds=2700.0,
            ),
            job(4, gpus=8, tenant="vision", state=RUNS, start=NOW - 900, on={"n4": 8}),
            job(9, gpus=8, tenant="speech", user="sue", submit=NOW - 60),
            job(10, gpus=32, tenant="speech", user="sue", submit=NOW - 60),
            job(11, gpus=2, tenant="vision", submit=NOW - 50),
            job(12, gpus=2, tenant="vision", blocked=Blocked.USER_HOLD, reason="JobHeldUser"),
            *(job(20, task=task, gpus=1, tenant="nlp", user="ned", submit=NOW - 40) for task in (1, 2, 3)),
        ],
    )  # fmt: skip
    held = leases(
        lease(1, {"n1": 8}, start=NOW - 900, granted=NOW - 874, end=ENDS),
        lease(2, {"n2": 8}, start=NOW - 900, granted=NOW - 874, end=ENDS),
        lease(3, {"n3": 8}, start=NOW - 900, granted=NOW - 874, end=ENDS),
        lease(
            4, {"n4": 8}, start=NOW - 900, granted=NOW - 900, end=NOW - 4, phase=LeasePhase.REVOKING, asked=NOW - 4
        ),
        lease(9, {"n4": 8}, granted=NOW - 4, end=NOW + TERM, phase=LeasePhase.GRANTED),
    )  # fmt: skip
    return seen, held


def plan(seen: Snapshot, verdict: Sequence[int], reasons: Sequence[str], **columns: Any) -> Plan:
    """A plan for each job of it; without more said, everybody's reason is the first and nobody waits."""
    rows = len(seen.jobs)
    usual: dict[str, Any] = {
        "reason": np.zeros(rows, dtype=np.int64),
        "rank": np.full(rows, -1),
        "score": np.full(rows, np.nan),
    }
    of_plan: dict[str, Any] = {"places": Placement.none()}
    of_plan |= {name: columns.pop(name) for name in ("places", "memory", "note") if name in columns}
    why = Explanation(reasons=tuple(reasons), **(usual | columns))
    return Plan(np.array(verdict, dtype=np.int8), why=why, **of_plan)


def tick(seen: Snapshot, planned: Plan, **changes: Any) -> TickRecord:
    """The record of a seventh tick."""
    usual: dict[str, Any] = {
        "number": 7, "time": seen.time, "policy": "astraea", "settings": {}, "terms": LeaseTerms(term=TERM),
        "seed": 0, "snapshot": seen, "plan": planned, "outcomes": (), "events": (),
        "seconds": {"observe": 0.1},
    }  # fmt: skip
    return TickRecord(**(usual | changes))


def recorded(**changes: Any) -> tuple[TickRecord, Standing]:
    """One tick of it: jobs 10, 11 and the array wait in this order."""
    seen, held = scene()
    rank = np.full(len(seen.jobs), -1)
    waits = np.array([5, 6, 8, 9, 10])
    rank[waits] = np.arange(len(waits))
    verdict = [3, 3, 3, 5, 3, 0, 0, 5, 0, 0, 0]
    assert verdict[5] == Verdict.WAIT
    reasons = (
        "its lease is not over",
        "it is giving its GPUs back",
        "its GPUs are promised: it starts when its GPUs, CPUs and memory are free",
        "others are owed more",
        "its owner holds it",
    )
    planned = plan(seen, verdict, reasons, reason=np.array([0, 0, 0, 1, 2, 3, 3, 4, 3, 3, 3]), rank=rank)
    books = ledger(
        seen,
        {
            "vision": Account(had=8800, owed=8000),
            "speech": Account(had=0, owed=4000),
            "nlp": Account(had=4000, owed=8000),
        },
        {"11": Account(had=80, owed=100, ran=40)},
    )
    return tick(seen, planned, **changes), Standing(books, held, 7)
