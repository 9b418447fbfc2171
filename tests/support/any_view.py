"""Any small cluster in any state that can be, as a policy sees it, drawn by hypothesis."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from slurm_fair.model import Blocked, JobState, LeasePhase, Sizes, Snapshot, Told
from slurm_fair.model.sizes import Per
from slurm_fair.policy import View
from tests.support.accounts import Account, view
from tests.support.builders import HOLDING, JobSpec, LeaseSpec, NodeSpec, job, lease, leases, snapshot

NOW = 10_000.0
PARTITIONS, TYPES, TENANTS = ("p", "q"), ("x", "y"), ("a", "b", "c")
# GPUs, least number of nodes, GPUs per node
ONE_NODE = [(gpus, 1, 0) for gpus in (1, 1, 1, 1, 2, 3, 4, 8, 12)]
SHAPES = [*ONE_NODE, (2, 1, 1), (4, 2, 2), (3, 2, 0), (4, 2, 0), (5, 2, 0), (1, 2, 0)]
# Numbers of GPUs with which a job can run beside the one that it has; as often as not it is rigid.
CHOICES = [*[()] * 5, (1, 2, 4, 8), (1,), (2, 4, 6), tuple(range(1, 9)), (3, 12)]
Draw = Callable[[st.SearchStrategy[Any]], Any]
NODES = (  # GPUs, GPUs and CPUs of others, type, usable, partitions
    (1, 2, 4, 4, 8),
    (0, 0, 0, 1),
    (0, 0, 14),
    TYPES,
    (True, True, True, False),
    (("p",), ("q",), ("p", "q")),
)
ACCOUNTS = [Account(*each) for each in product((0.0, 900.0, 5e4), (0.0, 1e3, 1e5), (0.0, 1.0))]
accounts = st.sampled_from(ACCOUNTS)
perhaps_accounts = st.sampled_from([*(None for _ in ACCOUNTS), *ACCOUNTS])


def one_of_each(draw: Draw, *choices: Sequence[Any]) -> list[Any]:
    """Independent choices from one number: a number costs hypothesis the same whatever it decides."""
    number = draw(st.integers(0, math.prod(map(len, choices)) - 1))
    found = []
    for each in choices:
        number, place = divmod(number, len(each))
        found.append(each[place])
    return found


def _node(draw: Draw) -> NodeSpec:
    gpus, gpus_others, cpus_others, kind, usable, partitions = one_of_each(draw, *NODES)
    return NodeSpec(
        gpus=gpus,
        gpus_others=gpus_others,
        gpu_type=kind,
        cpus=16,
        cpus_others=cpus_others,
        memory_mb=16,
        usable=usable,
        partitions=partitions,
    )


@st.composite
def views(draw: Draw) -> View:
    """A small cluster in any state that can be, with promises that are covered."""
    nodes = {f"n{number}": _node(draw) for number in range(draw(st.integers(1, 5)))}
    free = {name: spec.gpus - spec.gpus_others for name, spec in nodes.items()}
    jobs: list[JobSpec] = []
    held: list[LeaseSpec] = []
    for base in range(1, 1 + draw(st.integers(0, 6))):
        on = _some_free(draw, free)
        if on:
            _holder(draw, base, on, jobs, held)
    jobs += [_waiting(draw, base, list(nodes)) for base in range(20, 20 + draw(st.integers(0, 8)))]
    jobs += _array(draw)
    weights = dict(zip(TENANTS, one_of_each(draw, *[(0.0, 1.0, 3.0)] * len(TENANTS)), strict=True))
    seen = with_sizes(draw, snapshot(time=NOW, nodes=nodes, jobs=jobs, weights=weights))
    if draw(st.booleans()):
        seen = replace(seen, told=_told(draw, len(jobs), len(seen.gpu_types)))
    labels = [str(j.base) if j.task < 0 else f"{j.base}_{j.task}" for j in jobs]
    known = {label: draw(perhaps_accounts) for label in labels}
    return view(
        seen,
        leases(*held),
        {name: draw(accounts) for name in TENANTS},
        {label: account for label, account in known.items() if account is not None},
    )


SAID = (  # seconds as declared, seconds left, epoch, epochs, steps per second
    (np.nan, 60.0, 5_000.0, 90_000.0),
    (np.nan, 30.0, 4_000.0),
    (np.nan, 3.0),
    (np.nan, 10.0),
    (np.nan, 2.0),
)


def _told(draw: Draw, rows: int, types: int) -> Told:
    """Claims of users and jobs, with gaps."""
    said = [one_of_each(draw, *SAID, *[(0.0, 0.5, 1.0)] * types) for _ in range(rows)]
    table = np.array(said, dtype=np.float64).reshape(rows, len(SAID) + types)
    declared, left, epoch, epochs, steps = table[:, : len(SAID)].T.copy()
    return Told.nothing(rows, types).with_columns(
        declared_seconds=declared,
        left_seconds=left,
        epoch=epoch,
        epochs=epochs,
        steps_per_second=steps,
        rate=table[:, len(SAID) :].copy(),
    )


def with_sizes(draw: Draw, seen: Snapshot) -> Snapshot:
    """Some of the jobs can run with other numbers of GPUs; one that runs may have another than its usual one."""
    jobs = seen.jobs
    in_all = (jobs.gpus_per_node == 0) & (jobs.nodes <= 1) & (jobs.most_nodes == 0)
    able = np.flatnonzero(jobs.revocable & (in_all | (jobs.gpus_per_node > 0)))
    chosen = one_of_each(draw, *[CHOICES] * len(able)) if draw(st.booleans()) else []
    rows = [(row, each) for row, each in zip(able.tolist(), chosen, strict=False) if each]
    if not rows:
        return seen
    usual, flat = jobs.usual_gpus.copy(), list[tuple[int, int]]()
    for row, each in rows:
        flat += [(row, gpus) for gpus in sorted({*each, jobs.gpus.item(row)})]
        if not jobs.waiting[row]:
            usual[row] = each[0]
    row, gpus = np.array(flat, dtype=np.int64).T.copy()
    per = [np.full(len(row), one, dtype=np.int8) for one in one_of_each(draw, list(Per), list(Per))]
    sizes = Sizes(row, gpus, gpus == usual[row], *per)
    return replace(seen, jobs=jobs.with_columns(usual_gpus=usual), sizes=sizes)


def _some_free(draw: Draw, free: dict[str, int]) -> dict[str, int]:
    on: dict[str, int] = {}
    for name in draw(st.lists(st.sampled_from(sorted(free)), min_size=1, max_size=2, unique=True)):
        if free[name] > 0:
            on[name] = draw(st.integers(1, free[name]))
            free[name] -= on[name]
    return on


KINDS = ("over", "over", "over", "runs", "revoking", "promised", "unleased")
HOLDERS = (  # kind, tenant, CPUs, checkpoints, state, lease renewals
    KINDS,
    TENANTS,
    range(4),
    (True, True, False),
    (JobState.RUNNING, JobState.RUNNING, *HOLDING),
    range(5),
)


def _holder(draw: Draw, base: int, on: dict[str, int], jobs: list[JobSpec], held: list[LeaseSpec]) -> None:
    """A job that holds GPUs, or one that was promised them."""
    kind, tenant, cpus, checkpoints, state, renewals = one_of_each(draw, *HOLDERS)
    common = {"gpus": sum(on.values()), "tenant": tenant, "partition": "p"}
    common |= {"cpus": cpus, "checkpoints": checkpoints}
    if kind == "promised":
        jobs.append(job(base, **common))
    else:
        jobs.append(job(base, on=on, state=state, **common))
    phase = {"revoking": LeasePhase.REVOKING, "promised": LeasePhase.GRANTED}.get(kind, LeasePhase.RUNNING)
    if kind != "unleased":
        end = NOW - 1 if kind == "over" else NOW + 1
        held.append(lease(base, on, phase=phase, end=end, renewals=renewals))


# Shape, nodes beyond those asked for, type, CPUs, partition, tenant, submission, blocked, whether it names nodes
WAITING = (
    SHAPES, (None, None, None, 0, 1), ("", "", *TYPES), (1, 1, 8), PARTITIONS, TENANTS, range(4),
    (*[Blocked.NOT_BLOCKED] * 5, Blocked.USER_HOLD), *[(False, False, False, False, True)] * 2,
)  # fmt: skip


def _waiting(draw: Draw, base: int, nodes: list[str]) -> JobSpec:
    named = st.lists(st.sampled_from(nodes), max_size=1)
    shape, more, gpu_type, cpus, partition, tenant, submit, blocked, wants, bars = one_of_each(draw, *WAITING)
    gpus, nodes_asked, per_node = shape
    return job(
        base,
        gpus=gpus,
        nodes=nodes_asked,
        most_nodes=0 if more is None else nodes_asked + more,
        gpus_per_node=per_node,
        gpu_type=gpu_type,
        cpus=cpus,
        partition=partition,
        tenant=tenant,
        submit=float(submit),
        blocked=blocked,
        wanted=tuple(draw(named)) if wants else (),
        barred=tuple(draw(named)) if bars else (),
    )


def _array(draw: Draw) -> Iterator[JobSpec]:
    limit = draw(st.integers(1, 3))
    for task in range(draw(st.integers(0, 4))):
        yield job(50, task=task, array_limit=limit, partition="p", tenant="c")
