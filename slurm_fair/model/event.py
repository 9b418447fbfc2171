"""Events of jobs and of the cluster, and the closed list of their kinds."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

_NOTHING: Mapping[str, Any] = {}


class EventKind(StrEnum):
    """Every kind of event that the controller, the simulator and the accounting import write."""

    # What Slurm did with a job, or its user.
    SUBMITTED = "submitted"
    STARTED = "started"  # one of its runs
    STOPPED = "stopped"  # one of its runs, while the job lives on
    FINISHED = "finished"
    # What became of its lease.
    GRANTED = "granted"
    ADOPTED = "adopted"  # a job that already ran gets its first lease
    RENEWED = "renewed"
    REVOKED = "revoked"
    # A revoked lease goes on: the job could not be stopped, or nobody needs its GPUs any more.
    STAYS = "stays"
    RETURNED = "returned"  # the job holds the GPUs of its lease no more
    TAKEN_BACK = "takenback"  # a promise ended before the job started
    # What the controller did.
    OPENED = "opened"  # the gate
    ASKED = "asked"  # to save
    REQUEUED = "requeued"
    # Of the cluster, not of a job.
    CAPACITY = "capacity"  # from now on M, the number of GPUs, is what the event says


class Event(NamedTuple):
    """Something that happened to a job; the reports and the export are made of these."""

    time: float
    kind: EventKind | str  # a word that is no EventKind comes from a file of another version
    key: int
    tenant: str
    gpus: int
    detail: Mapping[str, Any] = _NOTHING
