"""The jobs that get the GPUs of a job that is asked to save, and requests that no job needs any more."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from slurm_fair.model import Event, EventKind, LeasePhase, Leases, LeaseTerms, Placement, Snapshot, Standing
from slurm_fair.model.columns import Ints, any_of, find
from slurm_fair.model.ids import label
from slurm_fair.model.sizes import shares
from slurm_fair.reconcile.events import lease_event
from slurm_fair.reconcile.free import summed
from slurm_fair.reconcile.lease_changes import with_next_term

LEASE_OVER = "its lease is over"
NEEDED_NO_MORE = "nobody needs its GPUs any more: it goes on"  # events keep it and views look for it


class Spare(NamedTuple):
    """GPUs of each node less all leases and promises; below zero where a promise waits for a job to leave."""

    gpus: Ints
    cpus: Ints
    memory_mb: Ints


def for_whom(
    leases: Leases, snapshot: Snapshot, before: Mapping[int, tuple[int, ...]]
) -> Mapping[int, tuple[int, ...]]:
    """The keys of the jobs that get the GPUs of each job that is to give them back.

    A job that is to run elsewhere itself leaves for nobody else: it stands for itself. `before` is what was known.
    """
    revoking = leases.revoking.nonzero()[0]
    if not revoking.size:
        return {}
    keys: list[int] = leases.key[revoking].tolist()
    new = [key for key in keys if key not in before]
    found = {key: before[key] for key in keys if key in before}
    if new:
        found.update(_promised_their_nodes(new, leases, snapshot))
    return found


def requests(standing: Standing, snapshot: Snapshot) -> dict[int, dict[str, Any]]:
    """The requests to give way, by key of the job: when, why, and for which jobs of which tenants.

    Of a job that has left the queue since then its tenant is not known any more.
    """
    leases, jobs, found = standing.leases, snapshot.jobs, {}
    for lease in (leases.revoking & (leases.asked > 0)).nonzero()[0].tolist():
        key = leases.key.item(lease)
        whom = standing.asked_for.get(key, ())
        rows = find(jobs.key, np.array(whom, dtype=np.int64)).tolist()
        tenants = [snapshot.tenants.names[jobs.tenant.item(row)] if row >= 0 else "" for row in rows]
        others = [{"job": label(one), "tenant": tenant} for one, tenant in zip(whom, tenants, strict=True)]
        found[key] = {"time": leases.asked.item(lease), "why": LEASE_OVER, "for": others}
    return found


def _promised_their_nodes(keys: list[int], leases: Leases, snapshot: Snapshot) -> dict[int, tuple[int, ...]]:
    """The jobs that were promised GPUs of these jobs' nodes: by the newest plan, where it promised any."""
    jobs, rows = snapshot.jobs, find(snapshot.jobs.key, np.array(keys, dtype=np.int64))
    fresh: dict[int, list[int]] = {}
    earlier: dict[int, list[int]] = {}
    for lease, row, node in _promises(leases, snapshot):
        by_node = fresh if leases.granted[lease] >= snapshot.time else earlier
        by_node.setdefault(node, []).append(jobs.key.item(row))
    held = snapshot.held.only(rows[rows >= 0]).sites
    after = {}
    for key, row in zip(keys, rows.tolist(), strict=True):
        nodes = [node for node, _ in held.get(row, ())]
        names = [key for node in nodes for key in fresh.get(node, ())]
        names = names or [key for node in nodes for key in earlier.get(node, ())]
        after[key] = tuple(dict.fromkeys(names)) or (key,)
    return after


def _promises(leases: Leases, snapshot: Snapshot) -> list[tuple[int, int, int]]:
    """(lease, row of its job, node) of all that was promised to jobs that have yet to start."""
    promised, row = _promised(leases, snapshot)
    lease_of = dict(zip(row.tolist(), leases.promised.nonzero()[0].tolist(), strict=True))
    triples = zip(promised.row.tolist(), promised.node.tolist(), strict=True)
    return [(lease_of[job], job, node) for job, node in triples]


def _promised(leases: Leases, snapshot: Snapshot) -> tuple[Placement, Ints]:
    """The promises, by row of the snapshot's jobs, and the row of each promised lease."""
    row = find(snapshot.jobs.key, leases.key[leases.promised])
    return leases.promises_by(snapshot.jobs.key, snapshot.nodes.names), row


def withdrawn(
    leases: Leases,
    snapshot: Snapshot,
    terms: LeaseTerms,
    asked_for: Mapping[int, tuple[int, ...]],
    unsettled: Collection[int],
    spare: Spare,
) -> tuple[Leases, list[Event]]:
    """The leases without requests that nobody needs any more: those jobs go on, as if they were renewed."""
    at = _not_needed(leases, snapshot, asked_for, unsettled, spare)
    if not at.size:
        return leases, []
    phase, asked = leases.phase.copy(), leases.asked.copy()
    phase[at], asked[at] = LeasePhase.RUNNING, 0.0
    after = with_next_term(leases.with_columns(phase=phase, asked=asked), at, terms, snapshot.time)
    jobs, events = snapshot.jobs, []
    for lease, row in zip(at.tolist(), find(jobs.key, leases.key[at]).tolist(), strict=True):
        detail = {
            "why": NEEDED_NO_MORE,
            "until": terms.said_end(after.end.item(lease)),
            "number": after.renewals.item(lease) + 1,
        }
        events.append(lease_event(EventKind.STAYS, leases, lease, snapshot, row, **detail))
    return after, events


def _not_needed(
    leases: Leases,
    snapshot: Snapshot,
    asked_for: Mapping[int, tuple[int, ...]],
    unsettled: Collection[int],
    spare: Spare,
) -> Ints:
    """Leases that are being revoked though all that was promised finds room without that."""
    jobs = snapshot.jobs
    at = leases.revoking.nonzero()[0]
    row = find(jobs.key, leases.key[at])
    runs = (row >= 0) & jobs.running[row]
    at, row = at[runs], row[runs]
    leaving, promised = snapshot.held.only(row), _promised(leases, snapshot)[0]
    owed = np.zeros(len(snapshot.nodes), dtype=bool)
    owed[promised.node] = True
    theirs = shares(leaving, leaving.row, jobs, snapshot.sizes)
    given = summed(leaving.node, theirs, len(snapshot.nodes))
    left = [
        free + of for free, of in zip(spare, given, strict=True)
    ]  # what there is once all of them have left
    stays = []
    # Who has saved already goes first, since it does nothing until then.
    for lease, job in sorted(
        zip(at.tolist(), row.tolist(), strict=True), key=lambda e: jobs.acknowledged[e[1]]
    ):
        key = leases.key.item(lease)
        if key in asked_for.get(key, (key,)) or key in unsettled:
            continue
        mine = leaving.row == job
        nodes = leaving.node[mine]
        after = [have[nodes] - of[mine] for have, of in zip(left, theirs, strict=True)]
        if any_of(owed[nodes] & np.any([have < 0 for have in after], axis=0)):
            continue
        stays.append(lease)
        for have, rest in zip(left, after, strict=True):
            have[nodes] = rest
    return np.array(sorted(stays), dtype=np.int64)
