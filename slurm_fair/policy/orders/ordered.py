"""Policies that are an order of jobs: one walk down it, each job renewed, placed, moved or passed over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

import numpy as np

from slurm_fair.model import Blocked, Placement, Plan, Verdict
from slurm_fair.model.columns import Bools, Floats, Ints, absent, all_of, any_of, ranks
from slurm_fair.policy.draft import BLOCKED_REASONS, LOSES_WORK, UNUSABLE_NODES, Draft, Saying, placed
from slurm_fair.policy.orders.array_limits import over_array_limit
from slurm_fair.policy.orders.two_phase import expected_winners
from slurm_fair.policy.orders.walk import (
    FEW,
    SHORT,
    Candidates,
    Walk,
    contest_of,
    refuse_twice,
    with_due_gangs_first,
    with_unlisted,
)
from slurm_fair.policy.packing.gang import Gang, Pools, Sites
from slurm_fair.policy.packing.placement import CONSOLIDATED, Placer, placer, spreads
from slurm_fair.policy.packing.shapes import Shapes
from slurm_fair.policy.view import View
from slurm_fair.suggest import did_you_mean

ANY_TYPE = -1
_HEAD = 64  # waiting jobs looked at first when the first that does not fit ends the walk


LEFT_BY_THOSE_AHEAD = "what those ahead of it leave"  # the free GPUs in which a gang does not fit


@dataclass(frozen=True, slots=True)
class Words:
    """The reason for each decision; a policy may give reasons in its own terms."""

    granted: str = "it is next in the order and its gang fits"
    renewed: str = "it is still ahead of those who wait"
    revoked: str = "a job ahead of it needs its GPUs"
    moved: str = "it goes on elsewhere: on the GPU type or the nodes that were chosen for it"
    waits: str = "others are ahead of it"
    misfit: str = f"its gang does not fit {LEFT_BY_THOSE_AHEAD}"
    behind: str = "a job ahead of it does not fit, and nobody overtakes it"
    nowhere: str = "no node of its partition can take its gang"
    promised: str = "its GPUs were promised to another job"


WORDS = Words()


class OrderOptions(TypedDict, total=False):
    """Options of `ordered`. Columns have one entry per row of the snapshot's jobs."""

    preempt: bool  # False: a running job whose lease is over is always renewed
    keep: Bools | None  # jobs that are always renewed
    blocking: bool  # the first waiting job that does not fit ends all grants
    lanes: Ints | None  # it ends those of its own lane: the number of each job's
    on_type: Ints | None  # the GPU type that each job must have, -1 = any
    move: Bools | None  # jobs that run and are to lie elsewhere
    resize: Bools | None  # those of them that are to have another size, on GPUs that they have now too
    place: str | Placer  # how a gang is laid over nodes
    on_move: Callable[[Ints], None] | None  # is told the rows that stop to go on where there is room for them
    next_row: Callable[[int], None] | None  # is told the row whose gang `place` is asked to lay next
    on_laid: Callable[[Sites], None] | None  # is told the GPUs that it got, as Slurm will split them
    score: Floats | Callable[[], Floats] | None  # the numbers that decided, or what works them out
    memory: Mapping[str, Any] | None  # for the next plan
    words: Words  # what is said of each decision


USUAL: OrderOptions = {
    "preempt": True,
    "keep": None,
    "blocking": False,
    "lanes": None,
    "on_type": None,
    "move": None,
    "resize": None,
    "place": CONSOLIDATED,
    "on_move": None,
    "next_row": None,
    "on_laid": None,
    "score": None,
    "memory": None,
    "words": WORDS,
}


def ordered(view: View, order: Ints | Callable[[], Ints], **options: Unpack[OrderOptions]) -> Plan:
    """The plan that walks down `order`: rows of the snapshot's jobs, most deserving first, each at most once.

    Waiting rows that are not listed wait. A running job whose lease is over is renewed when the walk comes to it,
    and evicted only when a job ahead of it takes its GPUs (those not listed come last). For a listed job that is
    giving its GPUs back, room is kept.

    Three kinds of running jobs may be revoked so that they move: one on another type than `on_type` says, if that
    type has room; one of `move`, if free GPUs of other nodes take it; one of `resize`, if there is room once its
    own GPUs are free. The new room is kept for it.

    An order that costs something may be left to be asked: where nothing can change hands it is wanted only by who
    asks for the plan's ranks.
    """
    _refuse_unknown(options)
    how: OrderOptions = {**USUAL, **options}
    sheet = Draft(view)
    sheet.explain_later(lambda: _whatever_the_order(view, how))
    if callable(order) and not view.anything_to_have:
        places = Placement.none()
        return sheet.finish(
            places, lambda: ranks(len(view.waiting), _listed(view, order)[0]), how["score"], how["memory"]
        )
    listed, waits = _listed(view, order)
    walk_order = with_due_gangs_first(view, listed)
    waits = waits if walk_order is listed else walk_order[view.waiting[walk_order]]
    round_ = _RoundSetup(view, walk_order, waits, how).round(sheet)
    places = Placement.none() if round_ is None else round_.walked(sheet)
    return sheet.finish(places, lambda: ranks(len(view.waiting), listed), how["score"], how["memory"])


def _refuse_unknown(options: OrderOptions) -> None:
    for name in options:
        if name not in USUAL:
            raise TypeError(f"ordered() has no option '{name}': {did_you_mean(name, sorted(USUAL))}")


def _listed(view: View, order: Ints | Callable[[], Ints]) -> tuple[Ints, Ints]:
    """The rows that wait or could lose their GPUs, and those of them that wait."""
    rows = order() if callable(order) else order
    refuse_twice(view, rows)
    if not len(rows) or all_of(waits := view.waiting[rows]):
        return rows, rows
    return rows[waits | (view.over | view.revoking)[rows]], rows[waits]


def _whatever_the_order(view: View, how: OrderOptions) -> Iterator[Saying]:
    """Reasons for jobs that wait, and for leases that are over and renewed in any case."""
    if how["words"].waits:
        yield view.waiting_rows, how["words"].waits
    if how["preempt"]:
        yield view.stranded, UNUSABLE_NODES
    yield view.only_renewable, LOSES_WORK


def contenders(view: View) -> Ints:
    """Rows that an order is about: who waits and whose lease is over; none when nobody waits: then all stay."""
    if not view.waiting_rows.size or not view.over_rows.size:
        return view.waiting_rows
    return (view.waiting | view.over).nonzero()[0]


def oldest_first(view: View, rows: Ints) -> Ints:
    """Rows in the order of their first submission; between equals the order stays."""
    return rows[view.first_submit[rows].argsort(kind="stable")] if len(rows) > 1 else rows


class _RoundSetup:
    """The order, and the running jobs that may have to give way."""

    def __init__(self, view: View, order: Ints, waits: Ints, how: OrderOptions) -> None:
        """`waits` are those of the order that wait."""
        self.view, self.order, self._waits, self.how = view, order, waits, how
        self.place = placer(how["place"]) if isinstance(how["place"], str) else how["place"]
        self.contested = waits[:0]  # rows, ascending
        self.retyped = self.resized = self.movers = np.zeros(len(view.waiting), dtype=bool)
        self.moves, elsewhere = False, how["on_type"] is not None or how["move"] is not None
        if how["preempt"] and view.over_rows.size and (len(waits) or elsewhere or view.owes):
            self._contend(how)

    def lane_of(self, rows: Ints) -> Ints | None:
        """The lane of each row: a job that does not fit is in the way of those behind it in its lane."""
        if self.how["blocking"]:
            return np.zeros(len(rows), dtype=np.int64)
        lanes = self.how["lanes"]
        return None if lanes is None else lanes[rows]

    def _contend(self, how: OrderOptions) -> None:
        """Find the jobs that run and may be evicted, or are to go elsewhere."""
        view, keep, on_type, move = self.view, how["keep"], how["on_type"], how["move"]
        contested = view.contested.copy()
        if keep is not None:
            contested &= ~keep
        if on_type is not None:
            self.retyped = self.movers = contested & self._misplaced(on_type)
        if move is not None:
            self.movers = self.retyped | (contested & move)
        if how["resize"] is not None:
            self.resized = contested & how["resize"]
            self.movers = self.movers | self.resized
        self.moves = any_of(self.movers)
        if any_of(contested):
            self.contested = (contested & ~self._safe()).nonzero()[0]

    def _safe(self) -> Bools:
        """True for jobs ahead of everybody who waits or moves: only an earlier promise can take their GPUs."""
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

    def round(self, sheet: Draft) -> _OrderWalk | None:
        """The walk that is to be made; None when it could change nothing."""
        if not self._could_change():
            return None
        pools = Pools.of(self.view.snapshot)
        head, shapes, asking = self._waiters(pools, sheet)
        order = head[asking]
        if not self.contested.size and not self._fitting(pools, shapes, asking):
            self._say_misfits(sheet, order)
            return None
        others = self._others()
        if others.size:
            order, listed = self.order, self.view.flags(np.concatenate((order, others)))
            order = order[listed[order]]
            others = others[(self.movers | self.view.revoking)[others]]
            if others.size:
                head = np.concatenate((head, others))
                shapes = self._shapes(pools, head)
            asking = ranks(len(listed), head)[order]
        return _OrderWalk(self, pools, order, asking, shapes)

    def _others(self) -> Ints:
        """Jobs of the order with a lease that the round is about."""
        if len(self.order) == len(self._waits):
            return self.order[:0]
        return self.order[(self.view.flags(self.contested) | self.view.revoking)[self.order]]

    def _could_change(self) -> bool:
        """True if anybody waits that might get GPUs, or a lease may end for another reason than its rank."""
        if self.moves or (self.contested.size and self.view.owes):
            return True
        gpus = self.view.snapshot.jobs.gpus[self._waits]
        return gpus.size > 0 and gpus.item(gpus.argmin()) <= self._offered()

    def _say_misfits(self, sheet: Draft, waits: Ints) -> None:
        """None of these fits; in a lane, the first one is in the way of the others."""
        lane, words = self.lane_of(waits), self.how["words"]
        if lane is not None:
            sheet.give_reason(waits, words.behind)
            waits = waits[np.unique(lane, return_index=True)[1]]
        sheet.give_reason(waits, words.misfit)

    def _fitting(self, pools: Pools, shapes: Shapes, waits: Ints) -> bool:
        """True if any of these may fit what is free: where the walk stops early, it finds out sooner."""
        if self.how["blocking"] or len(waits) <= FEW:
            return True
        return any_of(shapes.fitting(pools, self.view.spare_gpus)[waits])

    def _offered(self) -> int:
        """GPUs that the round is about, at most."""
        free = self.view.free_in_all
        return free + int(self.view.snapshot.jobs.gpus[self.contested].sum()) if self.contested.size else free

    def _waiters(self, pools: Pools, sheet: Draft) -> tuple[Ints, Shapes, Ints]:
        """The head of the waiting rows, how each may lie, and the places in it of those that can run.

        Of the others it is said why they cannot.
        """
        rows, jobs = self._waits, self.view.snapshot.jobs
        count = _HEAD if self.how["blocking"] else len(rows)
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
            sheet.give_reason(head[~possible], self.how["words"].nowhere)
        if len(listed) < len(able):
            sheet.give_reason(head[able[over]], BLOCKED_REASONS[Blocked.ARRAY_LIMIT])
        return head, shapes, listed

    def _shapes(self, pools: Pools, rows: Ints) -> Shapes:
        on_type = self.how["on_type"]
        chosen = None if on_type is None else on_type[rows]
        return Shapes.of(pools, self.view.snapshot, rows, chosen, spread=spreads(self.place))


class _OrderWalk(Walk):
    """The walk down the listed ones, in which some may be moved, and some are on their way back."""

    def __init__(self, setup: _RoundSetup, pools: Pools, order: Ints, asking: Ints, shapes: Shapes) -> None:
        """`order` has the waiting rows that can run and those with a lease, `asking` their places in `shapes`."""
        view = setup.view
        rows, numbers = order, absent(len(order))
        if setup.contested.size:
            rows, numbers, asking = with_unlisted(view, setup.contested, order, asking)
        runs = len(setup.contested)
        candidates = Candidates(view.snapshot.jobs, rows, numbers, asking, shapes, runs)
        self._setup, self._next_row, self._words = setup, setup.how["next_row"], setup.how["words"]
        self._listed = np.arange(len(order))
        self.expected = np.zeros(len(rows), dtype=bool)  # whose lease is likely to be renewed
        if runs:
            self.expected = expected_winners(view, pools, candidates, self._listed)
        contest = contest_of(view, pools, setup.place, candidates, self._listed, self.expected)
        super().__init__(candidates, pools, contest)
        self.waits = view.waiting[rows]
        self.changes = self.waits | setup.movers[rows] if setup.moves else self.waits
        self.moved: list[int] = []
        self.promised = self.contest.clear_debts()

    def walked(self, sheet: Draft) -> Placement:
        """Grant and revoke along the order; who keeps its GPUs is renewed by default.

        It returns the places of the granted gangs.
        """
        self.down(self._listed, self._setup.lane_of(self.candidates.rows), SHORT)
        rows = self.candidates.rows
        granted = rows[list(self.granted)] if self.granted else rows[:0]
        sheet.decide(granted, Verdict.GRANT)
        if self.candidates.runs:
            for stopped, _ in self._stopped():
                sheet.decide(stopped, Verdict.REVOKE)
            if self._setup.how["on_move"] is not None:
                self._setup.how["on_move"](self._moved_rows())
        sheet.explain_later(lambda: self._why(granted))
        return placed(granted, list(self.granted.values()))

    def keep_gpus(self, job: int, contest_place: int, ways: Sequence[Gang]) -> None:
        """Protect its GPUs, or move it; for one that is giving its GPUs back, keep room."""
        if self._setup.moves and self._setup.movers.item(self.candidates.rows.item(job)):
            self._move(job, contest_place, ways)
        elif contest_place < 0:
            self.place(job, ways, evict=False)
        else:
            super().keep_gpus(job, contest_place, ways)

    def place(self, job: int, ways: Sequence[Gang], evict: bool = True) -> Sites | None:
        """The placer may want to know whose gang it is, and what became of it."""
        if self._next_row is not None:
            self._next_row(self.candidates.rows.item(job))
        sites, on_laid = super().place(job, ways, evict), self._setup.how["on_laid"]
        if sites is not None and on_laid is not None:
            on_laid(sites)
        return sites

    def _move(self, job: int, contested: int, ways: Sequence[Gang]) -> None:
        row = self.candidates.rows.item(job)
        resized, here = self._setup.resized.item(row), self.contest.is_open(contested)
        evict = resized or self._setup.retyped.item(row)
        if not evict:  # a better place among the free ones is worth the way, nobody else's stop is
            ways = self._elsewhere(job, ways)
        if resized:
            self.contest.leave(contested)
        if self.place(job, ways, evict) is not None:
            self.moved.append(contested)
            self.contest.leave(contested)
        elif resized and here:
            self.contest.take_back(contested)
        elif self.contest.is_open(contested):
            self.contest.protect(contested)

    def _elsewhere(self, job: int, ways: Sequence[Gang]) -> list[Gang]:
        here = tuple(self._setup.view.lease_places.nodes_of(int(self.candidates.rows[job])).tolist())
        return [gang._replace(barred=(*gang.barred, *here)) for gang in ways]

    def _why(self, granted: Ints) -> Iterator[Saying]:
        rows, words = self.candidates.rows, self._words
        yield rows[self.waits & self.skipped(np.arange(len(rows)))], words.behind
        yield rows[self.misfits], words.misfit
        yield granted, words.granted
        if self.candidates.runs:
            yield rows[self.expected & (self.candidates.contest_place >= 0)], words.renewed
            yield from self._stopped()

    def _stopped(self) -> Iterator[Saying]:
        """Reasons for the leases that end."""
        words = self._words
        contested = self._contested_rows()
        yield contested[self.contest.evicted], words.revoked
        yield contested[self.promised], words.promised
        yield self._moved_rows(), words.moved

    def _contested_rows(self) -> Ints:
        return self.candidates.rows[self.candidates.contest_place >= 0]

    def _moved_rows(self) -> Ints:
        """Jobs that stop to go on where there is room for them."""
        return self._contested_rows()[[number for number in self.moved if not self.contest.is_open(number)]]
