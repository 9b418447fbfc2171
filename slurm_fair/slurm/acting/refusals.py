"""The error texts of Slurm that mean refused; every other text leaves the outcome unknown."""

from __future__ import annotations

from enum import Enum


class Class(Enum):
    """The meaning of an error."""

    GONE = "gone"  # the job is over
    CHANGED = "changed"  # it started, stopped or moved: plan again
    HELD = "held"  # held by somebody
    NEVER = "never"  # this job cannot be treated so, ever
    PLACE = "place"  # the nodes do not do: plan again
    LATER = "later"  # not done, slow down
    RIGHTS = "rights"  # we lack the right: alarm
    BROKEN = "broken"  # authentication or version trouble: stop and alarm
    UNKNOWN = "unknown"  # may have been done


# Numbers and texts are the same in the eight releases 22.05 to 26.05 unless a release is named.
_TEXTS: tuple[tuple[str, Class], ...] = (
    ("Invalid job id specified", Class.GONE),
    ("Job has already finished", Class.GONE),
    ("Job/step already completing or completed", Class.GONE),
    ("Job is no longer pending execution", Class.CHANGED),
    ("Job is pending execution", Class.CHANGED),
    ("Job is not running", Class.CHANGED),
    ("Job can not be altered now", Class.LATER),
    ("the DB index is being set", Class.LATER),  # up to 24.05
    ("Rate limit exceeded", Class.LATER),  # from 23.02
    ("Slurm backup controller in standby mode", Class.LATER),
    ("Unable to contact slurm controller (connect failure)", Class.LATER),
    ("Job is in held state", Class.HELD),
    ("Requested operation is presently disabled", Class.NEVER),
    ("Only batch jobs are accepted or processed", Class.NEVER),
    ("Cannot modify scrontab jobs", Class.NEVER),
    ("Requested operation not supported", Class.NEVER),
    ("Job not heterogeneous job leader", Class.NEVER),
    ("Job resizing not supported for job arrays", Class.NEVER),
    ("Invalid node name specified", Class.PLACE),
    ("Requested nodes not in this partition", Class.PLACE),
    ("Required node not available", Class.PLACE),
    ("Requested nodes are busy", Class.PLACE),
    ("Requested node configuration is not available", Class.PLACE),
    ("Node count specification invalid", Class.PLACE),
    ("Job can not start due to maintenance reservation", Class.PLACE),
    ("Access/permission denied", Class.RIGHTS),
    ("Invalid user id", Class.RIGHTS),
    ("Changes to job priority are not persistent", Class.RIGHTS),
    ("Incompatible versions of client and server code", Class.BROKEN),
    ("Protocol authentication error", Class.BROKEN),
    ("Munge encode failed", Class.BROKEN),
)


def classify(text: str) -> Class:
    """The class of an error text; UNKNOWN unless it is listed.

    A time-out and a dead controller read alike, and what timed out may still be done
    (slurm-facts: dead-reads-like-frozen, slurm-facts: timeout-may-be-done).
    """
    return next((kind for words, kind in _TEXTS if words in text), Class.UNKNOWN)
