"""The profiler: jobs run for a short while on each GPU type on which nobody knows how fast they are.

Only jobs take part whose users ask for it, and that can save and be requeued. Before the policy decides they are
given free GPUs, so many at a time and for so many GPU-hours a day; nobody is stopped for it. Such a turn is a
lease that ends early: once the job has reported enough steps, or after a set time. From then on the job is like
all others. It leaves its GPUs for a turn on another type only where there is room for that. The tenant is charged
as for any lease.

No policy knows of this. It is shown a view in which these GPUs are not to be had and these jobs cannot start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slurm_fair.model import NO_PLACES, Blocked, Leases, Placement, Plan, Profiles, Verdict
from slurm_fair.model.columns import Bools, Floats, Ints, find
from slurm_fair.policy.draft import placed
from slurm_fair.policy.no_turn import TurnBounds, TurnsLeft, reasons, switched_off
from slurm_fair.policy.orders.array_limits import over_array_limit
from slurm_fair.policy.orders.in_line import gpus_ahead
from slurm_fair.policy.packing.gang import Pools, Sites
from slurm_fair.policy.packing.placement import Placer
from slurm_fair.policy.packing.room import Room
from slurm_fair.policy.packing.shapes import Shapes
from slurm_fair.policy.protocol import Policy
from slurm_fair.policy.reach import placer_of
from slurm_fair.policy.turns import Turn, TurnBook, Turns, has_turns, without_turns
from slurm_fair.policy.view import View

GETS = "it has a short turn on {gpu_type} GPUs, so that its speed there becomes known"
HAS = "its speed on {gpu_type} GPUs is measured: its turn ends in {seconds:.0f} s at the latest"
MOVES = "its turn on {gpu_type} GPUs is over, and another GPU type on which its speed is not known is free"
_MOST_TRIED = 64  # jobs for which one look seeks a place


@dataclass(frozen=True, slots=True)
class Profiling:
    """The bounds of a site on such turns."""

    gpus: int = 8  # at a time
    seconds: float = 180.0  # of a turn, from the start of its job
    gpu_hours: float = 8.0  # a day
    iterations: int = 30  # reported steps after which a turn is over
    tries: int = 2  # of a job on each GPU type


def ended_with_turns(view: View, profiling: Profiling) -> Leases:
    """The leases; the lease of a job in its turn ends with the turn."""
    turns = [turn for turn in TurnBook.kept(view.memory, view.now).turns if not turn.over]
    if not turns:
        return view.leases
    leases, least = view.leases, view.terms.min_runtime
    at = find(leases.key, np.array([turn.key for turn in turns], dtype=np.int64))
    runs = at >= 0
    runs[runs] = leases.running[at[runs]]
    turns, at = [turn for turn, does in zip(turns, runs, strict=True) if does], at[runs]
    until = np.where(_reported(turns, view, profiling), view.now, leases.start[at] + profiling.seconds)
    end = leases.end.copy()
    end[at] = np.minimum(end[at], np.maximum(until, leases.start[at] + least))
    return leases.with_columns(end=end)


def _reported(turns: Sequence[Turn], view: View, profiling: Profiling) -> Bools:
    """Turns of jobs whose speed is known there, from enough reported steps."""
    profiles = view.snapshot.profiles
    if profiles is None:
        return np.zeros(len(turns), dtype=bool)
    at = _profiles_at(view, [turn.key for turn in turns], profiles)
    kind = np.array([_type_at(view, turn.gpu_type) for turn in turns], dtype=np.int64)
    enough = (at >= 0) & (kind >= 0)
    enough[enough] = profiles.measured[at[enough], kind[enough]]
    enough[enough] = profiles.steps[at[enough]] >= profiling.iterations
    return enough


def _profiles_at(view: View, keys: Sequence[int], profiles: Profiles) -> Ints:
    """Rows of these jobs in the profiles, -1 of one that asks for nothing."""
    return find(profiles.row, find(view.snapshot.jobs.key, np.array(keys, dtype=np.int64)))


def _type_at(view: View, gpu_type: str) -> int:
    types = view.snapshot.gpu_types
    return types.index(gpu_type) if gpu_type in types else -1


def with_turns(view: View, policy: Policy, profiling: Profiling | None) -> tuple[View, Turns | None]:
    """The view that a policy is shown, and the turns that are not its business; None where nobody has any."""
    if profiling is None or (view.snapshot.profiles is None and not has_turns(view.memory)):
        return view, None
    book = _brought_up(TurnBook.kept(view.memory, view.now), view)
    found = _Seekers(view, profiling, book, placer_of(policy)).found()
    if not found:
        return view, Turns(book)
    rows, sites = np.array(list(found), dtype=np.int64), [on for _, on in found.values()]
    new = tuple(_turn(view, row, *of) for row, of in found.items())
    places = placed(rows, sites)
    blocked = view.snapshot.jobs.blocked.copy()
    blocked[rows] = Blocked.UNSETTLED
    jobs = view.snapshot.jobs.with_columns(blocked=blocked)
    shown = replace(view, snapshot=replace(view.snapshot, jobs=jobs), turns=places)
    return shown, Turns(book, new, places)


def _turn(view: View, row: int, kind: int, sites: Sites) -> Turn:
    seen = view.snapshot
    tenant = seen.tenants.names[seen.jobs.tenant.item(row)]
    return Turn(seen.jobs.key.item(row), seen.gpu_types[kind], tenant, gpus_of(sites), view.now)


def _brought_up(book: TurnBook, view: View) -> TurnBook:
    """The book without turns whose leases are gone, and without the tries of jobs that are."""
    at = find(view.leases.key, np.array([turn.key for turn in book.turns], dtype=np.int64))
    stands = at >= 0
    leaving = np.array([turn.over for turn in book.turns], dtype=bool)
    stands[stands] &= ~leaving[stands] | view.leases.revoking[at[stands]]
    gone = [turn for turn, does in zip(book.turns, stands.tolist(), strict=True) if not does]
    jobs = view.snapshot.jobs
    row = find(jobs.key, np.array([key for key, _ in book.tries], dtype=np.int64))
    lives = (row >= 0) & ~np.append(jobs.done, True)[row]
    tries = {of: book.tries[of] for of, does in zip(book.tries, lives.tolist(), strict=True) if does}
    return book.without(gone, view.now)._replace(tries=tries)


@dataclass
class _Seekers:
    """The search for places of jobs whose speed is not known on some GPU type."""

    view: View
    profiling: Profiling
    book: TurnBook
    lay: Placer

    def found(self) -> dict[int, tuple[int, Sites]]:
        """GPU type and place of each row that gets a turn."""
        view, profiles = self.view, self.view.snapshot.profiles
        if profiles is None or view.due_gangs.size or not view.terms.grants_at(view.now):
            return {}
        left, day, had = self.gpus_left(), self.day_left(), self.had()
        offered, jobs = self.offered(profiles), view.snapshot.jobs
        found: dict[int, tuple[int, Sites]] = {}
        room: Room | None = None
        for at in self.in_order(profiles, offered, min(left, day), had):
            row = profiles.row.item(at)
            tenant = jobs.tenant.item(row)
            most = min(left, day - had[tenant])
            if jobs.gpus[row] > most:
                continue
            room = room or room_of(view)
            place = self.place_in(room, row, np.flatnonzero(offered[at]), most)
            if place is not None:
                found[row] = place
                offered[profiles.job_class == profiles.job_class[at], place[0]] = False
                gpus = gpus_of(place[1])
                left, day, had[tenant] = left - gpus, day - gpus, had[tenant] + gpus
        return found

    @property
    def seconds(self) -> float:
        """The longest time that a turn may last."""
        return max(self.profiling.seconds, self.view.terms.min_runtime)

    def gpus_left(self) -> int:
        """GPUs that further turns may have now."""
        return self.profiling.gpus - sum(turn.gpus for turn in self.book.turns)

    def day_left(self) -> float:
        """GPUs for which the day has room for whole turns."""
        return self.profiling.gpu_hours * 3600 / self.seconds - sum(self.turns_of().values())

    def had(self) -> Floats:
        """Turns that each tenant had of the day, in the same unit; one that had more than is left gets no more."""
        turns = self.turns_of()
        return np.array([turns.get(name, 0.0) for name in self.view.snapshot.tenants.names])

    def turns_of(self) -> dict[str, float]:
        """The day's turns by tenant; those under way are taken to last as long as they may."""
        had = {name: spent / self.seconds for name, spent in self.book.spent.items()}
        for turn in self.book.turns:
            had[turn.tenant] = had.get(turn.tenant, 0.0) + turn.gpus
        return had

    def offered(self, profiles: Profiles) -> Bools:
        """[row of the profiles, GPU type]: not known, not under way, and not tried too often."""
        offered: Bools = ~profiles.measured & ~self.tried(profiles)
        for at, kind in self.pairs(profiles, [(turn.key, turn.gpu_type) for turn in self.book.turns]):
            offered[profiles.job_class == profiles.job_class[at], kind] = False
        return offered

    def tried(self, profiles: Profiles) -> Bools:
        """[row of the profiles, GPU type]: as often as a job may."""
        tried, tries = np.zeros(profiles.measured.shape, dtype=bool), self.book.tries
        for at, kind in self.pairs(profiles, [of for of in tries if tries[of] >= self.profiling.tries]):
            tried[at, kind] = True
        return tried

    def pairs(self, profiles: Profiles, of: Sequence[tuple[int, str]]) -> Iterator[tuple[int, int]]:
        """Row of the profiles and GPU type of each of these that are there."""
        rows = _profiles_at(self.view, [key for key, _ in of], profiles).tolist()
        for at, (_, gpu_type) in zip(rows, of, strict=True):
            kind = _type_at(self.view, gpu_type)
            if at >= 0 and kind >= 0:
                yield at, kind

    def in_order(self, profiles: Profiles, offered: Bools, most: float, had: Floats) -> list[int]:
        """Rows of the profiles that may get a turn: tenants that had least of it today first, then the oldest.

        What goes before a job of its own tenant counts as had.

        Of a class and size one at each look. A gang for which nodes are set aside has its turn there.
        """
        view, jobs, row = self.view, self.view.snapshot.jobs, profiles.row
        free = np.bincount(view.snapshot.nodes.gpu_type, view.free_gpus, offered.shape[1]) > 0
        able = (
            view.waiting[row] & jobs.revocable[row] & (jobs.gpus[row] <= most) & (offered & free).any(axis=1)
        )
        able &= ~np.isin(jobs.key[row], [each.key for each in view.reserved])
        at = np.flatnonzero(able)
        if not at.size:
            return []
        at = at[np.lexsort((jobs.key[row[at]], view.first_submit[row[at]], jobs.tenant[row[at]]))]
        at = at[~over_array_limit(view, row[at])]
        kinds = np.stack((profiles.job_class[at], jobs.gpus[row[at]]))
        _, first = np.unique(kinds, axis=1, return_index=True)
        at = at[np.sort(first)]
        tenant, gpus = jobs.tenant[row[at]], jobs.gpus[row[at]]
        before = had[tenant] + gpus_ahead(tenant, gpus)
        return [*map(int, at[np.lexsort((view.first_submit[row[at]], before))][:_MOST_TRIED])]

    def place_in(self, room: Room, row: int, kinds: Ints, most: float) -> tuple[int, Sites] | None:
        """The first of these GPU types that has room for the job, and where; that room is then taken."""
        pools, snapshot = room.pools, self.view.snapshot
        for kind in kinds.tolist():
            shapes = Shapes.of(pools, snapshot, np.array([row]), np.array([kind]))
            for gang in shapes.ways_of(0):
                sites = self.lay(room, gang) or []
                taken = gang.taken(sites, pools.size_of, room.gpus_of)
                if not sites or gpus_of(taken) > most:
                    continue
                for node, gpus in taken:
                    room.add(node, -gpus, -gang.cpus, -gang.memory_mb)
                return kind, sites if gang.whole else taken
        return None

    def reasons(self, turns: Turns) -> Mapping[str, Ints]:
        """The jobs that get no turn, by the reason; `turns` are those of this look."""
        view, profiles, bounds = self.view, self.view.snapshot.profiles, self.profiling
        if profiles is None:
            return {}
        after = replace(self, book=turns.book._replace(turns=(*turns.book.turns, *turns.new)))
        offered, nodes = after.offered(profiles), view.snapshot.nodes
        free = view.free_gpus - turns.places.per_node(len(view.free_gpus))
        left = TurnsLeft(
            after.gpus_left(),
            after.day_left(),
            after.had(),
            after.tried(profiles),
            offered,
            np.bincount(nodes.gpu_type, free, offered.shape[1]).astype(np.int64),
        )
        have = _rows(view, [turn for turn in after.book.turns if not turn.over])
        return reasons(view, profiles, TurnBounds(bounds.gpus, bounds.gpu_hours, bounds.tries), left, have)

    def movers(self, taken: Placement, ended: Sequence[Turn]) -> list[Turn]:
        """Turns among these whose jobs find room for one on another type, once these GPUs are taken."""
        profiles, movers = self.view.snapshot.profiles, list[Turn]()
        if profiles is None or not ended:
            return movers
        offered, room = self.offered(profiles), room_of(self.view, taken)
        day, had = self.day_left(), self.turns_of()
        rows = _profiles_at(self.view, [turn.key for turn in ended], profiles).tolist()
        for turn, at in zip(ended, rows, strict=True):
            if at < 0 or turn.gpus > day - had[turn.tenant]:
                continue
            kinds = np.flatnonzero(offered[at])
            kinds = kinds[kinds != _type_at(self.view, turn.gpu_type)]
            place = self.place_in(room, profiles.row.item(at), kinds, turn.gpus)
            if place is not None:
                offered[profiles.job_class == profiles.job_class[at], place[0]] = False
                movers.append(turn)
        return movers


def gpus_of(sites: Sites) -> int:
    """GPUs of a place in all."""
    return sum(gpus for _, gpus in sites)


def room_of(view: View, taken: Placement = NO_PLACES) -> Room:
    """The room that is free, less GPUs that were taken of it."""
    gpus = view.free_gpus - taken.per_node(len(view.free_gpus))
    return Room(Pools.of(view.snapshot), gpus, view.spare_cpus, view.spare_memory_mb)


def with_their_turns(
    plan: Plan, view: View, policy: Policy, profiling: Profiling | None, turns: Turns | None
) -> Plan:
    """The plan of a policy with the turns; `view` is as the controller sees it."""
    if profiling is None or turns is None:
        return _of_nobody(plan, view)
    seekers = _Seekers(view, profiling, turns.book, placer_of(policy))
    decided = set(view.decided_rows.tolist())
    verdict, places = plan.verdict.copy(), plan.places.plus(turns.places)
    verdict[_rows(view, turns.new)] = Verdict.GRANT
    row_of = dict(zip(turns.book.turns, _rows(view, turns.book.turns), strict=True))
    ended = [turn for turn, row in row_of.items() if not turn.over and row in decided]
    moves = seekers.movers(places, [turn for turn in ended if may_leave(view, row_of[turn], verdict)])
    verdict[[row_of[turn] for turn in moves]] = Verdict.REVOKE
    leave = {turn for turn in ended if verdict[row_of[turn]] == Verdict.REVOKE}
    goes_on = [turn for turn in ended if turn not in leave]
    stand = [turn._replace(over=True) if turn in leave else turn for turn in row_of if turn not in goes_on]
    tries = dict(turns.book.tries)
    for turn in turns.new:
        tries[turn[:2]] = tries.get(turn[:2], 0) + 1
    book = turns.book.without(goes_on, view.now)._replace(turns=(*stand, *turns.new), tries=tries)
    return replace(
        plan,
        verdict=verdict,
        places=places,
        memory=book.into(plan.memory),
        why=lambda: plan.explanation.saying(_sayings(view, turns, moves)).with_columns(
            no_turn=seekers.reasons(turns)
        ),
    )


def _of_nobody(plan: Plan, view: View) -> Plan:
    """The plan where nobody has a turn. What was spent today counts if the profiler is switched on again today."""
    memory = without_turns(plan.memory)
    if has_turns(view.memory):
        book = _brought_up(TurnBook.kept(view.memory, view.now), view)
        memory = book.without(book.turns, view.now).into(memory)
    plan = plan if memory is plan.memory else replace(plan, memory=memory)
    if view.snapshot.profiles is None:
        return plan
    return replace(plan, why=lambda: plan.explanation.with_columns(no_turn=switched_off(view)))


def may_leave(view: View, row: int, verdict: np.ndarray[Any, Any]) -> bool:
    """True if the job of a turn that is over would go on, and could save and leave."""
    could = view.over[row] and view.snapshot.jobs.revocable[row] and view.terms.grants_at(view.now)
    return bool(could and verdict[row] == Verdict.RENEW)


def _rows(view: View, turns: Sequence[Turn]) -> list[int]:
    keys = np.array([turn.key for turn in turns], dtype=np.int64)
    return [*map(int, find(view.snapshot.jobs.key, keys))]


def _sayings(view: View, turns: Turns, moves: Sequence[Turn]) -> Iterator[tuple[Ints, str]]:
    """Rows, and what is said of their turns."""
    for turn, row in zip(turns.new, _rows(view, turns.new), strict=True):
        yield np.array([row]), GETS.format(gpu_type=turn.gpu_type)
    for turn, row in zip(turns.book.turns, _rows(view, turns.book.turns), strict=True):
        if turn in moves:
            yield np.array([row]), MOVES.format(gpu_type=turn.gpu_type)
        elif row >= 0 and not turn.over and view.leases.running[view.lease_row[row]]:
            left = view.lease_end[row] - view.now
            if left > 0:
                yield np.array([row]), HAS.format(gpu_type=turn.gpu_type, seconds=left)
