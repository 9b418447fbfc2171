"""A promised job whose gate is shut lacks what its nodes have not free in fact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slurm_fair.model import JobState, LeasePhase, Sizes, Snapshot
from slurm_fair.model.ids import pack
from slurm_fair.reconcile.free import Free, awaited, in_all, needs, summed
from tests.support.builders import JobSpec, LeaseSpec, job, lease, leases, node, snapshot

BIG = node(8, gpus_others=1, cpus=10, cpus_others=2, memory_mb=100, memory_others_mb=20)
NODES = {"n1": BIG, "n2": BIG, "n3": node(8, cpus=10, memory_mb=100, usable=False)}


def runs(base: int, on: Mapping[str, int], **more: Any) -> JobSpec:
    return job(base, gpus=sum(on.values()), on=on, state=JobState.RUNNING, **more)


def seen(*jobs: JobSpec) -> Snapshot:
    return snapshot(nodes=NODES, jobs=jobs)


def promise(base: int, opened: float = 0.0, **on: int) -> LeaseSpec:
    return lease(base, on, phase=LeasePhase.GRANTED, opened=opened)


def lacking(shown: Snapshot, *held: LeaseSpec) -> dict[int, tuple[str, ...]]:
    """The resources that each job lacks, by its id."""
    found = awaited(leases(*held), shown)
    return {int(shown.jobs.key[row]) >> 23: words for row, words in found.items()}


def test_free_is_what_no_job_has_of_what_others_leave() -> None:
    shown = seen(runs(1, {"n1": 2, "n2": 1}, cpus=5, memory_mb=9), runs(2, {"n2": 1}), job(3, gpus=4))
    free = Free.of(shown)
    assert [column.tolist() for column in free] == [[5, 5, 0], [5, 4, 10], [75, 74, 100]]
    assert [column.tolist() for column in in_all(shown.nodes)] == [[7, 7, 0], [8, 8, 10], [80, 80, 100]]
    assert shown.nodes.capacity.tolist() == [7, 7, 0]


def test_what_a_job_takes_is_split_over_its_nodes_and_rounded_up() -> None:
    shown = seen(job(1, gpus=3, cpus=5, memory_mb=9), job(2))
    assert needs(shown, 0, [(0, 2), (2, 1)]) == [(0, 2, 3, 5), (2, 1, 3, 5)]
    assert needs(shown, 0, [(1, 3)]) == [(1, 3, 5, 9)]
    assert needs(shown, 0, []) == []
    gpus = np.array([1, 3])
    per_gpu = replace(
        shown, sizes=Sizes(np.zeros(2, dtype=np.int64), gpus, gpus == 3, np.ones(2, dtype=np.int8))
    )
    assert needs(per_gpu, 0, [(1, 1)]) == [(1, 1, 2, 9)]


def test_shares_of_one_node_are_added_up() -> None:
    node_of, some = np.array([1, 1, 0]), np.array([1, 2, 4])
    assert [each.tolist() for each in summed(node_of, (some, some * 2, some * 3), 3)] == [
        [4, 3, 0], [8, 6, 0], [12, 9, 0],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("need", "words"),
    [
        ((0, 7, 8, 80), ()),
        ((0, 8, 8, 80), ("GPUs",)),
        ((0, 7, 9, 80), ("CPUs",)),
        ((0, 7, 8, 81), ("memory",)),
        ((0, 8, 9, 81), ("GPUs", "CPUs", "memory")),
        ((2, 0, 10, 0), ()),
    ],
)
def test_what_is_not_there_is_named_once_in_one_order(
    need: tuple[int, int, int, int], words: tuple[str, ...]
) -> None:
    assert Free.of(seen()).lacks([need]) == words
    assert Free.of(seen()).lacks([need, (1, 1, 1, 1), need]) == words
    assert Free.of(seen()).lacks([]) == ()


def test_a_job_that_asks_for_none_of_it_does_not_lack_what_is_in_debt() -> None:
    free = Free.of(seen())
    free.take([(1, 3, 9, 80), (0, 1, 1, 1)])
    assert [column.tolist() for column in free] == [[6, 4, 0], [7, -1, 10], [79, 0, 100]]
    assert free.lacks([(1, 4, 0, 0)]) == ()
    assert free.lacks([(1, 4, 1, 1)]) == ("CPUs", "memory")


def test_promised_jobs_behind_shut_gates_lack_what_jobs_and_opened_promises_take() -> None:
    shown = seen(runs(1, {"n1": 2}), job(2, gpus=3), job(3, gpus=3), job(4, gpus=5), job(5, gpus=2))
    held = (promise(2, 1.0, n1=3), promise(3, n1=3), promise(4, n2=5), promise(5, n1=2))
    assert lacking(shown, *held) == {3: ("GPUs",), 4: (), 5: ()}


def test_promises_behind_shut_gates_take_nothing_from_one_another() -> None:
    shown = seen(job(1, gpus=5), job(2, gpus=5))
    assert lacking(shown, promise(1, n1=5), promise(2, n1=5)) == {1: (), 2: ()}


def test_nothing_is_awaited_by_who_runs_or_is_not_listed() -> None:
    shown = seen(runs(1, {"n1": 2}), job(2, gpus=7))
    assert awaited(leases(lease(1, {"n1": 2})), shown) == {}
    assert awaited(leases(), shown) == {}
    assert lacking(shown, promise(2, n1=7), promise(9, n1=7), promise(10, 1.0, n1=7)) == {2: ("GPUs",)}
    assert pack(2) == shown.jobs.key[1]
