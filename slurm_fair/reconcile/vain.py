"""Promises that cannot be kept, each with its reason."""

from __future__ import annotations

import numpy as np

from slurm_fair.model import Leases, LeaseTerms, Placement, Snapshot
from slurm_fair.model.columns import Bools, Floats, Ints, any_of, find
from slurm_fair.model.sizes import shares
from slurm_fair.reconcile.free import GPUS, Free, in_all, needs, summed

_NO_NODE = "its node takes no new work any more"
_NO_GPUS = "its GPUs did not come free"
_NO_CPUS = "other jobs have the CPUs or memory of its nodes"
_NOT_OPENED = "its gate was not opened in time"


def in_vain(leases: Leases, row: Ints, waits: Ints, snapshot: Snapshot, terms: LeaseTerms) -> dict[int, str]:
    """The promises that are taken back, in the order of `waits`, and why.

    The gate is open, and yet Slurm has not started the job in time; or the gate has been shut for a whole term, or
    is on nodes that take no work any more, or waits for what somebody keeps.
    """
    shut, overdue = leases.opened[waits] <= 0, _overdue(leases, waits, snapshot, terms)
    why: dict[int, str] = {}
    if any_of(shut):
        why = dict.fromkeys(waits[shut & _out_of_service(leases, snapshot)[waits]].tolist(), _NO_NODE)
        why = _overdrawn(leases, row, waits, snapshot) | why
    for lease in waits[overdue].tolist():
        if leases.opened[lease] > 0:
            why[lease] = f"Slurm did not start it: {snapshot.reasons[row.item(lease)]}"
        elif lease not in why:
            why[lease] = _still_lacking(leases, row, waits, lease, snapshot)
    return {lease: why[lease] for lease in waits.tolist() if lease in why} if why else why


def _overdue(leases: Leases, waits: Ints, snapshot: Snapshot, terms: LeaseTerms) -> Bools:
    """True for promises whose time is over."""
    opened, granted = leases.opened[waits], leases.granted[waits]
    shut = opened <= 0
    overdue: Bools = np.where(
        shut,
        snapshot.time - granted > max(terms.term, terms.grace + terms.start_timeout),
        snapshot.time - opened > terms.start_timeout,
    )
    if any_of(shut & overdue):
        overdue &= ~shut | (snapshot.time > _until_left(leases, waits, snapshot, terms))
    return overdue


def _until_left(leases: Leases, promised: Ints, snapshot: Snapshot, terms: LeaseTerms) -> Floats:
    """The instant up to which each promise waits for jobs with a longer grace that are to leave its nodes."""
    asked = (leases.revoking & (leases.asked > 0)).nonzero()[0]
    until = np.zeros(len(snapshot.nodes))
    row = find(snapshot.jobs.key, leases.key[asked])
    for lease, job in zip(asked[row >= 0].tolist(), row[row >= 0].tolist(), strict=True):
        grace = terms.grace_of(snapshot.graces.get(leases.key.item(lease), 0.0))
        nodes = snapshot.held.nodes_of(job)
        until[nodes] = np.maximum(until[nodes], leases.asked.item(lease) + grace + terms.start_timeout)
    left = np.zeros(len(leases))
    if asked.size:
        places = _to_come(leases, promised, snapshot)
        np.maximum.at(left, places.row, until[places.node])
    return left[promised]


def _overdrawn(leases: Leases, row: Ints, promised: Ints, snapshot: Snapshot) -> dict[int, str]:
    """Behind shut gates, on nodes that have too little for all that was promised there: the latest promises, as
    many as it takes, and what there is too little of.

    Somebody who was to leave has stayed, or somebody else has come. Who was asked to leave counts as gone.
    """
    jobs, held, to_come = snapshot.jobs, snapshot.held, _to_come(leases, promised, snapshot)
    stays = jobs.running | jobs.suspended
    leaving = row[leases.revoking]
    stays[leaving[leaving >= 0]] = False
    held, count = held.take(stays[held.row]), len(snapshot.nodes.names)
    coming = shares(to_come, row[to_come.row], jobs, snapshot.sizes)
    kept = summed(held.node, shares(held, held.row, jobs, snapshot.sizes), count)
    both = zip(kept, summed(to_come.node, coming, count), in_all(snapshot.nodes), strict=True)
    too_many = [mine + new - total for mine, new, total in both]
    if not any(any_of(over[to_come.node] > 0) for over in too_many):
        return {}
    found = {}
    for lease in promised[np.lexsort((promised, leases.granted[promised]))[::-1]].tolist():
        first, last = to_come.row.searchsorted(lease), to_come.row.searchsorted(lease, side="right")
        node, mine = to_come.node[first:last], [share[first:last] for share in coming]
        pairs = list(zip(too_many, mine, strict=True))
        short = [any_of((over[node] > 0) & (share > 0)) for over, share in pairs]
        if leases.opened[lease] > 0 or not any(short):
            continue
        found[lease] = _NO_GPUS if short[0] else _NO_CPUS
        for over, share in pairs:
            over[node] -= share
    return found


def _still_lacking(leases: Leases, row: Ints, promised: Ints, lease: int, snapshot: Snapshot) -> str:
    """The reason why a promise was in vain, as far as looks show it."""
    sites = _to_come(leases, promised, snapshot).sites
    free = Free.of(snapshot)
    for opened in promised[leases.opened[promised] > 0].tolist():
        free.take(needs(snapshot, row.item(opened), sites.get(opened, ())))
    lacks = free.lacks(needs(snapshot, row.item(lease), sites.get(lease, ())))
    if not lacks:
        return _NOT_OPENED
    return _NO_GPUS if GPUS in lacks else _NO_CPUS


def _to_come(leases: Leases, promised: Ints, snapshot: Snapshot) -> Placement:
    """The promises, by lease, in the snapshot's numbers of nodes."""
    return leases.promises_by(leases.key, snapshot.nodes.names).only(promised)


def _out_of_service(leases: Leases, snapshot: Snapshot) -> Bools:
    """Leases on a node that takes no new work any more, or is gone."""
    nodes = snapshot.nodes
    if leases.node_names == nodes.names:
        out = ~nodes.usable
    else:
        usable = {name for name, ok in zip(nodes.names, nodes.usable.tolist(), strict=True) if ok}
        out = np.array([name not in usable for name in leases.node_names], dtype=bool)
    stuck = np.zeros(len(leases), dtype=bool)
    promises = leases.promises
    if len(promises):
        stuck[find(leases.key, promises.row[out[promises.node]])] = True
    return stuck
