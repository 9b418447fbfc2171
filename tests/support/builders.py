"""Values for tests, with quiet defaults: say what matters to the test and nothing else.

`snapshot(time=100, nodes={"n1": 8}, jobs=[job(1, gpus=4, tenant="a", state=JobState.RUNNING, start=40)])`
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from slurm_fair.model import (
    Blocked,
    JobState,
    JobTable,
    LeasePhase,
    Leases,
    LeftAlone,
    NodeTable,
    PartitionTable,
    Placement,
    RunTable,
    Snapshot,
    TenantTable,
)
from slurm_fair.model.columns import Ints, find
from slurm_fair.model.gpu_weight import of_jobs, of_types
from slurm_fair.model.ids import NO_TASK, pack

CLUSTER = "test"
PARTITION = "gpu"
GPU_TYPE = "gpu"
HOLDING = (JobState.RUNNING, JobState.ENDING, JobState.SUSPENDED)


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """One node as a test wants it."""

    gpus: int = 8
    gpus_others: int = 0
    gpu_type: str = GPU_TYPE
    cpus: int = 64
    cpus_others: int = 0
    memory_mb: int = 512_000
    memory_others_mb: int = 0
    usable: bool = True
    why: str = ""
    partitions: tuple[str, ...] = (PARTITION,)


@dataclass(frozen=True, slots=True)
class JobSpec:
    """One job as a test wants it; `job()` fills in what follows from the rest."""

    base: int
    task: int = NO_TASK
    gpus: int = 1
    usual_gpus: int = 0  # 0 = as gpus
    tenant: str = "a"
    user: str = ""  # empty = as the tenant
    partition: str = PARTITION
    state: JobState = JobState.WAITING
    blocked: Blocked = Blocked.NOT_BLOCKED
    submit: float = 0.0
    restarts: int = 0
    start: float = 0.0
    end: float = 0.0
    on: Mapping[str, int] | None = None  # None = first free GPUs in node order
    wanted: tuple[str, ...] = ()
    barred: tuple[str, ...] = ()
    record: int = 0  # 0 = as base
    gated: bool = False
    gate_until: float = 0.0
    gate_set: float = 0.0
    pinned: bool = False
    nodes: int = 1
    most_nodes: int = 0  # any
    gpus_per_node: int = 0
    gpu_type: str = ""  # empty = any
    cpus: int = 1
    memory_mb: int = 1
    time_limit_seconds: float = float("inf")
    checkpoints: bool = True
    requeueable: bool = True
    acknowledged: int = 0
    array_limit: int = 0
    weight: float = 1.0
    restartable: bool = False
    gpu_weight: float = 1.0
    reason: str = ""

    @property
    def key(self) -> int:
        """Key of the job or array task."""
        return pack(self.base, self.task)


def job(base: int, **columns: Any) -> JobSpec:
    """One job; one that holds GPUs started when it was submitted (but not at 0, which means never)."""
    spec = JobSpec(base, **columns)
    given = {f.name: getattr(spec, f.name) for f in fields(spec)}
    if spec.state in HOLDING and spec.start == 0:
        given["start"] = max(spec.submit, 1.0)
    if spec.state == JobState.DONE and spec.end == 0:
        given["end"] = max(spec.submit, spec.start, 1.0)
    given["user"] = spec.user or spec.tenant
    given["record"] = spec.record or spec.base
    given["usual_gpus"] = spec.usual_gpus or spec.gpus
    return JobSpec(**given)


def node(gpus: int = 8, **columns: Any) -> NodeSpec:
    return NodeSpec(gpus, **columns)


def snapshot(
    *,
    time: float = 0.0,
    nodes: Mapping[str, int | NodeSpec] | None = None,
    jobs: Iterable[JobSpec] = (),
    weights: Mapping[str, float] | None = None,
    left_alone: Sequence[LeftAlone] = (),
    cluster: str = CLUSTER,
    gpu_weights: Mapping[str, float] | None = None,
) -> Snapshot:
    """A whole view; nodes are given as GPU counts or `node(...)`, tenants are those of jobs and weights."""
    specs = {name: n if isinstance(n, NodeSpec) else node(n) for name, n in (nodes or {"n1": 8}).items()}
    rows = sorted(jobs, key=lambda j: j.key)
    weights = weights or {}
    tenants = tuple(sorted({j.tenant for j in rows} | set(weights)))
    users = tuple(sorted({j.user for j in rows}))
    partitions = tuple(
        sorted({p for n in specs.values() for p in n.partitions} | {j.partition for j in rows})
    )
    types = tuple(sorted({n.gpu_type for n in specs.values()} | {j.gpu_type for j in rows if j.gpu_type}))
    index = {"tenant": tenants, "user": users, "partition": partitions, "gpu_type": types}
    shown = Snapshot(
        time=float(time),
        cluster=cluster,
        nodes=_node_table(specs, types),
        partitions=_partition_table(specs, partitions),
        tenants=TenantTable(tenants, np.array([weights.get(t, 1.0) for t in tenants], dtype=np.float64)),
        users=users,
        gpu_types=types,
        jobs=_job_table(rows, index),
        held=_held(rows, specs),
        wanted=_named(rows, specs, "wanted"),
        barred=_named(rows, specs, "barred"),
        reasons=tuple(j.reason for j in rows),
        left_alone=tuple(left_alone),
        gpu_weights=of_types(gpu_weights or {}, types),
    )
    if shown.gpu_weights is None:
        return shown
    weighed = of_jobs(shown.gpu_weights, shown.nodes, shown.held, shown.jobs.gpu_type)
    return replace(shown, jobs=shown.jobs.with_columns(gpu_weight=weighed))


def _node_table(specs: Mapping[str, NodeSpec], types: Sequence[str]) -> NodeTable:
    rows = list(specs.values())
    return NodeTable(
        names=tuple(specs),
        gpus=_ints(n.gpus for n in rows),
        gpus_others=_ints(n.gpus_others for n in rows),
        gpu_type=_ints(types.index(n.gpu_type) for n in rows),
        cpus=_ints(n.cpus for n in rows),
        cpus_others=_ints(n.cpus_others for n in rows),
        memory_mb=_ints(n.memory_mb for n in rows),
        memory_others_mb=_ints(n.memory_others_mb for n in rows),
        usable=np.array([n.usable for n in rows], dtype=bool),
        why=tuple(n.why or ("" if n.usable else "DRAIN") for n in rows),
    )


def _partition_table(specs: Mapping[str, NodeSpec], names: Sequence[str]) -> PartitionTable:
    members = [[name in n.partitions for n in specs.values()] for name in names]
    return PartitionTable(tuple(names), np.ones(len(names), dtype=bool), np.array(members, dtype=bool))


def _job_table(rows: Sequence[JobSpec], index: Mapping[str, Sequence[str]]) -> JobTable:
    def column(name: str) -> list[Any]:
        values = [getattr(j, name) for j in rows]
        if name in index:
            return [index[name].index(v) if v else -1 for v in values]
        return values

    dtypes = {f.name: getattr(JobTable.none(), f.name).dtype for f in fields(JobTable)}
    return JobTable(**{name: np.array(column(name), dtype=dtype) for name, dtype in dtypes.items()})


def _held(rows: Sequence[JobSpec], specs: Mapping[str, NodeSpec]) -> Placement:
    names = list(specs)
    free = {name: n.gpus - n.gpus_others for name, n in specs.items()}
    triples = []
    for named_first in (True, False):
        for row, j in enumerate(rows):
            if j.state not in HOLDING or (j.on is not None) != named_first:
                continue
            for name, gpus in (_first_free(j, free) if j.on is None else j.on).items():
                free[name] -= gpus
                triples.append((row, names.index(name), gpus))
    return Placement.of(triples)


def _first_free(spec: JobSpec, free: Mapping[str, int]) -> dict[str, int]:
    missing, places = spec.gpus, {}
    for name, gpus in free.items():
        if take := min(max(gpus, 0), missing):
            places[name] = take
            missing -= take
    if missing:
        raise ValueError(f"job {spec.base} holds {spec.gpus} GPUs, but {missing} of them are nowhere free")
    return places


def _named(rows: Sequence[JobSpec], specs: Mapping[str, NodeSpec], column: str) -> Placement:
    names = list(specs)
    return Placement.of([(row, names.index(n), 0) for row, j in enumerate(rows) for n in getattr(j, column)])


@dataclass(frozen=True, slots=True)
class RunSpec:
    """One run of accounting as a test wants it."""

    base: int
    start: float = 0.0
    end: float = 0.0
    task: int = NO_TASK
    tenant: str = "a"
    user: str = ""
    gpus: int = 1
    submit: float = 0.0
    state: JobState | None = None  # None = what start and end say
    requeued: bool = False


def run(base: int, start: float = 0.0, end: float = 0.0, **columns: Any) -> RunSpec:
    """One run; `end` 0 = still running, `start` 0 = never started."""
    return RunSpec(base, start, end, **columns)


def runs(*specs: RunSpec) -> RunTable:
    """The runs that accounting tells."""
    rows = sorted(specs, key=lambda r: (pack(r.base, r.task), r.start))
    tenants = tuple(sorted({r.tenant for r in rows}))
    users = tuple(sorted({r.user or r.tenant for r in rows}))
    return RunTable(
        key=_ints(pack(r.base, r.task) for r in rows),
        tenant=_ints(tenants.index(r.tenant) for r in rows),
        tenants=tenants,
        user=_ints(users.index(r.user or r.tenant) for r in rows),
        users=users,
        gpus=_ints(r.gpus for r in rows),
        submit=np.array([r.submit for r in rows], dtype=np.float64),
        start=np.array([r.start for r in rows], dtype=np.float64),
        end=np.array([r.end for r in rows], dtype=np.float64),
        state=np.array([_run_state(r) for r in rows], dtype=np.int8),
        requeued=np.array([r.requeued for r in rows], dtype=np.int8),
    )


def _run_state(spec: RunSpec) -> JobState:
    if spec.state is not None:
        return spec.state
    if spec.end > 0:
        return JobState.DONE
    return JobState.RUNNING if spec.start > 0 else JobState.WAITING


@dataclass(frozen=True, slots=True)
class LeaseSpec:
    """One lease as a test wants it."""

    base: int
    on: Mapping[str, int]
    task: int = NO_TASK
    phase: LeasePhase = LeasePhase.RUNNING
    restarts: int = 0
    granted: float = 0.0
    start: float = 0.0
    end: float = 900.0
    renewals: int = 0
    asked: float = 0.0
    opened: float = 0.0
    adopted: bool = False


def lease(base: int, on: Mapping[str, int], **columns: Any) -> LeaseSpec:
    """One lease on these nodes."""
    return LeaseSpec(base, on, **columns)


def leases(*specs: LeaseSpec) -> Leases:
    """The leases' table; its node names are those that the leases lie on."""
    rows = sorted(specs, key=lambda s: pack(s.base, s.task))
    names = tuple(sorted({name for s in rows for name in s.on}))
    triples = [
        (pack(s.base, s.task), names.index(n), g)
        for s in rows
        if s.phase == LeasePhase.GRANTED
        for n, g in s.on.items()
    ]
    floats = {
        name: np.array([getattr(s, name) for s in rows], dtype=np.float64)
        for name in ("granted", "start", "end", "asked", "opened")
    }
    return Leases(
        key=_ints(pack(s.base, s.task) for s in rows),
        phase=np.array([s.phase for s in rows], dtype=np.int8),
        restarts=_ints(s.restarts for s in rows),
        gpus=_ints(sum(s.on.values()) for s in rows),
        renewals=_ints(s.renewals for s in rows),
        adopted=np.array([s.adopted for s in rows], dtype=bool),
        promises=Placement.of(triples),
        node_names=names,
        **floats,
    )


def lying(leases: Leases, shown: Snapshot) -> Placement:
    """The places of leases, by row: as a snapshot shows those that run, and as promised to the others."""
    runs = find(leases.key, shown.jobs.key)
    runs = np.where((runs >= 0) & ~leases.promised[runs], runs, -1) if len(leases) else runs
    return shown.held.renumber(runs).plus(leases.promises_by(leases.key, shown.nodes.names))


def _ints(values: Iterable[int]) -> Ints:
    return np.array(list(values), dtype=np.int64)
