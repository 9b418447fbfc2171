"""Jobs that are left alone are charged like managed ones: for the ledger they stand in the same table."""

from __future__ import annotations

from dataclasses import replace

from slurm_fair.model import Aside, Placement, Snapshot, Told
from slurm_fair.model.columns import Ints, ranks


def with_those_left_alone(snapshot: Snapshot) -> Snapshot:
    """The snapshot as the ledger takes it in: whoever holds GPUs of managed nodes is one of its jobs."""
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
