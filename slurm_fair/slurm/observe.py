"""Make one Snapshot of Slurm's answers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import (
    Answer,
    Blocked,
    JobState,
    JobTable,
    NodeTable,
    PartitionTable,
    Placement,
    Profiles,
    Snapshot,
    TenantTable,
    Told,
)
from slurm_fair.model.columns import Bools, Floats, Ints
from slurm_fair.model.gpu_weight import of_jobs, of_types
from slurm_fair.model.ids import NO_TASK
from slurm_fair.slurm.aside import aside_of, holders_aside, that_count
from slurm_fair.slurm.elastic import Requests, asked_gpus, elastic_sizes, requests_of
from slurm_fair.slurm.ownership.doubt import in_doubt, may_be_ours
from slurm_fair.slurm.ownership.kept_back import Gates, gates_of
from slurm_fair.slurm.reading.constraint import ways_of
from slurm_fair.slurm.reading.queue import Names, Queue, by_key
from slurm_fair.slurm.scope import (
    blocked_codes,
    in_scope,
    left_alone,
    not_read,
    refused,
)
from slurm_fair.slurm.sighting import Sighting
from slurm_fair.slurm.whole_nodes import as_it_must_lie, with_what_lies_idle
from slurm_fair.slurm_text import hostlist

_RESERVED_SOON_SECONDS = 60.0


def build_snapshot(seen: Sighting) -> Snapshot:
    """The managed part of what was seen, in columns."""
    territory = seen.territory
    scoped = in_scope(seen.rows, seen.queue, territory, seen.settings.scope) & ~refused(seen.rows, seen.queue)
    inside = seen.rows[scoped]
    beyond = seen.made_up.beyond(inside, seen.queue, seen.weights.by_account)
    alone, reasons = left_alone(inside, seen.queue, seen.details, territory, seen.settings.scope, beyond)
    reasons = not_read(seen.queue, territory) + reasons
    raw, key = by_key(inside[~alone], seen.queue.task_lists)
    names = territory.nodes
    most = sum(seen.machines.nodes[name].gpus for name in names)
    asked = requests_of(raw, key, seen.queue, seen.details, seen.marks, most)
    raw = asked.rows
    others, other_key = _aside_rows(key, names, seen)
    raw, others, held, held_aside = _holdings(raw, others, names, seen)
    others, other_key, held_aside = that_count(others, other_key, held_aside)
    nodes = _nodes(seen, names, raw, held, held_aside)
    gates = gates_of(raw, key, seen.keepers)
    gates = replace(gates, pinned=gates.pinned | asked.resized)
    everyone, first = np.concatenate([raw, others]), len(raw)
    users, user = _packed(seen.queue.users.texts, everyone["user"])
    tenants, tenant = _tenants(seen, everyone)
    aside = aside_of(others, other_key, user[first:], tenant[first:], held_aside, seen.queue)
    user, tenant = user[:first], tenant[:first]
    partitions, partition = _partitions(seen, names, raw)
    raw = as_it_must_lie(raw, partition, partitions, nodes)
    jobs = _jobs(raw, key, user, tenant, partition, gates, asked, seen)
    sizes, rigid = elastic_sizes(jobs, asked)
    jobs = jobs.with_columns(usual_gpus=asked_gpus(jobs, asked, sizes))
    weights = of_types(seen.gpu_weights, _gpu_types(seen))
    if weights is not None:
        jobs = jobs.with_columns(gpu_weight=weights_by_place(weights, raw, jobs.gpu_type, nodes, held, seen))
        if aside is not None:
            theirs = weights_by_place(weights, others, aside.jobs.gpu_type, nodes, held_aside, seen)
            aside = replace(aside, jobs=aside.jobs.with_columns(gpu_weight=theirs))
    wanted, barred = _wishes(raw, key, gates.pinned, names, seen)
    types = _gpu_types(seen)
    doubtful = may_be_ours(seen.rows, scoped, seen.queue, seen.details, names)  # also of jobs left alone
    return Snapshot(
        seen.time, seen.cluster, nodes, partitions, tenants, users, types, jobs, held, wanted, barred,
        _texts(seen.queue.reasons, raw["reason"]), tuple(reasons), _graces(raw, key, seen),
        _texts(seen.queue.qos, raw["qos"]), _told(raw, len(types)),
        in_doubt=in_doubt(doubtful, seen.queue, seen.marks, seen.lists_at_first, seen.booted_at),
        aside=aside,
        gpu_weights=weights,
        sizes=sizes,
        rigid=rigid,
        profiles=_profiles(jobs, seen.details.profiled, len(types)),
    )  # fmt: skip


def _profiles(jobs: JobTable, profiled: Collection[int], gpu_types: int) -> Profiles | None:
    """The living jobs whose users want their speed measured; None where there is none."""
    if not profiled:
        return None
    rows = np.flatnonzero(~jobs.done & np.isin(jobs.record, list(profiled)))
    return Profiles.asked(rows, gpu_types) if len(rows) else None


def _aside_rows(managed: Ints, names: tuple[str, ...], seen: Sighting) -> tuple[NDArray[np.void], Ints]:
    """Rows that hold GPUs of our nodes and are not managed, but for accounts that users make up without end."""
    rows, key = holders_aside(seen.rows, managed, seen.queue, names, seen.settings.scope)
    kept = ~seen.made_up.beyond(rows, seen.queue, seen.weights.by_account)
    return rows[kept], key[kept]


def _holdings(
    raw: NDArray[np.void], others: NDArray[np.void], names: tuple[str, ...], seen: Sighting
) -> tuple[NDArray[np.void], NDArray[np.void], Placement, Placement]:
    """Managed rows and others with what they hold: that is at least what lies idle because of them."""
    everyone, first = np.concatenate([raw, others]), len(raw)
    held = with_what_lies_idle(_held(everyone, names, seen), everyone, names, seen.machines)
    everyone["gpus"] = np.maximum(everyone["gpus"], np.bincount(held.row, held.gpus, len(everyone)))
    return everyone[:first], everyone[first:], *held.split(first)


def _told(raw: NDArray[np.void], gpu_types: int) -> Told | None:
    """Users' declarations on the work: Slurm's own records hold deadlines alone, and what must fit before them."""
    deadline = raw["deadline"]
    if not deadline.any():
        return None
    told = Told.nothing(len(deadline), gpu_types)
    return told.with_columns(
        deadline=np.where(deadline > 0, deadline, np.inf), must_fit_seconds=raw["must_fit"].copy()
    )


def _graces(raw: NDArray[np.void], key: Ints, seen: Sighting) -> dict[int, float]:
    graces = {}
    for row in np.flatnonzero(raw["state"] == JobState.RUNNING).tolist():
        asked_for = seen.details.of(
            int(raw["record"][row]), int(raw["restarts"][row])
        ).gate_stamp.grace_seconds
        if asked_for > 0:
            graces[int(key[row])] = asked_for
    return graces


def _texts(names: Names, column: NDArray[np.int64]) -> tuple[str, ...]:
    return tuple(names.texts[number] for number in column.tolist())


def _gpu_types(seen: Sighting) -> tuple[str, ...]:
    """GPU types of nodes alone: a job's type is its user's word, and may be new with each job."""
    return tuple(dict.fromkeys(node.gpu_type for node in seen.machines.nodes.values()))


def weights_by_place(
    weights: Floats, rows: NDArray[np.void], asked: Ints, nodes: NodeTable, held: Placement, seen: Sighting
) -> Floats:
    """The weight of a GPU of each row, also of rows that are over: Slurm names their nodes still."""
    found = of_jobs(weights, nodes, held, asked)
    over = np.flatnonzero((rows["state"] == JobState.DONE) & (rows["start"] > 0))
    at = {name: row for row, name in enumerate(nodes.names)}
    for row in over.tolist():
        here = [
            at[name]
            for name in hostlist.expand(seen.queue.node_lists.texts[rows["node_list"][row]])
            if name in at
        ]
        if here:
            found[row] = weights[nodes.gpu_type[here]].mean()
    return found


def _asked_types(raw: NDArray[np.void], seen: Sighting) -> Ints:
    """The type that each row asks for, as the snapshot numbers it; any for one that no node has."""
    at = {name: number for number, name in enumerate(_gpu_types(seen))}
    asked, rows = np.unique(raw["gpu_type"], return_inverse=True)
    texts = seen.queue.gpu_types.texts
    found: Ints = np.array([at.get(texts[n], -1) if n >= 0 else -1 for n in asked.tolist()], dtype=np.int64)
    return found[rows]


def _packed(texts: list[str], column: NDArray[np.int64]) -> tuple[tuple[str, ...], Ints]:
    """The names that occur, and the column renumbered to them."""
    used, rows = np.unique(column, return_inverse=True)
    return tuple(texts[n] for n in used.tolist()), rows.astype(np.int64)


def _tenants(seen: Sighting, raw: NDArray[np.void]) -> tuple[TenantTable, Ints]:
    names, column = _packed(seen.queue.accounts.texts, raw["account"])
    listed = sorted({*names, *seen.weights.by_account})
    where = {name: row for row, name in enumerate(listed)}
    weight = np.array([seen.weights.of(name) for name in listed], dtype=np.float64)
    rows = np.array([where[name] for name in names], dtype=np.int64)
    return TenantTable(tuple(listed), weight), rows[column] if len(names) else column


def _partitions(seen: Sighting, nodes: tuple[str, ...], raw: NDArray[np.void]) -> tuple[PartitionTable, Ints]:
    """The table of what rows name: partitions, narrowed to the nodes of a constraint; and each row's place."""
    runs = zip(raw["record"].tolist(), raw["restarts"].tolist(), strict=True)
    wishes = [seen.details.of(*run).constraint for run in runs]
    pairs = list(zip(raw["partition"].tolist(), wishes, strict=True))
    found = {pair: row for row, pair in enumerate(sorted(set(pairs)))}
    names = tuple(seen.queue.partitions.texts[number] for number, _ in found)
    ways = [_ways(name, wish, nodes, seen) for name, (_, wish) in zip(names, found, strict=True)]
    alike: dict[tuple[str, bytes], int] = {}
    row = [
        alike.setdefault((name, each.tobytes()), len(alike)) for name, each in zip(names, ways, strict=True)
    ]
    kept = [row.index(number) for number in range(len(alike))]
    up = [any(seen.machines.up.get(each, False) for each in names[at].split(",")) for at in kept]
    members = np.array([ways[at].any(axis=0) for at in kept], dtype=bool).reshape(len(kept), len(nodes))
    several = any(len(ways[at]) > 1 for at in kept)
    table = PartitionTable(
        tuple(names[at] for at in kept),
        np.array(up, dtype=bool),
        members,
        tuple(ways[at] for at in kept) if several else (),
    )
    return table, np.array([row[found[pair]] for pair in pairs], dtype=np.int64)


def _ways(names: str, wish: str, nodes: tuple[str, ...], seen: Sighting) -> NDArray[np.bool_]:
    """[way, node]: a gang lies within one partition, on nodes that keep to one way of its constraint."""
    at = {name: row for row, name in enumerate(nodes)}
    allowed = ways_of(wish, [seen.machines.nodes[name].features for name in nodes]) if wish else ()
    found: dict[bytes, NDArray[np.bool_]] = {}
    for partition in dict.fromkeys(names.split(",")):
        inside = np.zeros(len(nodes), dtype=bool)
        inside[[at[node] for node in seen.machines.partitions.get(partition, ()) if node in at]] = True
        if not seen.machines.up.get(partition, False) and "," in names:
            continue
        for way in [inside & each for each in allowed] if wish else [inside]:
            found[way.tobytes()] = way
    some = [way for way in found.values() if way.any()] or list(found.values())[:1]
    return np.array(some or [np.zeros(len(nodes), dtype=bool)], dtype=bool)


def _held(raw: NDArray[np.void], nodes: tuple[str, ...], seen: Sighting) -> Placement:
    """GPUs per node of the rows that hold some."""
    at = {name: row for row, name in enumerate(nodes)}
    holding = np.flatnonzero((raw["state"] > JobState.WAITING) & (raw["state"] < JobState.DONE))
    spans = {
        n: hostlist.expand(seen.queue.node_lists.texts[n]) for n in set(raw["node_list"][holding].tolist())
    }
    shapes = [(row, spans[int(raw["node_list"][row])], int(raw["gpus"][row])) for row in holding.tolist()]
    uneven = {
        (int(raw["record"][row]), int(raw["restarts"][row])): (names, gpus)
        for row, names, gpus in shapes
        if len(names) > 1 and (gpus % len(names) or not raw["gpus_per_node"][row])
    }
    seen.layouts.learn(uneven, {name: node.gpus for name, node in seen.machines.nodes.items()})
    triples: list[tuple[int, int, int]] = []
    for row, names, gpus in shapes:
        layout = seen.layouts.of(int(raw["record"][row]), int(raw["restarts"][row]))
        parts = layout or [(name, gpus // len(names)) for name in names]
        triples.extend((row, at[name], count) for name, count in parts if name in at)
    return Placement.of(triples)


def _nodes(
    seen: Sighting, names: tuple[str, ...], raw: NDArray[np.void], held: Placement, aside: Placement
) -> NodeTable:
    listed = [seen.machines.nodes[name] for name in names]
    types = {name: number for number, name in enumerate(_gpu_types(seen))}
    gpus = np.array([node.gpus for node in listed], dtype=np.int64)
    used = np.array([node.gpus_used for node in listed], dtype=np.int64)
    nodes_held = np.bincount(held.row, minlength=len(raw)) if len(held) else np.ones(len(raw), dtype=np.int64)
    per_node = np.maximum(nodes_held, 1)[held.row]
    cpus = np.bincount(held.node, raw["cpus"][held.row] / per_node, minlength=len(names))
    memory = np.bincount(held.node, raw["memory_mb"][held.row] / per_node, minlength=len(names))
    why = [_why(seen, name) for name in names]
    return NodeTable(
        names=names,
        gpus=gpus,
        gpus_others=np.maximum(used - held.per_node(len(names)), aside.per_node(len(names))),
        gpu_type=np.array([types[node.gpu_type] for node in listed], dtype=np.int64),
        cpus=np.array([node.cpus for node in listed], dtype=np.int64),
        cpus_others=_others([node.cpus_used for node in listed], cpus),
        memory_mb=np.array([node.memory_mb for node in listed], dtype=np.int64),
        memory_others_mb=_others([node.memory_used_mb for node in listed], memory),
        usable=np.array([not reason for reason in why], dtype=bool),
        why=tuple(why),
    )


def _others(used: list[int], ours: NDArray[Any]) -> Ints:
    left: Ints = np.maximum(np.array(used, dtype=np.float64) - ours, 0).astype(np.int64)
    return left


def _why(seen: Sighting, name: str) -> str:
    """The reason why a node gets no new work."""
    node = seen.machines.nodes[name]
    if node.gpu_type == "+":
        return "several GPU types on one node"
    horizon = seen.time + max(seen.settings.term, _RESERVED_SOON_SECONDS)
    for kept in seen.reservations:
        if name in kept.nodes and kept.start < horizon and kept.end > seen.time:
            return f"reservation {kept.name}"
    return node.why_unusable


def _jobs(
    raw: NDArray[np.void],
    key: Ints,
    user: Ints,
    tenant: Ints,
    partition: Ints,
    gates: Gates,
    asked: Requests,
    seen: Sighting,
) -> JobTable:
    blocked = blocked_codes(raw, seen.queue, seen.machines, gates.held_by_us, gates.own_begin)
    most = sum(node.gpus for node in seen.machines.nodes.values())
    waiting, asked_type = raw["state"] == JobState.WAITING, _asked_types(raw, seen)
    nowhere = (raw["gpu_type"] >= 0) & (asked_type < 0)
    blocked[waiting & ((raw["gpus"] > most) | nowhere)] = Blocked.IMPOSSIBLE
    # Nothing can be done to it, so nobody is asked to make room for it.
    unread = [bad.record for bad in seen.queue.unreadable]
    blocked[waiting & np.isin(raw["record"], unread)] = Blocked.SHAPE
    running = (raw["state"] > JobState.WAITING) & (raw["state"] < JobState.DONE)
    checkpoints = _checkpoints(raw, seen)
    ints = {name: raw[name].astype(np.int64) for name in ("record", "restarts", "gpus", "nodes", "cpus")}
    return JobTable(
        key=key,
        submit=raw["submit"].copy(),
        user=user,
        tenant=tenant,
        partition=partition,
        state=raw["state"].copy(),
        blocked=blocked,
        gated=gates.ours,
        gate_until=gates.until,
        gate_set=gates.gate_set,
        pinned=gates.pinned,
        gpus_per_node=raw["gpus_per_node"].astype(np.int64),
        most_nodes=_most_nodes(raw, asked.named, seen),
        gpu_type=asked_type,
        memory_mb=raw["memory_mb"].astype(np.int64),
        start=np.where(running | (raw["state"] == JobState.DONE), raw["start"], 0.0),
        end=np.where(raw["state"] == JobState.DONE, raw["end"], 0.0),
        time_limit_seconds=raw["time_limit"].copy(),
        checkpoints=checkpoints,
        requeueable=raw["requeue"] & raw["batch"] & ~_out_of_time(raw, seen),
        acknowledged=np.full(len(raw), Answer.NONE, dtype=np.int8),
        array_limit=_array_limits(raw, seen.queue),
        weight=np.ones(len(raw)),
        restartable=~checkpoints & (seen.settings.scope.plain == "revoke"),
        gpu_weight=np.ones(len(raw)),
        usual_gpus=ints["gpus"],
        **ints,
    )


def _most_nodes(raw: NDArray[np.void], elastic: Collection[int], seen: Sighting) -> Ints:
    """The most nodes of each row.

    Asked only of elastic jobs, and where the policy spreads gangs over more than they need.
    """
    most = np.zeros(len(raw), dtype=np.int64)
    asked = np.isin(np.arange(len(raw)), list(elastic))
    several = asked | (raw["gpus"] > 1)
    if not seen.settings.gangs_may_spread and not asked.any():
        return most
    counts = asked | seen.settings.gangs_may_spread
    whole = counts & (raw["gpus_per_node"] == 0)
    waiting = raw["state"] == JobState.WAITING
    fixed = waiting & (raw["nodes"] > 1) & whole
    most[fixed] = raw["nodes"][fixed]
    rows = np.flatnonzero(waiting & (raw["nodes"] <= 1) & whole & several).tolist()
    who = [(int(raw["record"][row]), int(raw["restarts"][row])) for row in rows]
    seen.spans.learn(who, seen.time)
    most[rows] = [seen.spans.of(*each) for each in who]
    return most


def _checkpoints(raw: NDArray[np.void], seen: Sighting) -> Bools:
    """Jobs whose stamps say that they save when they are asked."""
    runs = zip(raw["record"].tolist(), raw["restarts"].tolist(), strict=True)
    return np.array([seen.details.of(*run).gate_stamp.checkpoints for run in runs], dtype=bool)


def _out_of_time(raw: NDArray[np.void], seen: Sighting) -> Bools:
    """Jobs that Slurm would end instead of starting them again, if another had their lease in this run.

    It ends a job that is to start (state DEADLINE, for good) when its limit does not fit before its deadline
    (slurm-facts: deadline-ends-job). The whole of a run counts, from its beginning: a job that could be asked to
    give way when it got idle GPUs, and not some leases later, would keep them beyond its tenant's share. A job
    that waits without a limit gets one at its start that ends at its deadline (slurm-facts: limit-to-deadline).
    """
    waiting, limited = raw["state"] == JobState.WAITING, np.isfinite(raw["time_limit"])
    begins = np.where(waiting, seen.time + seen.settings.term, raw["start"])
    ends = np.where(limited, begins + raw["time_limit"], np.where(waiting, np.inf, seen.time))
    again = np.maximum(ends, seen.time) + seen.settings.term + raw["must_fit"]
    out: Bools = (raw["state"] < JobState.DONE) & (raw["deadline"] > 0) & (again > raw["deadline"])
    return out


def _array_limits(raw: NDArray[np.void], queue: Queue) -> Ints:
    """The %limit of each row's array, also of tasks that have a record of their own."""
    bases, inverse = np.unique(raw["base"], return_inverse=True)
    limits = np.array([queue.array_limits.get(base, 0) for base in bases.tolist()], dtype=np.int64)
    of_row: Ints = limits[inverse]
    return np.where(raw["task"] == NO_TASK, 0, of_row)


def _user_nodes(key: int, seen: Sighting) -> str:
    mark = seen.marks.get(key, whole_record=False)
    return mark.user_nodes if mark else ""


def _wishes(
    raw: NDArray[np.void], key: Ints, pinned: Bools, nodes: tuple[str, ...], seen: Sighting
) -> tuple[Placement, Placement]:
    """Nodes that users asked for and excluded, of rows that wait."""
    at = {name: row for row, name in enumerate(nodes)}
    wanted: list[tuple[int, int, int]] = []
    barred: list[tuple[int, int, int]] = []
    empty = seen.queue.node_lists.known("")
    for row in np.flatnonzero(raw["state"] == JobState.WAITING).tolist():
        if raw["req_nodes"][row] != empty or pinned[row]:
            text = seen.queue.node_lists.texts[raw["req_nodes"][row]]
            names = hostlist.expand(_user_nodes(int(key[row]), seen) if pinned[row] else text)
            wanted.extend((row, at[name], 0) for name in names if name in at)
        excluded = seen.details.of(int(raw["record"][row]), int(raw["restarts"][row])).excluded
        barred.extend((row, at[name], 0) for name in excluded if name in at)
    return Placement.of(wanted), Placement.of(barred)
