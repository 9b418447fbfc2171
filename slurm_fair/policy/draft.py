"""A plan in the making: verdicts that are the same under every policy, and room for its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from slurm_fair.model import Blocked, Explanation, JobState, LeasePhase, Placement, Plan, Verdict
from slurm_fair.model.columns import Bools, Floats, Ints, absent
from slurm_fair.policy.packing.gang import Sites
from slurm_fair.policy.situations import PHASE_OVER, SITUATIONS
from slurm_fair.policy.view import View

OTHERS_FIRST = "others are owed more"
STAYS = "nobody who is owed more can use its GPUs"
NOT_OVER = "its lease is not over"
KEPT_FOR_NOW = (
    "its lease is over: it keeps its GPUs until leases are renewed, or others come who are owed more"
)
PROMISED = "its GPUs are promised: it starts when its GPUs, CPUs and memory are free"
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
    Blocked.SHAPE: "Slurm's row of it cannot be read now",
    Blocked.BACKOFF: "Slurm did not start it the last time: tried again later",
    Blocked.REQUEUED: "it was requeued a moment ago: Slurm does not start it again yet",
    Blocked.NODES: "the nodes that it may use cannot take its gang now: they are down, drained or too few",
    Blocked.KEPT: "it needs GPUs of jobs that cannot be asked to give way: it starts when they end",
    Blocked.OWN_SHARE: "it cannot save and be requeued (or not before its deadline), so it waits for its "
    "account's own share; use fair-sbatch, without a near deadline, to use idle GPUs",
}


def _default_verdict(phase: int, state: JobState, blocked: Blocked) -> tuple[Verdict, str]:
    """The verdict before the policy speaks, and its reason.

    A policy may replace it where it has a choice; elsewhere it stands. A lease that is over is renewed by default.
    """
    if phase == PHASE_OVER:
        return Verdict.RENEW, STAYS
    if state is JobState.DONE:
        return Verdict.LEAVE, "it has ended"
    if state is JobState.SUSPENDED:
        return Verdict.LEAVE, "it is suspended and keeps its GPUs"
    if state is JobState.ENDING:
        return Verdict.LEAVE, "it is ending"
    if phase == LeasePhase.REVOKING:
        return Verdict.LEAVE, "it is giving its GPUs back"
    waits = state is JobState.WAITING
    if phase == LeasePhase.GRANTED and not (waits and blocked):
        return Verdict.KEEP, PROMISED
    if waits and not blocked and phase < 0:
        return Verdict.WAIT, OTHERS_FIRST
    if waits:
        return Verdict.LEAVE, BLOCKED_REASONS[blocked]
    return (Verdict.KEEP, NOT_OVER) if phase >= 0 else (Verdict.LEAVE, "it runs without a lease")


# The default of every case there is, so that a draft of a hundred thousand jobs begins with one look-up.
_DEFAULTS = [_default_verdict(*case) for case in SITUATIONS]
_TEXTS = {text: i for i, text in enumerate(dict.fromkeys(text for _, text in _DEFAULTS))}
_VERDICT = np.array([verdict for verdict, _ in _DEFAULTS], dtype=np.int8)
_REASON = np.array([_TEXTS[text] for _, text in _DEFAULTS], dtype=np.int64)

Rows: TypeAlias = Ints | Bools
Saying: TypeAlias = tuple[Rows, str]


class Draft:
    """A verdict by row, from the beginning; why, and in what order, is worked out when somebody asks.

    A plan that came of a draft reads its other columns from it: at most looks nobody asks for them.
    """

    def __init__(self, view: View) -> None:
        """Give every job its default verdict, which is final for jobs that no policy decides."""
        self._case, self._verdict = view.situation, _VERDICT.take(view.situation)
        self._said: list[Saying | Callable[[], Iterable[Saying]]] = []

    def say(self, rows: Rows, verdict: Verdict, reason: str) -> None:
        """This verdict for these rows, for this reason."""
        if len(rows):
            self.decide(rows, verdict)
            self.give_reason(rows, reason)

    def decide(self, rows: Rows, verdict: Verdict) -> None:
        """This verdict for these rows; why is explained apart."""
        self._verdict[rows] = verdict

    def give_reason(self, rows: Rows, reason: str) -> None:
        """Set the reason of rows whose verdict does not change."""
        self._said.append((rows.copy(), reason))  # its maker may go on to use it

    def explain_later(self, why: Callable[[], Iterable[Saying]]) -> None:
        """Give reasons that are worked out only when somebody asks why."""
        self._said.append(why)

    def finish(
        self,
        places: Placement,
        rank: Ints | Callable[[], Ints] | None = None,
        score: Floats | Callable[[], Floats] | None = None,
        memory: Mapping[str, Any] | None = None,
    ) -> Plan:
        """The plan; `rank` and `score` may be left to be asked."""

        def ranked() -> Ints:
            return absent(len(self._verdict)) if rank is None else rank() if callable(rank) else rank

        def why() -> Explanation:
            rows, (reason, reasons) = len(self._verdict), self._reasons()
            scored = np.full(rows, np.nan) if score is None else score() if callable(score) else score
            return Explanation(reason, ranked(), scored, reasons)

        return Plan(self._verdict, places, why, {} if memory is None else memory, ranked=ranked)

    def _reasons(self) -> tuple[Ints, tuple[str, ...]]:
        """The reason of each row, and the reasons that are used."""
        reason, texts = _REASON[self._case], _TEXTS.copy()
        for rows, text in chain.from_iterable(said() if callable(said) else (said,) for said in self._said):
            if len(rows):
                reason[rows] = texts.setdefault(text, len(texts))
        used = np.bincount(reason, minlength=len(texts)).nonzero()[0]
        number, every = np.zeros(len(texts), dtype=np.int64), tuple(texts)
        number[used] = np.arange(len(used))
        return number[reason], tuple(every[i] for i in used.tolist())

    def unchanged(self) -> Plan:
        """The plan of a round in which there is nothing to decide."""
        return self.finish(Placement.none())


def placed(rows: Ints, sites: Sequence[Sites]) -> Placement:
    """The sites of many gangs, one per row, as one placement."""
    flat = [*chain.from_iterable(sites)]
    if not flat:
        return Placement.none()
    row = rows.repeat([len(on) for on in sites])
    node, gpus = map(np.array, zip(*flat, strict=True))
    if len(rows) > 1:
        order = row.argsort(kind="stable")
        row, node, gpus = row[order], node[order], gpus[order]
    return Placement(row, node, gpus)
