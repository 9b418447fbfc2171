"""Policies that are an order of jobs: one walk down it, each job renewed, placed, moved or passed over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from slurm_fair.model import Blocked, Placement, Plan, Verdict
from slurm_fair.model.columns import Bools, Floats, Ints, absent, all_of, any_of
from slurm_fair.policy.draft import BLOCKED_REASONS, LOSES_WORK, UNUSABLE_NODES, Draft, Saying, placed, ranks
from slurm_fair.policy.orders.array_limits import over_array_limit
from slurm_fair.policy.orders.two_phase import expected_winners
from slurm_fair.policy.orders.walk import Candidates, refuse_twice, stretches, with_unlisted
from slurm_fair.policy.packing.gang import Gang, Pools, Sites
from slurm_fair.policy.packing.placement import Placer, placer, spreads
from slurm_fair.policy.packing.rivals import NoRivals, Rivals
from slurm_fair.policy.packing.shapes import Shapes
from slurm_fair.policy.view import View

ANY_TYPE = -1
_FEW = 8  # jobs that are sooner looked at than sorted out
_HEAD = 64  # waiting jobs looked at first when the first that does not fit ends the walk


@dataclass(frozen=True, slots=True)
class Words:
    """What is said of each decision; a policy may say it in its own terms."""

    granted: str = "it is next in the order and its gang fits"
    renewed: str = "it is still ahead of those who wait"
    revoked: str = "a job ahead of it needs its GPUs"
    moved: str = "it goes on elsewhere: on the GPU type or the nodes that were chosen for it"
    waits: str = "others are ahead of it"
    misfit: str = "its gang does not fit what those ahead of it leave"
    behind: str = "a job ahead of it does not fit, and nobody overtakes it"
    nowhere: str = "no node of its partition can take its gang"
    promised: str = "its GPUs were promised to another job"


WORDS = Words()


def ordered(
    view: View,
    order: Ints | Callable[[], Ints],
    *,
    preempt: bool = True,
    blocking: bool = False,
    lanes: Ints | None = None,
    on_type: Ints | None = None,
    keep: Bools | None = None,
    place: str | Placer = "consolidated",
    turn: Callable[[int], None] | None = None,
    move: Bools | None = None,
    score: Floats | Callable[[], Floats] | None = None,
    memory: Mapping[str, Any] | None = None,
    words: Words = WORDS,
) -> Plan:
    """The plan that walks down `order`: rows of the snapshot's jobs, most deserving first, each at most once.

    Waiting rows that are not listed wait. A running job whose lease is over is renewed when its turn comes, and
    evicted only when a job ahead of it takes its GPUs (those not listed come last); without `preempt`, and where
    `keep` says so, it is always renewed. For a listed job that is giving its GPUs back, room is kept.
    With `blocking` the first waiting job that does not fit ends all grants; with `lanes`, one number per row of
    the snapshot's jobs, it ends those of its own lane. `on_type` names per row the GPU type it must have (-1 =
    any): a running job on another one is revoked if there is room for it, and that room is kept. `move` names
    jobs that run and are to lie elsewhere: they are revoked if free GPUs of other nodes take them. `turn` is told
    the row whose gang `place` is asked to lay next. An order that costs something may be left to be asked: where
    nothing can change hands it is wanted only by who asks for the plan's ranks.
    """
    sheet = Draft(view)
    sheet.explain(lambda: _whatever_the_order(view, preempt, words))
    if callable(order) and not view.anything_to_have:
        return sheet.finish(
            Placement.none(),
            lambda: ranks(len(view.waiting), _listed(view, order)[0]),
            score,
            memory,
        )
    listed, waits = _listed(view, order)
    lay = placer(place) if isinstance(place, str) else place
    queue = _Queue(view, listed, waits, preempt, blocking, lanes, on_type, keep, move, spreads(lay))
    round_ = queue.round(lay, sheet, words)
    if round_ is not None:
        round_.walk(turn)
    places = Placement.none() if round_ is None else round_.say(sheet, words)
    return sheet.finish(places, lambda: ranks(len(view.waiting), listed), score, memory)


def _listed(view: View, order: Ints | Callable[[], Ints]) -> tuple[Ints, Ints]:
    """Without those who neither wait nor could lose what they have; and of these, who waits."""
    rows = order() if callable(order) else order
    refuse_twice(view, rows)
    if not len(rows) or all_of(waits := view.waiting[rows]):
        return rows, rows
    return rows[waits | (view.expired | view.revoking)[rows]], rows[waits]


def _whatever_the_order(view: View, preempt: bool, words: Words) -> Iterator[Saying]:
    """Who waits, and expired leases that are renewed in any case."""
    if words.waits:
        yield view.waits, words.waits
    if preempt:
        yield view.stranded, UNUSABLE_NODES
    yield view.pinned_down, LOSES_WORK


def contenders(view: View) -> Ints:
    """Rows that an order is about: who waits and whose lease is over; none when nobody waits: then all stay."""
    if not view.waits.size or not view.over.size:
        return view.waits
    rows: Ints = (view.waiting | view.expired).nonzero()[0]
    return rows


def oldest_first(view: View, rows: Ints) -> Ints:
    """In the order of their first submission; who came together stays as it was."""
    return rows[view.first_submit[rows].argsort(kind="stable")] if len(rows) > 1 else rows


class _Queue:
    """The order, and the running jobs that may have to give way."""

    def __init__(
        self,
        view: View,
        order: Ints,
        waits: Ints,
        preempt: bool,
        blocking: bool,
        lanes: Ints | None,
        on_type: Ints | None,
        keep: Bools | None,
        move: Bools | None,
        spread: bool,
    ) -> None:
        """`waits` are those of the order that wait."""
        self.view, self.order, self.on_type = view, order, on_type
        self.blocking, self._spread, self._waits = blocking, spread, waits
        self._lanes = lanes
        self.contested = waits[:0]  # rows, ascending
        self.retyped = self.movers = np.zeros(len(view.waiting), dtype=bool)
        self.moves, elsewhere = False, on_type is not None or move is not None
        if preempt and view.over.size and (len(waits) or elsewhere or view.owes):
            self._contend(keep, move)

    def lane_of(self, rows: Ints) -> Ints | None:
        """In which a job that does not fit is in the way of those behind it."""
        if self.blocking:
            return np.zeros(len(rows), dtype=np.int64)
        return None if self._lanes is None else self._lanes[rows]

    def _contend(self, keep: Bools | None, move: Bools | None) -> None:
        """Who runs and may be evicted, or is to go elsewhere."""
        view = self.view
        contested = view.expired & ~view.pinned_down & ~view.stranded
        if keep is not None:
            contested &= ~keep
        if self.on_type is not None:
            self.retyped = self.movers = contested & self._misplaced(self.on_type)
        if move is not None:
            self.movers = self.retyped | (contested & move)
        self.moves = any_of(self.movers)
        if any_of(contested):
            self.contested = (contested & ~self._safe()).nonzero()[0]

    def _safe(self) -> Bools:
        """Those ahead of everybody who waits or moves: nothing can take their GPUs but an earlier promise."""
        if self.view.owes:
            return self.view.flags(self.order[:0])
        change = (self.view.waiting | self.movers)[self.order]
        return self.view.flags(self.order if not any_of(change) else self.order[: int(change.argmax())])

    def _misplaced(self, on_type: Ints) -> Bools:
        """Jobs with a lease that lies on another type than was chosen for them."""
        view = self.view
        has = np.full(len(view.waiting), ANY_TYPE, dtype=np.int64)
        has[view.lease_places.row] = view.snapshot.nodes.gpu_type[view.lease_places.node]
        allowed = view.snapshot.jobs.gpu_type < 0  # what a job itself asks for stands above the choice
        wrong: Bools = (has >= 0) & allowed & (on_type >= 0) & (has != on_type)
        return wrong

    def round(self, place: Placer, sheet: Draft, words: Words) -> _Round | None:
        """The walk that is to be made; None when it could change nothing."""
        if not self._could_change():
            return None
        pools = Pools.of(self.view.snapshot)
        head, shapes, asking = self._waiters(pools, sheet, words)
        order = head[asking]
        if not self.contested.size and not self._fitting(pools, shapes, asking):
            self._say_misfits(sheet, order, words)
            return None
        others = self._others()
        if others.size:
            order, listed = self.order, self.view.flags(np.concatenate((order, others)))
            order = order[listed[order]]
            others = others[(self.movers | self.view.revoking)[others]]
            if others.size:
                head = np.concatenate((head, others))
                shapes = self._shapes(pools, head)
            place_of = absent(len(listed))
            place_of[head] = np.arange(len(head))
            asking = place_of[order]
        return _Round(self, pools, place, order, asking, shapes)

    def _others(self) -> Ints:
        """Those of the order with a lease that the round is about."""
        if len(self.order) == len(self._waits):
            return self.order[:0]
        return self.order[(self.view.flags(self.contested) | self.view.revoking)[self.order]]

    def _could_change(self) -> bool:
        """Whether anybody waits that might get GPUs, or a lease may end for another reason than its rank."""
        if self.moves or (self.contested.size and self.view.owes):
            return True
        gpus = self.view.snapshot.jobs.gpus[self._waits]
        return gpus.size > 0 and gpus.item(gpus.argmin()) <= self._offered()

    def _say_misfits(self, sheet: Draft, waits: Ints, words: Words) -> None:
        """None of these fits; in a lane, the first one is in the way of the others."""
        lane = self.lane_of(waits)
        if lane is not None:
            sheet.because(waits, words.behind)
            waits = waits[np.unique(lane, return_index=True)[1]]
        sheet.because(waits, words.misfit)

    def _fitting(self, pools: Pools, shapes: Shapes, waits: Ints) -> bool:
        """Whether any of these may fit what is free: where the walk stops early, it finds out sooner."""
        if self.blocking or len(waits) <= _FEW:
            return True
        return any_of(shapes.fitting(pools, self.view.spare_gpus)[waits])

    def _offered(self) -> int:
        """GPUs that the round is about, at most."""
        free = self.view.free_in_all
        return free + int(self.view.snapshot.jobs.gpus[self.contested].sum()) if self.contested.size else free

    def _waiters(self, pools: Pools, sheet: Draft, words: Words) -> tuple[Ints, Shapes, Ints]:
        """The head of the waiting rows, how each may lie, and the places in it of those that can run.

        Of the others it is said why they cannot.
        """
        rows, jobs = self._waits, self.view.snapshot.jobs
        count = _HEAD if self.blocking else len(rows)
        while True:
            head = rows[:count]
            shapes = self._shapes(pools, head)
            possible = shapes.possible()
            able = possible.nonzero()[0]
            over = over_array_limit(self.view, head[able])
            listed = able[~over] if any_of(over) else able
            if count >= len(rows) or int(jobs.gpus[head[listed]].sum()) > self._offered():
                break
            count *= 4
        if len(able) < len(head):
            sheet.because(head[~possible], words.nowhere)
        if len(listed) < len(able):
            sheet.because(head[able[over]], BLOCKED_REASONS[Blocked.ARRAY_LIMIT])
        return head, shapes, listed

    def _shapes(self, pools: Pools, rows: Ints) -> Shapes:
        chosen = None if self.on_type is None else self.on_type[rows]
        return Shapes.of(pools, self.view.snapshot, rows, chosen, spread=self._spread)


class _Round:
    """One walk down the order and what came of it."""

    def __init__(
        self, queue: _Queue, pools: Pools, place: Placer, order: Ints, asking: Ints, shapes: Shapes
    ) -> None:
        """`order` has the waiting rows that can run and those with a lease, `asking` their places in `shapes`."""
        view = queue.view
        self._queue, self._pools, self._listed = queue, pools, len(order)
        rows, numbers = order, absent(len(order))
        if queue.contested.size:
            rows, numbers, asking = with_unlisted(view, queue.contested, order, asking)
        jobs, runs = view.snapshot.jobs, len(queue.contested)
        self.candidates = Candidates(jobs, rows, numbers, asking, shapes, runs)
        self._granting = view.waiting[rows]
        self._lane = queue.lane_of(rows)
        self.granted: dict[int, Sites] = {}
        self.misfits: list[int] = []
        self.moved: list[int] = []
        self._shut: set[int] = set()
        self.expected: Bools | None = None  # whose lease is likely to be renewed, where some may not be
        self.contest = self._contest(view, place)
        self.promised = self.contest.clear_debts()

    def _contest(self, view: View, place: Placer) -> Rivals | NoRivals:
        if not self.candidates.runs:
            return NoRivals(view, self._pools, place)
        rows, contested = self.candidates.rows, self.candidates.contested >= 0
        rank = np.arange(len(rows))
        self.expected = expected = expected_winners(view, self._pools, self.candidates, rank[: self._listed])
        rank[self._listed :] = len(rows)
        return Rivals(view, self._pools, place, rows[contested], rank[contested], ~expected[contested])

    def walk(self, turn: Callable[[int], None] | None = None) -> None:
        """Renew, place or move each in its turn; behind the last who waits or moves, nothing changes any more."""
        change = self._granting
        if self._queue.moves:
            change = change | self._queue.movers[self.candidates.rows]
        last = change[: self._listed].nonzero()[0][-1:]
        for jobs in stretches(last.item() + 1 if last.size else 0):
            if self.contest.left <= 0:
                return
            self._stretch(self._worth_a_look(jobs), turn)

    def _worth_a_look(self, jobs: Ints) -> Ints:
        """Without those that will not fit: a look at one costs far more than this does for all."""
        if self._lane is not None:  # a job that does not fit has to be met: it shuts its lane
            if not self._shut:
                return jobs
            return jobs[~self._granting[jobs] | ~np.isin(self._lane[jobs], list(self._shut))]
        if len(jobs) <= _FEW:
            return jobs
        fits = self.candidates.fitting(self._pools, self.contest.all.gpus)
        misfit = self._granting[jobs] & ~fits[jobs]
        self.misfits += jobs[misfit].tolist()
        return jobs[~misfit]

    def _stretch(self, jobs: Ints, turn: Callable[[int], None] | None) -> None:
        rows, grants, movers = self.candidates.rows, self._granting.data, self._queue.movers
        for job, ways in zip(jobs.tolist(), self.candidates.ways(jobs), strict=True):
            if turn is not None:
                turn(rows.item(job))
            if grants[job]:
                self._place(job, ways)
            elif movers.item(rows.item(job)):
                self._move(job, self.candidates.contested.item(job), ways)
            elif (contested := self.candidates.contested.item(job)) < 0:
                self.contest.place(ways, evict=False)  # it is on its way back: this room is kept for it
            elif self.contest.is_open(contested):
                self.contest.renew(contested)

    def _place(self, job: int, ways: Sequence[Gang]) -> None:
        lane = None if self._lane is None else self._lane.item(job)
        if lane in self._shut:
            return
        sites = self.contest.place(ways)
        if sites is not None:
            self.granted[job] = sites
            return
        self.misfits.append(job)
        if lane is not None:
            self._shut.add(lane)

    def _move(self, job: int, contested: int, ways: Sequence[Gang]) -> None:
        evict = bool(self._queue.retyped[self.candidates.rows[job]])
        if not evict:  # a better place among the free ones is worth the way, nobody else's stop is
            ways = self._elsewhere(job, ways)
        if self.contest.place(ways, evict) is not None:
            self.moved.append(contested)
            self.contest.leave(contested)
        elif self.contest.is_open(contested):
            self.contest.renew(contested)

    def _elsewhere(self, job: int, ways: Sequence[Gang]) -> list[Gang]:
        here = tuple(self._queue.view.lease_places.nodes_of(int(self.candidates.rows[job])).tolist())
        return [gang._replace(barred=(*gang.barred, *here)) for gang in ways]

    def say(self, sheet: Draft, words: Words) -> Placement:
        """What came of it: where the granted gangs lie; why is told to who asks."""
        rows = self.candidates.rows
        granted = rows[list(self.granted)] if self.granted else rows[:0]
        sheet.decide(granted, Verdict.GRANT)
        if self.candidates.runs:
            for stopped, _ in self._stopped(words):
                sheet.decide(stopped, Verdict.REVOKE)
        sheet.explain(lambda: self._why(granted, words))
        return placed(granted, list(self.granted.values()))

    def _why(self, granted: Ints, words: Words) -> Iterator[Saying]:
        rows = self.candidates.rows
        if self._lane is not None:
            yield rows[self._granting & np.isin(self._lane, list(self._shut))], words.behind
        yield rows[self.misfits], words.misfit
        yield granted, words.granted
        if self.expected is not None:
            yield rows[self.expected & (self.candidates.contested >= 0)], words.renewed
            yield from self._stopped(words)

    def _stopped(self, words: Words) -> Iterator[Saying]:
        """Whose leases end, and why."""
        contested = self.candidates.rows[self.candidates.contested >= 0]
        yield contested[self.contest.evicted], words.revoked
        yield contested[self.promised], words.promised
        yield contested[[number for number in self.moved if not self.contest.is_open(number)]], words.moved
