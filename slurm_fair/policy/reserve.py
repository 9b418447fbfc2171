"""Reservations under rolling leases: a gang that stands first and fits nowhere gets nodes set aside.

Where each lease ends at a time of its own, single GPUs come free one by one, and small jobs take them. The first
in the order that does not fit therefore has nodes set aside once it has waited long enough: as few as it needs,
of those whose leases end soonest. Until the last of these leases is over, the others there are renewed to end with
it, and what is free there goes to nobody else. Then the gang goes first. One reservation stands at a time
for a GPU type.

No policy sees this. It is shown a view in which these GPUs are not to be had, and in which the gang has the
first place when its time has come. Its plan may only say that some gangs wait for less (`Plan.reserve_after`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np

from slurm_fair.model import LeaseTerms, Plan, ReservedNodes, Verdict
from slurm_fair.model.columns import Bools, Floats, Ints, any_of, find
from slurm_fair.model.ids import label
from slurm_fair.model.lease import NEVER_ENDS_SECONDS
from slurm_fair.model.reservation import reservations, with_reservations
from slurm_fair.policy.packing.gang import Gang, Pools
from slurm_fair.policy.packing.shapes import Shapes
from slurm_fair.policy.protocol import Policy
from slurm_fair.policy.view import View

SET_ASIDE = "GPUs of {nodes} are set aside for it: the last lease that it waits for ends in {seconds:.0f} s"
MAKES_WAY = "its node is set aside for job {job}: it keeps its GPUs for {seconds:.0f} s more"


class SoonestNodes(NamedTuple):
    """Nodes on which a gang could lie, the GPUs that it takes of each, and when the last of them is to be had."""

    nodes: Ints
    gpus: int
    due: float
    gpu_type: int


class _Ends(NamedTuple):
    """Free GPUs of each node, and where and when leases end there of jobs that can give way."""

    free: Ints
    row: Ints
    node: Ints
    gpus: Ints
    end: Floats

    @classmethod
    def of(cls, view: View, nodes: Ints | None = None) -> Self:
        """The ends of leases as the view has them, or of those on some nodes."""
        ends, jobs = view.lease_ends, view.snapshot.jobs
        goes = (jobs.revocable | view.revoking)[ends.row]
        if nodes is not None:
            here = np.zeros(len(view.bare_gpus), dtype=bool)
            here[nodes] = True
            goes &= here[ends.node]
        row, node, gpus = (column[goes] for column in (ends.row, ends.node, ends.gpus))
        end = ends.end[goes]
        return cls(
            view.bare_gpus, row, node, gpus, np.where(view.revoking[row], view.now, np.maximum(end, view.now))
        )

    def after(self, plan: Plan, view: View) -> Self:
        """The ends as the plan leaves them: a renewed or granted job holds GPUs until its new lease ends."""
        places, granted, renewed = plan.places, view.terms.end_for(view.now), view.terms.renewed_end(view.now)
        verdict = plan.verdict[self.row]
        stays, gone = verdict != Verdict.REVOKE, verdict == Verdict.REVOKE
        nodes = len(self.free)
        back = np.bincount(self.node[gone], self.gpus[gone], nodes) - np.bincount(
            places.node, places.gpus, nodes
        )
        end = np.where(verdict == Verdict.RENEW, renewed, self.end)
        row, node, gpus, end = (column[stays] for column in (self.row, self.node, self.gpus, end))
        return type(self)(
            self.free + back.astype(np.int64),
            np.concatenate((row, places.row)),
            np.concatenate((node, places.node)),
            np.concatenate((gpus, places.gpus)),
            np.concatenate((end, np.full(len(places), granted))),
        )


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
    share = np.full(len(names), one.gpus, dtype=np.int64)
    due = float(_free_at(view, share, _Ends.of(view, nodes))[nodes].max())
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
    if view.makes_way.size:
        verdict = verdict.copy()
        verdict[view.makes_way] = Verdict.RENEW
    return replace(
        plan, verdict=verdict, memory=memory, why=lambda: plan.explanation.saying(_sayings(view, kept))
    )


def _first_misfit(plan: Plan, view: View, kept: Sequence[ReservedNodes]) -> ReservedNodes | None:
    """A reservation for the first in the order that fits nowhere, if it is a gang that has waited long enough.

    It is made at the end of a lease: so it does not depend on how often somebody looks in between.
    """
    jobs, waits = view.snapshot.jobs, view.waiting_rows
    if not view.lapsed.size or not waits.size:
        return None
    after: Floats | float = view.terms.reserve_after
    if plan.reserve_after is not None:
        after = np.fmin(plan.reserve_after[waits], after)
    long = (jobs.gpus[waits] > 1) & (view.now - jobs.submit[waits] >= after)
    still = plan.verdict[waits] == Verdict.WAIT.code
    if not any_of(long & still):  # the ranks cost more than this
        return None
    if kept and not _type_left(Pools.of(view.snapshot), kept):
        return None
    waits, long = waits[still], long[still]
    rank = plan.rank[waits]
    if rank.max() < 0:
        return None
    first = np.where(rank < 0, np.iinfo(np.int64).max, rank).argmin()
    if not long[first]:
        return None
    row = int(waits[first])
    key = int(jobs.key[row])
    if any(each.key == key for each in kept):
        return None
    site = _soonest(view, row, kept, _Ends.of(view).after(plan, view))
    if site is None or site.due <= view.now or any(each.gpu_type == site.gpu_type for each in kept):
        return None
    names = tuple(view.snapshot.nodes.names[node] for node in site.nodes.tolist())
    return ReservedNodes(key, view.now, site.due, names, site.gpus, site.gpu_type)


def _type_left(pools: Pools, kept: Sequence[ReservedNodes]) -> bool:
    """True if no reservation stands for some GPU type."""
    taken = {each.gpu_type for each in kept}
    return any(gpu_type not in taken for gpu_type in pools.type_of[:-1].tolist())


def _soonest(view: View, row: int, kept: Sequence[ReservedNodes], ends: _Ends) -> SoonestNodes | None:
    """The nodes on which a job could start first."""
    pools, snapshot = Pools.of(view.snapshot), view.snapshot
    taken = np.isin(snapshot.nodes.names, [name for each in kept for name in each.nodes])
    sites = [
        site
        for gang in Shapes.of(pools, snapshot, np.array([row])).ways(np.zeros(1, dtype=np.int64))[0]
        if (site := _site_of(view, pools, gang, taken, ends)) is not None
    ]
    return min(sites, key=lambda site: site.due, default=None)


def _site_of(view: View, pools: Pools, gang: Gang, taken: Bools, ends: _Ends) -> SoonestNodes | None:
    """The nodes where a gang can lie first in this way, with the fewest GPUs that change hands."""
    able = pools.nodes[gang.pool] & ~taken
    if gang.whole:
        able &= pools.capacity == pools.size
    able[list(gang.barred)] = False
    if gang.wanted:
        able &= np.isin(np.arange(len(able)), gang.wanted)
    share = pools.size if gang.whole else np.full(len(able), gang.share, dtype=np.int64)
    at = np.where(able, _free_at(view, share, ends), np.inf)
    able = np.isfinite(at)
    if np.count_nonzero(able) < gang.nodes:
        return None
    due = float(np.partition(at, gang.nodes - 1)[gang.nodes - 1])
    in_time = (at <= due).nonzero()[0]
    change = np.maximum(share - ends.free, 0)[in_time]
    chosen = np.sort(in_time[np.argsort(change, kind="stable")[: gang.nodes]])
    return SoonestNodes(chosen, int(share[chosen].max()), due, int(pools.type_of[gang.pool]))


def _free_at(view: View, share: Ints, ends: _Ends) -> Floats:
    """The instant at which each node could give this many GPUs, if the leases there ended in time; inf = never."""
    order = np.lexsort((ends.end, ends.node))
    node, gpus, end = ends.node[order], ends.gpus[order], ends.end[order]
    through = gpus.cumsum()
    before = np.append(0, through)[node.searchsorted(np.arange(len(share)))]
    lacking = share - ends.free
    at = np.where(lacking <= 0, view.now, np.inf)
    enough = ((through - before[node] >= lacking[node]) & (lacking[node] > 0)).nonzero()[0][::-1]
    at[node[enough]] = end[enough]  # the earliest of each node is written last
    return at


def _sayings(view: View, kept: Sequence[ReservedNodes]) -> Iterator[tuple[Ints, str]]:
    """Rows, and what reservations have to do with them."""
    keys = view.snapshot.jobs.key
    for each in view.reserved:
        if each.due > view.now:
            rows = view.made_way_for(each)
            if rows.size:
                yield rows, MAKES_WAY.format(job=label(each.key), seconds=each.due - view.now)
    for each in kept:
        row = find(keys, np.array([each.key]))
        yield row[row >= 0], SET_ASIDE.format(nodes=", ".join(each.nodes), seconds=each.due - view.now)
