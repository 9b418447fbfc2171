"""The guard: it lets no act through after an odd look, and only so many acts in one tick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slurm_fair.model import Action, Snapshot, Verb

_FEW_JOBS = 20  # below this a queue may empty at once without being odd


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that one tick may change."""

    revokes: int = 512  # asked and requeued together
    opens: int = 1024
    closes: int = 2048
    frees: int = 512  # jobs that are not managed: users make as many as they like
    shrink_alarm: float = 0.3
    partitions: tuple[str, ...] = ()  # those that the site names, to say so where they have no nodes


def living(snapshot: Snapshot) -> int:
    """The number of jobs that are not over."""
    return int(np.count_nonzero(~snapshot.jobs.done))


def oddity(snapshot: Snapshot, alive: int, last_jobs: int, limits: Limits) -> str:
    """The reason why another look must confirm this one before anything is done; empty when it is plain."""
    if last_jobs >= _FEW_JOBS and alive < last_jobs * (1 - limits.shrink_alarm):
        return f"the queue shrank from {last_jobs} to {alive} jobs between two looks: looking again first"
    if not len(snapshot.nodes.names):
        named = (
            f"in [scope] partitions {', '.join(limits.partitions)}"
            if limits.partitions
            else "in any partition"
        )
        return f"no node with GPUs {named}: looking again first; mend [scope], see `slurm-fair check`"
    return ""


def hold_back(actions: Sequence[Action], limits: Limits) -> tuple[tuple[Action, ...], str]:
    """The acts within the limits, and what was left for the next tick.

    Asking and requeueing share one limit. Requeues come first of the two: they end what was begun.
    """
    if len(actions) <= min(limits.revokes, limits.opens, limits.closes, limits.frees):
        return tuple(actions), ""
    requeues = sum(action.verb is Verb.REQUEUE for action in actions)
    room = {
        Verb.ASK: max(limits.revokes - requeues, 0),
        Verb.REQUEUE: limits.revokes,
        Verb.OPEN: limits.opens,
        Verb.CLOSE: limits.closes,
        Verb.FREE: limits.frees,
    }
    allowed = []
    for action in actions:
        if room[action.verb] > 0:
            room[action.verb] -= 1
            allowed.append(action)
    left = len(actions) - len(allowed)
    note = f"{left} of {len(actions)} acts wait for the next tick ([guard] limits)" if left else ""
    return tuple(allowed), note
