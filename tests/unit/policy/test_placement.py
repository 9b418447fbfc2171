"""A gang is laid over nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from slurm_fair.errors import ConfigError
from slurm_fair.model import Snapshot
from slurm_fair.policy import Loss, Pools, Room, Shapes, Sites, consolidated, placer
from slurm_fair.policy.packing import placement
from tests.support.builders import JobSpec, NodeSpec, job, node, snapshot


def lie(
    asked: JobSpec, nodes: Mapping[str, int | NodeSpec], loss: Loss | None = None
) -> dict[str, int] | None:
    """GPUs by node that the job gets; `gpus_others` says what is taken."""
    seen = snapshot(nodes=nodes, jobs=[asked])
    room = room_of(seen, loss)
    for gang in Shapes.of(room.pools, seen, np.array([0])).ways(np.array([0]))[0]:
        sites = consolidated(room, gang)
        if sites is not None:
            return {seen.nodes.names[n]: gpus for n, gpus in sites}
    return None


def room_of(seen: Snapshot, loss: Loss | None = None) -> Room:
    """All that others do not have."""
    nodes = seen.nodes
    cpus, memory_mb = nodes.cpus - nodes.cpus_others, nodes.memory_mb - nodes.memory_others_mb
    return Room(Pools.of(seen), nodes.capacity, cpus, memory_mb, loss)


def taken(gpus: int, of: int = 8, **more: Any) -> NodeSpec:
    """A node of which others have so many GPUs."""
    return node(of, gpus_others=gpus, **more)


THREE = {"n1": taken(2), "n2": taken(5), "n3": taken(0)}  # 6, 3 and 8 free

CASES: list[tuple[str, JobSpec, Mapping[str, int | NodeSpec], dict[str, int] | None]] = [
    ("a small job goes to the fullest node that fits", job(1, gpus=2), THREE, {"n2": 2}),
    ("a job that fits exactly leaves no fragment", job(1, gpus=6), THREE, {"n1": 6}),
    ("one node is enough, so one node it is", job(1, gpus=7), THREE, {"n3": 7}),
    ("a job that fits a node is never split over two", job(1, gpus=8), {"n1": taken(2), "n2": taken(1)}, None),
    ("of equals the first node is taken", job(1, gpus=1), {"n1": 8, "n2": 8}, {"n1": 1}),
    ("two nodes asked for: an equal part on each", job(1, gpus=6, nodes=2), THREE, {"n1": 3, "n2": 3}),
    ("what does not divide goes to the first nodes", job(1, gpus=5, nodes=2), THREE, {"n1": 3, "n2": 2}),
    ("GPUs per node decide how many nodes", job(1, gpus=12, nodes=1, gpus_per_node=6), THREE, {"n1": 6, "n3": 6}),
    ("fewer GPUs than nodes asked for", job(1, gpus=1, nodes=2), THREE, None),
    ("too few nodes have the GPUs per node", job(1, gpus=21, nodes=3, gpus_per_node=7), THREE, None),
    ("bigger than any node: whole nodes", job(1, gpus=16), {"n1": 8, "n2": taken(1), "n3": 8}, {"n1": 8, "n3": 8}),
    ("the last whole node need not be used up", job(1, gpus=12), {"n1": 8, "n2": 8}, {"n1": 8, "n2": 4}),
    ("whole nodes are never shared", job(1, gpus=12), {"n1": 8, "n2": taken(1)}, None),
    ("bigger nodes first: fewer", job(1, gpus=20), {"n1": 4, "n2": 16, "n3": 16}, {"n2": 16, "n3": 4}),
    ("half a node is not whole", job(1, gpus=20), {"n1": taken(8, 16), "n2": 16, "n3": 8}, {"n2": 16, "n3": 4}),
    ("an unusable node is not there", job(1, gpus=8), {"n1": node(8, usable=False), "n2": taken(1)}, None),
    ("a node of another partition is not there", job(1, gpus=1), {"n1": node(8, partitions=("x",))}, None),
    ("a wanted node is part of the place", job(1, gpus=1, wanted=("n3",)), THREE, {"n3": 1}),
    ("all wanted nodes are part of the place", job(1, gpus=4, wanted=("n1", "n3")), THREE, {"n1": 2, "n3": 2}),
    ("a wanted node that is too full: no place", job(1, gpus=4, wanted=("n2",)), THREE, None),
    ("a wanted node and the best other", job(1, gpus=6, nodes=2, wanted=("n3",)), THREE, {"n2": 3, "n3": 3}),
    ("a barred node is not used", job(1, gpus=2, barred=("n2",)), THREE, {"n1": 2}),
    ("CPUs must be free too", job(1, gpus=2, cpus=60), {"n1": taken(5, cpus_others=10), "n2": 8}, {"n2": 2}),
    ("memory must be free too", job(1, gpus=2, memory_mb=9), {"n1": taken(5, memory_mb=8), "n2": 8}, {"n2": 2}),
    ("CPUs of a gang count by node", job(1, gpus=4, nodes=2, cpus=120), {"n1": 8, "n2": 8}, {"n1": 2, "n2": 2}),
    ("no CPUs anywhere: no place", job(1, gpus=1, cpus=65), THREE, None),
    ("the asked type only", job(1, gpus=2, gpu_type="b"), {"n1": 2, "n2": node(8, gpu_type="b")}, {"n2": 2}),
    (
        "any type, but one type for the whole gang",
        job(1, gpus=16),
        {"n1": node(8, gpu_type="a"), "n2": node(8, gpu_type="b"), "n3": node(8, gpu_type="b")},
        {"n2": 8, "n3": 8},
    ),
    (
        "of two types the one that takes fewer nodes",
        job(1, gpus=8),
        {"n1": node(4, gpu_type="a"), "n2": node(4, gpu_type="a"), "n3": node(8, gpu_type="b")},
        {"n3": 8},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "nodes", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_consolidated(
    asked: JobSpec, nodes: Mapping[str, int | NodeSpec], expected: dict[str, int] | None
) -> None:
    assert lie(asked, nodes) == expected


def test_more_nodes_that_lack_cpus_than_are_looked_at_one_by_one() -> None:
    nodes: dict[str, int | NodeSpec] = {f"poor{i:02}": taken(5, cpus_others=64) for i in range(20)}
    assert lie(job(1, gpus=2, cpus=1), {**nodes, "rich": taken(5), "idle": 8}) == {"rich": 2}
    assert lie(job(1, gpus=2, cpus=1), nodes) is None


def test_where_others_would_lose_least_comes_before_the_fullest() -> None:
    nodes = {"n1": 4, "n2": 8, "n3": 6}
    no_rank = np.zeros(3, dtype=np.int64)
    assert lie(job(1, gpus=4), nodes, Loss(np.array([0, 3, 4]), no_rank)) == {"n3": 4}
    assert lie(job(1, gpus=4), nodes, Loss(no_rank, np.array([3, 7, 5]))) == {"n2": 4}
    assert lie(job(1, gpus=4), nodes, Loss(no_rank, no_rank)) == {"n1": 4}


def test_a_gang_of_whole_nodes_takes_none_that_it_can_do_without() -> None:
    nodes = {"n1": 8, "n2": 8, "n3": 4}
    # The small node would cost nobody anything, but with it alone the gang does not lie.
    loss = Loss(np.array([0, 0, 4]), np.array([1, 1, 2]))
    assert lie(job(1, gpus=16), nodes, loss) == {"n1": 8, "n2": 8}


def test_what_was_given_back_is_found_again() -> None:
    room = room_of(snapshot(nodes={"n1": 8, "n2": 8}, jobs=[job(1, gpus=8)]))
    gang = Shapes.of(room.pools, snapshot(nodes={"n1": 8, "n2": 8}, jobs=[job(1, gpus=8)]), np.array([0]))
    (way,) = gang.ways(np.array([0]))[0]
    for number in (0, 1):
        room.add(number, -1, 0, 0)
    assert consolidated(room, way) is None
    room.add(1, 1, 0, 0)
    assert consolidated(room, way) == [(1, 8)]


class _Entry:
    name = "last"

    @staticmethod
    def load() -> Any:
        return last


def last(room: Room, gang: Any) -> Sites | None:
    """A site's own placer."""
    nodes = np.flatnonzero(room.fitting(gang))
    return [(int(nodes[-1]), gang.gpus)] if len(nodes) else None


def test_a_placer_of_the_site_is_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "entry_points", lambda group: [_Entry] if group == placement.GROUP else [])
    placer.cache_clear()
    assert placer("last") is last
    with pytest.raises(ConfigError, match="unknown placement 'lost': did you mean 'last'"):
        placer("lost")
    placer.cache_clear()
    assert placer("consolidated") is consolidated
