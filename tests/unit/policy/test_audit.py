"""The Pareto audit of a plan: who could have been added to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from slurm_fair.model import JobState, Verdict
from slurm_fair.model.ids import labels
from slurm_fair.policy import View
from slurm_fair.policy.check import standstill
from slurm_fair.policy.packing.audit import left_out
from slurm_fair_plugins.fifo import Fifo
from tests.support.accounts import view
from tests.support.builders import job, leases, node, snapshot

RUNS = {"state": JobState.RUNNING, "start": 1.0}
TYPES = {"f": node(4, gpu_type="fast"), "s": node(4, gpu_type="slow")}
CASES: dict[str, tuple[dict[str, Any], list[Any], list[str]]] = {
    "a gang that fits": ({"n1": 8}, [job(1, gpus=8)], ["1"]),
    "one that does not": ({"n1": 8}, [job(1, gpus=9)], []),
    "GPUs that somebody has are not left over": (
        {"n1": 8}, [job(1, gpus=6, on={"n1": 6}, **RUNS), job(2, gpus=2), job(3, gpus=3)], ["2"],
    ),
    "each is taken by itself": ({"n1": 8}, [job(1, gpus=8), job(2, gpus=8)], ["1", "2"]),
    "never on two types": (TYPES, [job(1, gpus=4), job(2, gpus=5)], ["1"]),
    "on its own type": (
        TYPES, [job(1, gpus=4, on={"f": 4}, **RUNS), job(2, gpu_type="fast"), job(3, gpu_type="slow")], ["3"],
    ),
    "not on excluded nodes": ({"n1": 8, "n2": 4}, [job(1, gpus=8, barred=("n1",)), job(2, barred=("n1",))], ["2"]),
    "on nodes asked for by name": ({"n1": 8, "n2": 4}, [job(1, gpus=8, wanted=("n2",))], []),
    "not on nodes that cannot work": ({"n1": node(8, usable=False)}, [job(1)], []),
    "with the CPUs that it needs": ({"n1": node(8, cpus=4)}, [job(1, cpus=4), job(2, cpus=5)], ["1"]),
    "on no more nodes than it may": ({"n1": 4, "n2": 4}, [job(1, gpus=8, most_nodes=1), job(2, gpus=8)], ["2"]),
}  # fmt: skip


def seen(nodes: dict[str, Any], jobs: list[Any]) -> View:
    return view(snapshot(time=1000.0, nodes=nodes, jobs=jobs), leases(), {}, {})


@pytest.mark.parametrize(("nodes", "jobs", "expected"), CASES.values(), ids=CASES)
def test_a_plan_that_does_nothing_leaves_out(
    nodes: dict[str, Any], jobs: list[Any], expected: list[str]
) -> None:
    now = seen(nodes, jobs)
    rows = left_out(standstill(now, "nothing"), now)
    assert labels(now.snapshot.jobs.key[rows]) == expected


def test_what_a_plan_grants_is_no_longer_left_over() -> None:
    """First come, first served: the second does not fit behind the first, and blocks the third, which would."""
    now = seen({"n1": 8}, [job(1, gpus=5), job(2, gpus=4, submit=1), job(3, gpus=3, submit=2)])
    plan = Fifo().plan(now)
    assert plan.verdict.tolist() == [Verdict.GRANT, Verdict.WAIT, Verdict.WAIT]
    assert left_out(plan, now).tolist() == [2]
    assert left_out(plan, now).dtype == np.int64
