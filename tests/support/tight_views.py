"""Small clusters whose nodes have more GPUs than their CPUs and memory carry, with jobs of several sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from slurm_fair.model import JobState, LeaseTerms, Sizes
from slurm_fair.model.sizes import Per
from slurm_fair.policy import View
from tests.support.accounts import view
from tests.support.any_view import NOW, Draw, one_of_each
from tests.support.builders import JobSpec, LeaseSpec, NodeSpec, job, lease, leases, snapshot

EACH = (1, 2, 4)  # GPUs with which an elastic job can run; the first is its usual size
# CPUs and memory a GPU, GPUs that it has, whether its lease is over, tenant
ELASTIC = (
    (1, 1, 2),
    (0, 0, 1, 3),
    (1, 1, 2, 4, 0, 0),
    (True, True, False),
    "ab",
)  # CPUs, memory a GPU, runs with, over
WAITS = ((1, 1, 1, 2), (1, 4, 6, 8, 8, 10, 12), (0, 0, 0, 4, 10), "ab")  # GPUs, CPUs, memory, tenant
TERMS = LeaseTerms(term=900.0, aligned=False, renewal=225.0)


def tight(
    jobs: Sequence[JobSpec], held: Sequence[LeaseSpec], elastic: int, nodes: Mapping[str, NodeSpec]
) -> View:
    """A view in which the first jobs can run with 1, 2 or 4 GPUs and asked for CPUs and memory by the GPU."""
    weights = dict.fromkeys({each.tenant for each in jobs}, 1.0)
    seen = snapshot(time=NOW, nodes=dict(nodes), jobs=list(jobs), weights=weights)
    if elastic:
        row, gpus = np.arange(elastic).repeat(len(EACH)), np.tile(EACH, elastic)
        per = np.full(len(row), Per.GPU, dtype=np.int8)
        usual = np.where(np.arange(len(jobs)) < elastic, EACH[0], seen.jobs.gpus)
        seen = replace(seen, jobs=seen.jobs.with_columns(usual_gpus=usual))
        seen = replace(seen, sizes=Sizes(row, gpus, gpus == EACH[0], per, per))
    return replace(view(seen, leases(*held)), deadline=NOW + 30.0, terms=TERMS)


@st.composite
def tight_views(draw: Draw) -> View:
    """Up to four nodes of 4 GPUs with 8 or 16 CPUs; elastic jobs that run or wait, and others that wait."""
    sizes = one_of_each(draw, *[(8, 16, 16)] * draw(st.sampled_from((3, 2, 4))))
    nodes = {f"n{at}": NodeSpec(gpus=4, cpus=cpus, memory_mb=16) for at, cpus in enumerate(sizes)}
    jobs, held, names = list[JobSpec](), list[LeaseSpec](), iter(nodes)
    elastic = 1 + draw(st.integers(0, 2))
    for base in range(1, 1 + elastic):
        cpus, memory_mb, runs, over, tenant = one_of_each(draw, *ELASTIC)
        name = next(names, "") if runs else ""
        on = {name: runs} if name else None
        gpus = runs if on else EACH[0]
        takes = {"gpus": gpus, "cpus": cpus * gpus, "memory_mb": memory_mb * gpus}
        state = JobState.RUNNING if on else JobState.WAITING
        jobs.append(job(base, tenant=tenant, state=state, start=NOW - 1000.0 if on else 0.0, on=on, **takes))
        if on:
            held.append(lease(base, on, end=NOW - 1 if over else NOW + 500.0))
    for base in range(20, 20 + draw(st.integers(2, 8))):
        gpus, cpus, memory_mb, tenant = one_of_each(draw, *WAITS)
        submit = NOW - 500.0 + base
        jobs.append(job(base, gpus=gpus, cpus=cpus, memory_mb=memory_mb, tenant=tenant, submit=submit))
    return tight(jobs, held, elastic, nodes)
