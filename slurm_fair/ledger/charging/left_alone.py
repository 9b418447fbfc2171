"""Jobs that are left alone are charged like managed ones: for the ledger they stand in the same table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slurm_fair.model import Aside, Ledger, Placement, Snapshot, Told
from slurm_fair.model.columns import Ints, find, ranks, take_or


def seen_from(ledger: Ledger, snapshot: Snapshot) -> Snapshot:
    """The snapshot as this ledger takes it in.

    A job that holds GPUs only because of what others take beside it is charged from the last look on at which it
    did not, and not from its start.
    """
    aside = snapshot.aside
    if aside is not None and aside.jointly is not None:
        known = find(ledger.jobs.key, aside.jobs.key)
        since = np.where(known < 0, ledger.time, take_or(ledger.jobs.run_start, known, 0.0))
        start = np.where(aside.jointly, np.maximum(aside.jobs.start, since), aside.jobs.start)
        snapshot = replace(snapshot, aside=replace(aside, jobs=aside.jobs.with_columns(start=start)))
    return with_those_left_alone(snapshot)


def with_those_left_alone(snapshot: Snapshot) -> Snapshot:
    """The snapshot in whose table whoever holds GPUs of managed nodes is one of the jobs."""
    aside = snapshot.aside
    if aside is None or not len(aside.jobs):
        return snapshot
    jobs = snapshot.jobs.joined(aside.jobs)
    order = jobs.key.argsort(kind="stable")
    reasons = snapshot.reasons + aside.reasons
    return replace(
        snapshot,
        jobs=jobs.take(order),
        held=_held(snapshot, aside, order),
        reasons=tuple(reasons[row] for row in order.tolist()),
        told=None if snapshot.told is None else _told(snapshot.told, len(aside.jobs), order),
        sizes=None,
        speeds=None,
    )


def _held(snapshot: Snapshot, aside: Aside, order: Ints) -> Placement:
    others = aside.held.with_columns(row=aside.held.row + len(snapshot.jobs))
    return snapshot.held.plus(others).renumber(ranks(len(order), order))


def _told(told: Told, more: int, order: Ints) -> Told:
    """A table that says nothing of them; `take` leaves tables of two dimensions in step."""
    nothing = Told.nothing(more, told.rate.shape[1])
    return told.joined(nothing).take(order)
