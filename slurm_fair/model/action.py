"""Actions on jobs, and their outcomes."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Verb(Enum):
    """The whole list: nothing else is ever done to anybody's job."""

    CLOSE = "close"  # keep it waiting: set or renew its gate, take node lists of ours away
    OPEN = "open"  # let Slurm start it, on exactly these nodes
    ASK = "ask"  # ask the running job to checkpoint
    REQUEUE = "requeue"  # give its GPUs back; a job that ended meanwhile stays ended
    FREE = "free"  # undo everything of ours: plain Slurm from here on


# Why a job that was asked is requeued, as events keep it.
ANSWERED = "it answered"
NO_ANSWER = "no answer within the grace"
STOPS = (Verb.ASK, Verb.REQUEUE)  # acts on jobs that run


class Result(Enum):
    """An act has three ends; UNKNOWN is settled only by looking again."""

    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class Untried(Enum):
    """The reason why an act was refused before anything was sent to Slurm."""

    UNSEEN = "not tried"  # nobody could see its job first
    TOO_LATE = "not tried: the look is too old by now"
    DRY_RUN = "dry run"  # nobody may act


class Action(NamedTuple):
    """One act on one job, with the identity that it was decided for."""

    verb: Verb
    key: int
    record: int  # Slurm's record id; with `whole_record` the act is on the unsplit array
    submit: float
    restarts: int
    nodes: tuple[str, ...] = ()
    until: float = 0.0
    whole_record: bool = False
    why: str = ""
    gpus: int = 0  # that an elastic job is to start with; 0 = its request stays as it is


class Outcome(NamedTuple):
    """The result of one action, and why."""

    action: Action
    result: Result
    detail: str = ""
    seconds: float = 0.0
    later: bool = False  # not refused for good: the next tick may try again
    untried: Untried | None = None  # None = it was tried

    @property
    def refused_for_good(self) -> bool:
        """True if trying again soon is of no use."""
        return self.result is Result.REFUSED and not self.later
