"""A plan in the making: what every policy says alike, and room for what it decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from slurm_fair.model import Blocked, JobState, Placement, Plan, Verdict
from slurm_fair.model.columns import Bools, Floats, Ints
from slurm_fair.policy.gang import Sites
from slurm_fair.policy.view import View

OTHERS_FIRST = "others are owed more"
NOT_OVER = "its lease is not over"
PROMISED = "its GPUs are promised: it starts when they are free"
LOSES_WORK = "it would lose work if it were stopped now"
UNUSABLE_NODES = "nobody else can use its GPUs now: its nodes take no new work"

BLOCKED_REASONS: Mapping[Blocked, str] = {
    Blocked.NOT_BLOCKED: "its last lease is still being closed",
    Blocked.USER_HOLD: "its owner holds it",
    Blocked.ADMIN_HOLD: "an admin holds it",
    Blocked.DEPENDENCY: "it waits for another job",
    Blocked.OWN_BEGIN: "its own begin time lies ahead",
    Blocked.ARRAY_LIMIT: "its array's own limit is reached",
    Blocked.LIMIT: "a limit of its association or QOS is reached",
    Blocked.PARTITION: "its partition is down or closed",
    Blocked.SLURM_HOLD: "Slurm holds it after a failed launch",
    Blocked.UNSETTLED: "the outcome of an act on it is not known yet",
    Blocked.IMPOSSIBLE: "it asks for more than the managed nodes can ever give",
    Blocked.SHAPE: "its shape cannot be planned exactly",
    Blocked.BACKOFF: "Slurm did not start it the last time: tried again later",
    Blocked.REQUEUED: "it was requeued a moment ago: Slurm does not start it again yet",
}


class Draft:
    """Verdicts and reasons by row; every row has one from the beginning."""

    def __init__(self, view: View) -> None:
        """What no policy decides: blocked, ending and leased jobs."""
        jobs = view.snapshot.jobs
        self._texts: dict[str, int] = {}
        self._verdict = np.full(len(jobs), Verdict.LEAVE, dtype=np.int8)
        self._reason = np.zeros(len(jobs), dtype=np.int64)
        self.say(np.arange(len(jobs)), Verdict.LEAVE, "it runs without a lease")
        for blocked in np.unique(jobs.blocked[jobs.state == JobState.WAITING]).tolist():
            kept_back = (jobs.state == JobState.WAITING) & (jobs.blocked == blocked)
            self.say(kept_back, Verdict.LEAVE, BLOCKED_REASONS[Blocked(blocked)])
        running = (jobs.state == JobState.RUNNING) & (view.lease_row >= 0)
        self.say(running, Verdict.KEEP, NOT_OVER)
        can_start = (jobs.state == JobState.WAITING) & (jobs.blocked == Blocked.NOT_BLOCKED)
        self.say(view.promised & (can_start | running), Verdict.KEEP, PROMISED)
        self.say(view.revoking, Verdict.LEAVE, "it is giving its GPUs back")
        self.say(jobs.state == JobState.ENDING, Verdict.LEAVE, "it is ending")
        self.say(jobs.state == JobState.SUSPENDED, Verdict.LEAVE, "it is suspended and keeps its GPUs")
        self.say(jobs.state == JobState.DONE, Verdict.LEAVE, "it has ended")
        self.say(view.waiting, Verdict.WAIT, OTHERS_FIRST)
        self.say(view.expired, Verdict.RENEW, "nobody who is owed more can use its GPUs")

    def say(self, rows: Ints | Bools, verdict: Verdict, reason: str) -> None:
        """This verdict for these rows, for this reason."""
        self._verdict[rows] = verdict
        self._reason[rows] = self._texts.setdefault(reason, len(self._texts))

    def finish(self, places: Placement, rank: Ints, score: Floats) -> Plan:
        """The plan, with the reasons that it uses."""
        texts = tuple(self._texts)
        used, reason = np.unique(self._reason, return_inverse=True)
        return Plan(
            verdict=self._verdict,
            reason=reason.astype(np.int64),
            rank=rank,
            score=score,
            places=places,
            reasons=tuple(texts[i] for i in used.tolist()),
        )


def placed(rows: Ints, sites: Sequence[Sites]) -> Placement:
    """The sites of many gangs, one per row, as one placement."""
    count = np.fromiter(map(len, sites), dtype=np.int64, count=len(rows))
    flat = np.fromiter(chain.from_iterable(chain.from_iterable(sites)), dtype=np.int64, count=2 * count.sum())
    row = np.repeat(rows, count)
    order = np.argsort(row, kind="stable")
    return Placement(row[order], flat[0::2][order], flat[1::2][order])
