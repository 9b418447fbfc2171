"""Gavel's round mechanism (Narayanan et al., OSDI 2020, section 5): fractions of time become leases.

A policy says which part of its time each job is to spend on each GPU type. At the end of a round the jobs are
taken in the order of  share / time received , so that what they receive comes near to their shares.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from slurm_fair.model import Plan, Snapshot
from slurm_fair.policy import (
    YEARS,
    Bools,
    Floats,
    Ints,
    Order,
    PlacerName,
    View,
    Within,
    Words,
    alike,
    all_of,
    any_of,
    check_settings,
    contenders,
    once,
    ordered,
    with_again,
)
from slurm_fair.policy.orders.ordered import ANY_TYPE
from slurm_fair.solve import LIMIT_SECONDS, Table
from slurm_fair_plugins.priority import Queue, queued
from slurm_fair_plugins.received import Crowd, KeptShares, Received, ServiceClock, SharesPast

__all__ = ["Crowd", "InRounds", "limit_of"]

ROUNDS, OWN = "rounds", "own"  # names in the memory

WORDS = Words(
    granted="it has received least of its share",
    renewed="it has still received less of its share than those who wait",
    revoked="a job that has received less of its share needs its GPUs",
    waits="others have received less of their shares, or its share is not computed yet",
)


@dataclass(frozen=True, slots=True)
class InRounds:
    """A policy whose shares become leases in rounds; the fields are settings that all of them have.

    Readings, from the scheduler that the paper published, which the simulators of Shockwave and others run:
    shares are computed anew at a round's end when jobs came or went, but not more often than every
    `reset_seconds` (the very first time does not count); then all time received is forgotten, and what a job had
    too little is kept as its deficit. A job starts with half a round received, so that the first comparison is
    defined. Order: share / time received, then deficit, then the `queue`; types one after the other; a job whose
    gang does not fit is passed over. A job that came since has no share: with `newcomers = "fill"` it gets what
    nobody else uses, in the order of the `queue`; with "wait" it gets nothing until there is one, even where GPUs
    are idle (so it is published).
    Time received is all the time that a job ran; with `received = "progress"` that in which it made progress, as
    it reports itself, so that what a restart costs does not count (so it is published).
    """

    called: ClassVar[str] = ""  # its name in the configuration
    score_is: ClassVar[Order] = Order(
        "its share of the time, by the seconds that it has received of it",
        highest_first=True,
        then="whether it has a share yet and its gang fits into the round, then by what is still due to it",
    )
    lease_seconds: ClassVar[float] = 360.0  # the paper's round
    by_solver: ClassVar[bool] = True  # of shares that are equally good it takes some
    solves: ClassVar[bool] = True  # where there are several GPU types

    reset_seconds: Annotated[float, Within(0, YEARS, "0 = at every change")] = 1000.0
    newcomers: Literal["wait", "fill"] = "fill"
    received: Literal["progress", "run"] = "run"
    queue: Queue = "age"
    placement: PlacerName = "consolidated"

    def __post_init__(self) -> None:
        check_settings(self, self.called)

    def divide(self, crowd: Crowd) -> tuple[Table, Mapping[str, Any]]:
        """The shares of a crowd, one column per GPU type, and what the policy wants to remember."""
        raise NotImplementedError

    def plan(self, view: View) -> Plan:
        """One round, or what can be done between two."""
        accounts = _RoundAccounts(view, self)
        return ordered(
            view,
            lambda: accounts.order(contenders(view)),
            on_type=accounts.on_type if accounts.several else None,
            place=self.placement,
            score=lambda: accounts.score,
            memory=with_again(accounts.memory, accounts.again),
            words=WORDS,
        )

    def quick_plan(self, view: View) -> Plan:
        """The plan of a solver that has no time: shares by rule."""
        return self.plan(replace(view, deadline=view.now))

    def rests(self, snapshot: Snapshot, memory: Mapping[str, Any]) -> bool:
        """True if nothing is remembered until somebody comes or goes; on several types, time received is."""
        kept, jobs = memory.get(ROUNDS), snapshot.jobs
        if kept is None or len(kept["kinds"]) > 1:
            return False
        return bool(kept["members"] == jobs.key[jobs.active].tolist())


class _RoundAccounts:
    """Shares and what was received of them, brought up to now."""

    def __init__(self, view: View, policy: InRounds) -> None:
        active = view.claims
        kept = view.memory.get(ROUNDS, {})
        self.view, self.policy = view, policy
        self.crowd = Crowd(view, active.nonzero()[0], view.memory.get(OWN, {}))
        self.kinds, self.several = self.crowd.kinds, len(self.crowd.kinds) > 1
        self.on_type: Ints = np.full(len(active), ANY_TYPE, dtype=np.int64)
        self.memory: Mapping[str, Any] = view.memory
        self.again = math.inf
        self._kept = kept
        if self._due(kept):
            self.memory = self._computed(kept)
        elif self.several:
            self.memory = {**view.memory, ROUNDS: {**kept, **self._received.noted()}}

    @once
    def _received(self) -> Received:
        """Time received since the shares were computed; not worked out where nobody can gain or lose GPUs."""
        return Received(self.crowd, self._clock(), self._kept)

    @once
    def score(self) -> Floats:
        """The number of every job by which the order is made."""
        score = np.full(len(self.on_type), np.nan)
        score[self.crowd.rows] = self._received.priority.max(axis=1, initial=0.0)
        return score

    def _clock(self) -> ServiceClock:
        """The clock of time received; the ledger is asked only where a job does not say."""
        rows, said = self.crowd.rows, self.view.snapshot.told
        if said is None or self.policy.received == "run":
            return ServiceClock(self.view.ran_seconds[rows])
        done = said.done_seconds[rows]
        reports = ~np.isnan(done)
        return ServiceClock(
            done if all_of(reports) else np.where(reports, done, self.view.ran_seconds[rows]), reports
        )

    def _due(self, kept: Mapping[str, Any]) -> bool:
        """True if the shares are to be computed: at a round's end, or when no lease is there to end.

        Who looks more often finds nothing else: a round ends at a look, and when there is none that could end,
        `again` says when there is something to compute. Nothing is where nobody is there.
        """
        if not kept or SharesPast.of(kept).kinds != self.kinds.tolist():
            return True
        if not len(self.crowd.key) or self._shared_out(kept):
            return False
        if len(self.view.leases) > 0 and not any_of(self.view.over):
            return False
        due = kept["first"] or self.view.now - kept["at"] >= self.policy.reset_seconds
        self.again = math.inf if due else kept["at"] + self.policy.reset_seconds
        return bool(due)

    def _shared_out(self, kept: Mapping[str, Any]) -> bool:
        """True if the shares were computed for just those who are there."""
        members, key = SharesPast.of(kept).members, self.crowd.key
        return len(members) == len(key) and all_of(members == key)

    def _computed(self, kept: Mapping[str, Any]) -> Mapping[str, Any]:
        received, key = self._received, self.crowd.key.tolist()
        owed = received.deficit
        if kept:
            owed = owed + np.nan_to_num(received.share) * (self.view.now - kept["at"]) - received.time
        share, own = self.policy.divide(self.crowd)
        self._received = self._received.anew(share, owed)
        fresh = KeptShares(
            at=self.view.now,
            first=not kept,
            kinds=self.kinds.tolist(),
            members=key,
            key=key,
            share=share.ravel().tolist(),
            deficit=owed.ravel().tolist(),
            **self._received.noted(),
        )
        return {ROUNDS: fresh, OWN: own} if own else {ROUNDS: fresh}

    def order(self, rows: Ints) -> Ints:
        """Contenders, who has received least of its share first; sets their GPU type."""
        if len(rows) == 0:
            return rows
        rows = queued(self.view, rows, self.policy.queue)
        at = self.crowd.rows.searchsorted(rows)
        shared = (
            ~np.isnan(self._received.share[at, 0]) if len(self.kinds) else np.zeros(len(rows), dtype=bool)
        )
        rows, at, others = rows[shared], at[shared], rows[~shared]
        order = self._picked_first(rows, at) if len(rows) else rows
        if self.policy.newcomers == "wait":
            return order
        return np.concatenate([order, others])

    def _sorted(self, rows: Ints, at: Ints, kind: int) -> Ints:
        if len(rows) < 2:
            return np.arange(len(rows))
        received = self._received
        priority, deficit = alike(received.priority[at, kind]), np.round(received.deficit[at, kind], 3)
        return np.lexsort((-deficit, -priority))

    def _picked_first(self, rows: Ints, at: Ints) -> Ints:
        """The jobs that are taken while GPUs are left, by their number alone, before the rest; and on which type.

        So they are all expected to win, and nobody of them is stopped for another.
        """
        left, gangs = self._offered(), self.crowd.gang[at]
        taken, picked = np.zeros(len(rows), dtype=bool), []
        queues = [self._sorted(rows, at, kind) for kind in range(len(self.kinds))]
        able = self.crowd.rate[at] > 0
        has = able & (self._received.priority[at] > 0)
        for entitled in (has, able & ~has):  # with a share on the type first, then anybody
            for kind, in_line in enumerate(queues):
                if not left[kind]:
                    continue
                queue = in_line[(entitled[:, kind] & ~taken)[in_line]]
                if not len(queue):
                    continue
                queue = queue[_first_fit(gangs[queue], left[kind])]
                left[kind] -= float(gangs[queue].sum())
                taken[queue] = True
                self.on_type[rows[queue]] = self.kinds[kind]
                picked.append(queue)
        behind = queues[0][~taken[queues[0]]]
        in_order: Ints = rows[np.concatenate([*picked, behind])]
        return in_order

    def _offered(self) -> list[float]:
        """GPUs of each type that the round is about."""
        view, nodes = self.view, self.view.snapshot.nodes
        places, held = view.lease_places, view.over[view.lease_places.row]
        if len(view.snapshot.gpu_types) == 1:
            return [float(view.free_in_all + places.gpus[held].sum())] * len(self.kinds)
        free = view.free_gpus + places.take(held).per_node(len(nodes))
        gpus = np.bincount(nodes.gpu_type, free, minlength=len(view.snapshot.gpu_types))
        left: list[float] = gpus[self.kinds].tolist()
        return left


def _first_fit(gangs: Floats, gpus: float) -> Bools:
    """True where a job gets GPUs when each in turn takes its gang if so many are left."""
    fits: Bools = gangs.cumsum() <= gpus
    if all_of(fits):
        return fits
    start = int(fits.argmin())
    left = gpus - float(gangs[:start].sum())
    least = float(gangs.min())
    for at, gang in enumerate(gangs[start:].tolist(), start):
        if left < least:
            break
        if gang <= left:
            fits[at] = True
            left -= gang
    return fits


def limit_of(view: View) -> float:
    """Wall clock that a solver may have, half of what the plan has; a simulation has no clock and no limit."""
    if math.isinf(view.deadline):
        return math.inf
    return min(LIMIT_SECONDS, max((view.deadline - view.now) / 2.0, 0.0))
