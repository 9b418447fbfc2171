"""Views made of other views, for trials: copies, permuted rows, fewer jobs, no node."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from slurm_fair.model import JobAccounts, Leases, Placement, Snapshot, TenantAccounts
from slurm_fair.model.columns import Ints, find, ranks
from slurm_fair.policy.view import View

_NAMES = tuple(field.name for field in fields(View) if field.name not in ("memory", "joined"))


class Kept(NamedTuple):
    """A view as it was at one instant: bytes, so that nobody can change it."""

    body: bytes
    memory: Any  # bytes too, where it can be written at all

    @classmethod
    def of(cls, view: View) -> Kept:
        whole = {name: getattr(view, name) for name in _NAMES}
        whole["reserved"] = ()  # by names of jobs and nodes, which other views of this trial do not have
        whole["fading"] = None
        whole["happened"] = tuple(view.happened)
        return cls(pickle.dumps(whole), _written(view.memory))

    def view(self) -> View:
        """A copy of its own."""
        memory = pickle.loads(self.memory) if isinstance(self.memory, bytes) else self.memory
        return View(**pickle.loads(self.body), memory=memory)


def _written(memory: Mapping[str, Any]) -> Any:
    try:
        return pickle.dumps(memory)
    except Exception:  # whatever a policy puts there: that it is no plain data is told elsewhere
        return memory


def parts_of(view: View) -> dict[str, bytes]:
    """A view as bytes, part by part, to see whether a policy changed any."""
    parts = {name: pickle.dumps(_fields_of(getattr(view, name))) for name in ("snapshot", "ledger", "leases")}
    return parts | {"memory": pickle.dumps(_written(_fields_of(view.memory)))}


def _fields_of(value: Any) -> Any:
    """A value's fields and theirs, without what is only kept with it for the next reader."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _fields_of(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: _fields_of(part) for name, part in value.items()}
    return [_fields_of(part) for part in value] if isinstance(value, tuple | list) else value


def turned(view: View) -> tuple[View, Ints]:
    """The same jobs in the opposite order of rows, without memory; and the row that each row was before.

    The order of rows is that of the jobs' keys: the jobs swap their keys.
    """
    snapshot = view.snapshot
    keys = snapshot.jobs.key
    was = np.arange(len(keys))[::-1].copy()

    def new(old: Ints) -> Ints:
        at, swapped = find(keys, old), old.copy()
        swapped[at >= 0] = keys[::-1][at[at >= 0]]
        return swapped

    accounts, leases = view.ledger.jobs, view.leases
    accounts = accounts.with_columns(key=new(accounts.key))
    ledger = replace(view.ledger, jobs=accounts.take(accounts.key.argsort()))
    jobs = snapshot.jobs.take(was).with_columns(key=keys)
    seen = replace(_taken(snapshot, was), jobs=jobs)
    again = replace(
        view, snapshot=seen, ledger=ledger, leases=_sorted(leases, new(leases.key)), memory={}, joined=None
    )
    return again, was


def _sorted(leases: Leases, keys: Ints) -> Leases:
    order = keys.argsort()
    columns = {name: getattr(leases, name)[order] for name in Leases._columns if name != "key"}
    old = leases.promises
    promises = replace(old, row=keys[find(leases.key, old.row)])
    return Leases(key=keys[order], promises=promises, node_names=leases.node_names, **columns)


def with_strangers(view: View) -> View:
    """The same with a tenant and a job in the ledger that the snapshot does not show, in front of all others."""
    ledger = view.ledger
    tenants, jobs = ledger.tenants, ledger.jobs
    zero = np.zeros(1)
    columns = {name: np.concatenate((zero, getattr(tenants, name))) for name in TenantAccounts._columns}
    key = min([*view.snapshot.jobs.key.tolist(), *jobs.key.tolist(), 1]) - 1
    more = {
        name: np.concatenate((np.zeros(1, column.dtype), column))
        for name in JobAccounts._columns
        for column in [getattr(jobs, name)]
    }
    more["key"][0], more["tenant"][1:] = key, more["tenant"][1:] + 1
    wider = replace(
        ledger,
        tenants=TenantAccounts(names=("", *tenants.names), **columns),
        jobs=JobAccounts(**more),
        closed=ledger.closed.with_columns(tenant=ledger.closed.tenant + 1),
    )
    return replace(view, ledger=wider, joined=None)


def only(view: View, rows: Ints) -> View:
    """The same with no other jobs than these."""
    keys, ledger, leases = view.snapshot.jobs.key[rows], view.ledger, view.leases
    return replace(
        view,
        snapshot=_taken(view.snapshot, rows),
        ledger=replace(ledger, jobs=ledger.jobs.take(find(keys, ledger.jobs.key) >= 0)),
        leases=leases.take(find(keys, leases.key) >= 0),
        happened=(),
        joined=None,
    )


def without_nodes(view: View) -> View:
    """A view with its waiting jobs and no node at all."""
    waits = only(view, view.waiting_rows)
    snapshot, nothing = waits.snapshot, np.zeros(0, dtype=np.int64)
    nodes = snapshot.nodes.take(nothing).with_columns(names=(), why=())
    partitions = replace(snapshot.partitions, members=snapshot.partitions.members[:, :0], ways=())
    none = Placement.none()
    speeds = None if snapshot.speeds is None else replace(snapshot.speeds, nodes=None)
    bare = replace(
        snapshot,
        nodes=nodes,
        partitions=partitions,
        racks=None,
        held=none,
        wanted=none,
        barred=none,
        speeds=speeds,
    )
    return replace(waits, snapshot=bare)


def _taken(snapshot: Snapshot, rows: Ints) -> Snapshot:
    """Some of its jobs, in the order given."""
    row = ranks(len(snapshot.jobs), rows)
    listed = rows.tolist()
    return replace(
        snapshot,
        jobs=snapshot.jobs.take(rows),
        held=snapshot.held.renumber(row),
        wanted=snapshot.wanted.renumber(row),
        barred=snapshot.barred.renumber(row),
        reasons=tuple(snapshot.reasons[at] for at in listed),
        qos=tuple(snapshot.qos[at] for at in listed) if snapshot.qos else (),
        graces={},
        told=None if snapshot.told is None else snapshot.told.take(rows),
        sizes=None if snapshot.sizes is None else snapshot.sizes.for_rows(rows),
        speeds=None if snapshot.speeds is None else snapshot.speeds.for_rows(rows),
        reported=None,
    )
