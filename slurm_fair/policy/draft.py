"""A plan in the making: what every policy says alike, and room for what it decides."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, product
from typing import Any

import numpy as np

from slurm_fair.model import Blocked, JobState, LeasePhase, Placement, Plan, Verdict
from slurm_fair.model.columns import Bools, Floats, Ints, absent
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


_STATES, _BLOCKS = len(JobState), len(Blocked)
_OVER = len(LeasePhase)  # a lease that is over, beside the phases and -1 = no lease


def _nobodys_choice(lease: int, state: JobState, blocked: Blocked) -> tuple[Verdict, str]:
    """What is said of a job that no policy has a say in, and of the others until one has spoken."""
    if lease == _OVER:
        return Verdict.RENEW, "nobody who is owed more can use its GPUs"
    if state is JobState.DONE:
        return Verdict.LEAVE, "it has ended"
    if state is JobState.SUSPENDED:
        return Verdict.LEAVE, "it is suspended and keeps its GPUs"
    if state is JobState.ENDING:
        return Verdict.LEAVE, "it is ending"
    if lease == LeasePhase.REVOKING:
        return Verdict.LEAVE, "it is giving its GPUs back"
    waits = state is JobState.WAITING
    if lease == LeasePhase.GRANTED and not (waits and blocked):
        return Verdict.KEEP, PROMISED
    if waits and not blocked and lease < 0:
        return Verdict.WAIT, OTHERS_FIRST
    if waits:
        return Verdict.LEAVE, BLOCKED_REASONS[blocked]
    return (Verdict.KEEP, NOT_OVER) if lease >= 0 else (Verdict.LEAVE, "it runs without a lease")


# That of every case there is, so that a draft of a hundred thousand jobs begins with two look-ups.
_CASES = [_nobodys_choice(*case) for case in product(range(-1, _OVER + 1), JobState, Blocked)]
_TEXTS = {text: i for i, text in enumerate(dict.fromkeys(text for _, text in _CASES))}
_VERDICT = np.array([verdict for verdict, _ in _CASES], dtype=np.int8)
_REASON = np.array([_TEXTS[text] for _, text in _CASES], dtype=np.int64)


class Draft:
    """Verdicts and reasons by row; every row has one from the beginning."""

    def __init__(self, view: View) -> None:
        """What no policy decides: blocked, ending and leased jobs."""
        jobs = view.snapshot.jobs
        lease = view.lease_phase
        over = view.expired
        if over.nonzero()[0].size:
            lease = np.where(over, _OVER, lease)
        case = ((lease + 1) * _STATES + jobs.state) * _BLOCKS + jobs.blocked
        self._texts = _TEXTS.copy()
        self._verdict, self._reason = _VERDICT[case], _REASON[case]

    def say(self, rows: Ints | Bools, verdict: Verdict, reason: str) -> None:
        """This verdict for these rows, for this reason."""
        if len(rows):
            self._verdict[rows] = verdict
            self._reason[rows] = self._texts.setdefault(reason, len(self._texts))

    def finish(
        self,
        places: Placement,
        rank: Ints,
        score: Floats | Callable[[], Floats],
        memory: Mapping[str, Any] | None = None,
        *,
        rests: bool = False,
    ) -> Plan:
        """The plan, with the reasons that it uses; a score may be left to whoever asks for it."""
        texts = tuple(self._texts)
        used = np.bincount(self._reason, minlength=len(texts)).nonzero()[0]
        number = np.zeros(len(texts), dtype=np.int64)
        number[used] = np.arange(len(used))
        at_hand: list[tuple[str, Any]] = [
            ("verdict", self._verdict),
            ("reason", number[self._reason]),
            ("rank", rank),
            ("places", places),
            ("reasons", tuple(texts[i] for i in used.tolist())),
            ("memory", {} if memory is None else memory),
            ("note", ""),
            ("rests", rests),
            ("again", math.inf),
        ]
        if callable(score):
            return Plan.made_of(at_hand, _Scores(score))
        return Plan.made_of([*at_hand, ("score", score)])

    def unchanged(self, *, rests: bool = False) -> Plan:
        """The plan of a round in which there is nothing to decide."""
        rows = len(self._verdict)
        return self.finish(Placement.none(), absent(rows), np.full(rows, np.nan), rests=rests)


class _Scores:
    """What jobs were ranked by, worked out when somebody asks."""

    def __init__(self, score: Callable[[], Floats]) -> None:
        self._score = score

    @property
    def score(self) -> Floats:
        """Of each row."""
        return self._score()


def placed(rows: Ints, sites: Sequence[Sites]) -> Placement:
    """The sites of many gangs, one per row, as one placement."""
    if not len(rows):
        return Placement.none()
    if len(rows) == 1:
        alone = np.array(sites[0], dtype=np.int64).reshape(-1, 2)
        return Placement(rows.repeat(len(alone)), alone[:, 0], alone[:, 1])
    count = np.fromiter(map(len, sites), dtype=np.int64, count=len(rows))
    flat = np.fromiter(chain.from_iterable(chain.from_iterable(sites)), dtype=np.int64, count=2 * count.sum())
    row = rows.repeat(count)
    order = row.argsort(kind="stable")
    return Placement(row[order], flat[0::2][order], flat[1::2][order])
