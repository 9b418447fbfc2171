"""Reservations under rolling leases: a job that stands first and fits nowhere gets nodes set aside.

Where each lease ends at a time of its own, single GPUs come free one by one, with their CPUs and memory, and small
jobs take them. The first in the order for which the end of one lease is not enough therefore has nodes set aside
once it has waited long enough: as few as it needs, of those whose leases end soonest. Until the last of these
leases is over, the others there are renewed to end with it, and what is free there goes to nobody else. Then the
job goes first. One reservation stands at a time for a GPU type.

No policy sees this. It is shown a view in which these GPUs are not to be had, and in which the gang has the
first place when its time has come. Its plan may only say that some gangs wait for less (`Plan.reserve_after`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np

from slurm_fair.model import LeaseTerms, Plan, ReservedNodes, Verdict
from slurm_fair.model.columns import Bools, Floats, Ints, all_of, any_of, find
from slurm_fair.model.ids import label
from slurm_fair.model.lease import NEVER_ENDS_SECONDS
from slurm_fair.model.reservation import reservations, with_reservations
from slurm_fair.model.sizes import shares
from slurm_fair.policy.never_stopped import never_stopped
from slurm_fair.policy.packing.gang import Gang, Pools
from slurm_fair.policy.packing.shapes import Shapes
from slurm_fair.policy.protocol import Policy
from slurm_fair.policy.turns import next_renewals
from slurm_fair.policy.view import View

SET_ASIDE = "GPUs of {nodes} are set aside for it: the last lease that it waits for ends in {seconds:.0f} s"
MAKES_WAY = "its node is set aside for job {job}: it keeps its GPUs for {seconds:.0f} s more"


class SoonestNodes(NamedTuple):
    """Nodes on which a gang could lie, what it takes of each, and when the last of them is to be had."""

    nodes: Ints
    amounts: tuple[int, ...]  # GPUs, CPUs, memory
    due: float
    gpu_type: int


class _Ends(NamedTuple):
    """Free amounts of each node, and where and when leases end there of jobs that can give way.

    Amounts are GPUs alone where no job asks for CPUs or memory, else all three.
    """

    free: tuple[Ints, ...]
    row: Ints
    node: Ints
    amounts: tuple[Ints, ...]
    end: Floats

    @classmethod
    def of(cls, view: View, able: Bools, nodes: Ints | None = None) -> Self:
        """The ends of leases as the view has them, or of those on some nodes; `able` = jobs that give way."""
        places = view.lease_places
        goes = able[places.row]
        if nodes is not None:
            here = np.zeros(len(view.bare_gpus), dtype=bool)
            here[nodes] = True
            goes &= here[places.node]
        row, node = places.row[goes], places.node[goes]
        free: tuple[Ints, ...] = (view.bare_gpus,)
        amounts: tuple[Ints, ...] = (places.gpus,)
        if view.wants_more_than_gpus:
            free = (view.bare_gpus, view.bare_cpus, view.bare_memory_mb)
            amounts = view.lease_amounts
        end = np.where(view.revoking[row], view.now, np.maximum(view.lease_end[row], view.now))
        return cls(free, row, node, tuple(each[goes] for each in amounts), end)

    def after(self, plan: Plan, view: View, able: Bools) -> Self:
        """The ends as the plan leaves them: a renewed or granted job holds GPUs until its new lease ends.

        One that is granted and does not give way holds them for good.
        """
        places, granted, renewed = plan.places, view.terms.end_for(view.now), view.terms.renewed_end(view.now)
        verdict = plan.verdict[self.row]
        stays, gone = verdict != Verdict.REVOKE, verdict == Verdict.REVOKE
        new = shares(places, places.row, view.snapshot.jobs, view.snapshot.sizes)[: len(self.free)]
        nodes = len(self.free[0])
        free = tuple(
            have
            + np.bincount(self.node[gone], held[gone], nodes).astype(np.int64)
            - np.bincount(places.node, taken, nodes).astype(np.int64)
            for have, held, taken in zip(self.free, self.amounts, new, strict=True)
        )
        key, ended = view.snapshot.jobs.key[self.row], view.lease_end[self.row]
        over = (ended <= view.now) & ~view.revoking[self.row]
        beat = next_renewals(key, ended, view.terms, view.memory)  # until then it keeps its GPUs
        end = np.where(over, np.where(beat <= view.now, renewed, beat), self.end)[stays]
        goes = able[places.row]
        return type(self)(
            free,
            np.concatenate((self.row[stays], places.row[goes])),
            np.concatenate((self.node[stays], places.node[goes])),
            tuple(
                np.concatenate((held[stays], taken[goes]))
                for held, taken in zip(self.amounts, new, strict=True)
            ),
            np.concatenate((end, np.full(np.count_nonzero(goes), granted))),
        )

    def one_is_enough(self, need: Sequence[Ints | int], able: Bools) -> bool:
        """True if on some able node the end of a single lease leaves what a job needs."""
        enough = able[self.node]
        for free, held, needed in zip(self.free, self.amounts, need, strict=True):
            lacking = needed - free
            enough &= held >= lacking[self.node]
        return any_of(enough)

    def met_at(self, need: Sequence[Ints | int], now: float) -> Floats:
        """The instant at which each node could give so much, if the leases there ended in time; inf = never."""
        order = np.lexsort((self.end, self.node))
        node, end = self.node[order], self.end[order]
        first = node.searchsorted(np.arange(len(self.free[0])))
        at = np.full(len(self.free[0]), now)
        for free, held, needed in zip(self.free, self.amounts, need, strict=True):
            through, lacking = held[order].cumsum(), needed - free
            before = np.append(0, through)[first]
            enough = ((through - before[node] >= lacking[node]) & (lacking[node] > 0)).nonzero()[0][::-1]
            met = np.where(lacking <= 0, now, np.inf)
            met[node[enough]] = end[enough]  # the earliest of each node is written last
            at = np.maximum(at, met)
        return at


def _gives_way(view: View, memory: Mapping[str, Any]) -> Bools:
    """Jobs for the ends of whose leases somebody may wait: not those that their policy never stops."""
    jobs = view.snapshot.jobs
    kept = find(jobs.key, never_stopped(memory))
    able: Bools = (jobs.revocable & ~view.flags(kept[kept >= 0])) | view.revoking
    return able


def reserves(terms: LeaseTerms, policy: Policy) -> bool:
    """True where nodes are set aside: not where leases end together, nor under a policy that stops nobody."""
    if terms.aligned or max(terms.reserve_after, terms.term) >= NEVER_ENDS_SECONDS:
        return False
    return float(getattr(policy, "lease_seconds", 0.0)) < NEVER_ENDS_SECONDS


def set_aside(view: View, policy: Policy) -> View:
    """The view with the reservations of the last plan that still stand."""
    kept = reservations(view.memory)
    if not kept or not reserves(view.terms, policy):
        return view
    standing = [each for each in (_still(view, one) for one in kept) if each is not None]
    return replace(view, reserved=tuple(standing)) if standing else view


def _still(view: View, one: ReservedNodes) -> ReservedNodes | None:
    """The reservation with the time at which its GPUs can be had as things are now; None where it is void."""
    row = int(find(view.snapshot.jobs.key, np.array([one.key]))[0])
    if row < 0 or not view.waiting[row]:
        return None
    names = view.snapshot.nodes.names
    nodes = np.array([names.index(name) if name in names else -1 for name in one.nodes], dtype=np.int64)
    if nodes.min(initial=0) < 0 or not view.snapshot.nodes.usable[nodes].all():
        return None
    ends = _Ends.of(view, _gives_way(view, view.memory), nodes)
    due = float(ends.met_at(one.amounts[: len(ends.free)], view.now)[nodes].max())
    return one._replace(due=due) if np.isfinite(due) else None


def with_new(plan: Plan, view: View, policy: Policy) -> Plan:
    """The plan with the reservations that stand after it; leases on these nodes are renewed in it."""
    if not reserves(view.terms, policy):
        return plan
    granted = set(view.snapshot.jobs.key[plan.granted].tolist())
    kept = [each for each in view.reserved if each.key not in granted and each.due > view.now]
    new = _first_misfit(plan, view, kept)
    if new is not None:
        kept.append(new)
    memory = with_reservations(plan.memory, kept)
    if not kept and not view.reserved:
        return plan if memory is plan.memory else replace(plan, memory=memory)
    verdict = plan.verdict
    if view.kept_until_gang.size:
        verdict = verdict.copy()
        verdict[view.kept_until_gang] = Verdict.RENEW
    return replace(
        plan, verdict=verdict, memory=memory, why=lambda: plan.explanation.saying(_sayings(view, kept))
    )


def _first_misfit(plan: Plan, view: View, kept: Sequence[ReservedNodes]) -> ReservedNodes | None:
    """A reservation for the first in the order that fits nowhere, if it has waited long enough.

    Who has run has had its turn, and waits a term more. A job of one GPU is given the next that comes free, unless
    that leaves it too few CPUs or too little memory. It is made at the end of a lease: so it does not depend on
    how often somebody looks in between.
    """
    jobs, waits = view.snapshot.jobs, view.waiting_rows
    if not view.decided_rows.size or not waits.size:
        return None
    long = _waited_for(plan, view, waits, view.terms.reserve_after)
    if not view.wants_more_than_gpus:
        long &= jobs.gpus[waits] > 1
    still = plan.verdict[waits] == Verdict.WAIT.code
    if not any_of(long & still):  # the ranks cost more than this
        return None
    if kept and not _type_left(Pools.of(view.snapshot), kept):
        return None
    waits, long = waits[still], long[still]
    first = first_in_order(plan, waits)
    if first < 0 or not long[first]:
        return None
    row = int(waits[first])
    key = int(jobs.key[row])
    if any(each.key == key for each in kept):
        return None
    ran = view.ran_seconds.item(row) > 0
    if ran and not all_of(
        _waited_for(plan, view, waits[[first]], view.terms.reserve_after + view.terms.term)
    ):
        return None
    able = _gives_way(view, plan.memory)
    site = _soonest(view, row, kept, _Ends.of(view, able).after(plan, view, able))
    if site is None or site.due <= view.now or any(each.gpu_type == site.gpu_type for each in kept):
        return None
    names = tuple(view.snapshot.nodes.names[node] for node in site.nodes.tolist())
    gpus, *more = site.amounts
    return ReservedNodes(key, view.now, site.due, names, gpus, site.gpu_type, *more)


def _waited_for(plan: Plan, view: View, rows: Ints, seconds: float) -> Bools:
    """True for jobs that have waited for so long, or for as long as their policy says if that is less."""
    waited = view.now - view.snapshot.jobs.submit[rows]
    long: Bools = waited >= (
        seconds if plan.reserve_after is None else np.fmin(plan.reserve_after[rows], seconds)
    )
    return long


def first_in_order(plan: Plan, rows: Ints) -> int:
    """The place among these rows of the one that goes first in the plan's order; -1 where none has a rank."""
    rank = plan.rank[rows]
    if rank.max(initial=-1) < 0:
        return -1
    return int(np.where(rank < 0, np.iinfo(np.int64).max, rank).argmin())


def _type_left(pools: Pools, kept: Sequence[ReservedNodes]) -> bool:
    """True if no reservation stands for some GPU type."""
    taken = {each.gpu_type for each in kept}
    return any(gpu_type not in taken for gpu_type in pools.type_of[:-1].tolist())


def _soonest(view: View, row: int, kept: Sequence[ReservedNodes], ends: _Ends) -> SoonestNodes | None:
    """The nodes on which a job could start first."""
    pools, snapshot = Pools.of(view.snapshot), view.snapshot
    ways = Shapes.of(pools, snapshot, np.array([row])).ways(np.zeros(1, dtype=np.int64))[0]
    able = ~np.isin(snapshot.nodes.names, [name for each in kept for name in each.nodes])
    single = [gang for gang in ways if gang.gpus == 1]
    if any(ends.one_is_enough(_need(pools, gang, ends), able & _able(pools, gang)) for gang in single):
        return None
    sites = [_site_of(view, pools, gang, able & _able(pools, gang), ends) for gang in ways]
    return min((site for site in sites if site is not None), key=lambda site: site.due, default=None)


def _able(pools: Pools, gang: Gang) -> Bools:
    """Nodes on which a gang may lie in this way."""
    able: Bools = pools.nodes[gang.pool].copy()
    if gang.whole:
        able &= pools.capacity == pools.size
    able[list(gang.barred)] = False
    if gang.wanted:
        able &= np.isin(np.arange(len(able)), gang.wanted)
    return able


def _need(pools: Pools, gang: Gang, ends: _Ends) -> tuple[Ints | int, ...]:
    """The amounts that a gang takes of each of its nodes, as many as `ends` has."""
    share = pools.size if gang.whole else np.full(len(pools.size), gang.share, dtype=np.int64)
    return (share, gang.cpus, gang.memory_mb)[: len(ends.free)]


def _site_of(view: View, pools: Pools, gang: Gang, able: Bools, ends: _Ends) -> SoonestNodes | None:
    """The nodes where a gang can lie first in this way.

    Of these it takes those with the fewest GPUs that change hands, and of such those where jobs save soonest.
    """
    need = _need(pools, gang, ends)
    at = np.where(able, ends.met_at(need, view.now), np.inf)
    able = np.isfinite(at)
    if np.count_nonzero(able) < gang.nodes:
        return None
    due = float(np.partition(at, gang.nodes - 1)[gang.nodes - 1])
    in_time = (at <= due).nonzero()[0]
    change = np.maximum(need[0] - ends.free[0], 0)[in_time]
    order = np.lexsort((_saving(view, ends, at)[in_time], change))
    chosen = np.sort(in_time[order[: gang.nodes]])
    amounts = tuple(int(np.broadcast_to(each, len(able))[chosen].max()) for each in need)
    return SoonestNodes(chosen, amounts, due, int(pools.type_of[gang.pool]))


def _saving(view: View, ends: _Ends, until: Floats) -> Floats:
    """The seconds within which all jobs of each node have saved whose leases end there until an instant."""
    graces, seconds = view.snapshot.graces, np.zeros(len(until))
    if not graces:
        return seconds
    leave = ends.end <= until[ends.node]
    keys = view.snapshot.jobs.key[ends.row[leave]].tolist()
    np.maximum.at(seconds, ends.node[leave], [view.terms.grace_of(graces.get(key, 0.0)) for key in keys])
    return seconds


def _sayings(view: View, kept: Sequence[ReservedNodes]) -> Iterator[tuple[Ints, str]]:
    """Rows, and what reservations have to do with them."""
    keys = view.snapshot.jobs.key
    for each in view.reserved:
        if each.due > view.now:
            rows = view.over_on_nodes_of(each)
            if rows.size:
                yield rows, MAKES_WAY.format(job=label(each.key), seconds=each.due - view.now)
    for each in kept:
        row = find(keys, np.array([each.key]))
        yield row[row >= 0], SET_ASIDE.format(nodes=", ".join(each.nodes), seconds=each.due - view.now)
