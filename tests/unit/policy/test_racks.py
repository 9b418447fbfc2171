"""A gang of several nodes lies in as few racks as any choice of as many nodes; without racks nothing changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_fair.model import Snapshot
from slurm_fair.policy import Gang, Loss, Pools, Room, Shapes, Sites, consolidated
from tests.support.builders import JobSpec, NodeSpec, job, node, snapshot


def seen(asked: JobSpec, nodes: Mapping[str, int | NodeSpec], racks: str | None) -> Snapshot:
    """A cluster with a letter for the rack of each node."""
    letters = None if racks is None else np.array([ord(letter) for letter in racks], dtype=np.int64)
    return replace(snapshot(nodes=nodes, jobs=[asked]), racks=letters)


def laid(view: Snapshot, loss: Loss | None = None) -> tuple[Room, Gang, Sites | None]:
    """The nodes of the only job, and the room that it found."""
    table = view.nodes
    cpus, memory_mb = table.cpus - table.cpus_others, table.memory_mb - table.memory_others_mb
    room = Room(Pools.of(view), table.capacity, cpus, memory_mb, loss)
    ((way,),) = Shapes.of(room.pools, view, np.array([0])).ways(np.array([0]))
    return room, way, consolidated(room, way)


def lie(
    asked: JobSpec, nodes: Mapping[str, int | NodeSpec], racks: str | None, loss: Loss | None = None
) -> dict[str, int] | None:
    view = seen(asked, nodes, racks)
    sites = laid(view, loss)[2]
    return None if sites is None else {view.nodes.names[at]: gpus for at, gpus in sites}


FOUR: dict[str, int | NodeSpec] = {"n1": 8, "n2": 8, "n3": 8, "n4": 8}
NONE = np.zeros(4, dtype=np.int64)
CASES = {
    "two whole nodes lie in the rack that has two": (job(1, gpus=16), FOUR, "abba", {"n1": 8, "n4": 8}),
    "of two racks that have room the one of the first node": (job(1, gpus=16), FOUR, "abab", {"n1": 8, "n3": 8}),
    "nodes asked for": (job(1, gpus=4, nodes=2), FOUR, "abca", {"n1": 2, "n4": 2}),
    "racks come before fullness": (
        job(1, gpus=4, nodes=2),
        {"n1": node(8, gpus_others=5), "n2": node(8, gpus_others=5), "n3": 8, "n4": 8},
        "abcc",
        {"n3": 2, "n4": 2},
    ),
    "fullness decides among as few racks": (
        job(1, gpus=4, nodes=2),
        {"n1": 8, "n2": 8, "n3": node(8, gpus_others=5), "n4": 8},
        "aabb",
        {"n3": 2, "n4": 2},
    ),
    "nobody waits for a rack": (job(1, gpus=16), {"n1": 8, "n2": 8}, "ab", {"n1": 8, "n2": 8}),
    "two racks where one is too small": (job(1, gpus=24), FOUR, "abcc", {"n1": 8, "n3": 8, "n4": 8}),
    "fewer nodes before fewer racks": (
        job(1, gpus=16),
        {"n1": 8, "n2": 8, "n3": 4, "n4": 4, "n5": 4, "n6": 4},
        "abcccc",
        {"n1": 8, "n2": 8},
    ),
    "bigger nodes first where both are as few": (
        job(1, gpus=12),
        {"n1": 8, "n2": 8, "n3": 4, "n4": 8},
        "abbc",
        {"n2": 8, "n3": 4},
    ),
    "a node asked for by name stays": (job(1, gpus=4, nodes=2, wanted=("n2",)), FOUR, "abba", {"n2": 2, "n3": 2}),
    "one node is in one rack": (job(1, gpus=2), {"n1": 8, "n2": node(8, gpus_others=4)}, "ab", {"n2": 2}),
}  # fmt: skip


@pytest.mark.parametrize(("asked", "nodes", "racks", "expected"), CASES.values(), ids=CASES)
def test_as_few_racks_as_can_be(
    asked: JobSpec, nodes: Mapping[str, int | NodeSpec], racks: str, expected: dict[str, int]
) -> None:
    assert lie(asked, nodes, racks) == expected


def test_nobody_loses_gpus_so_that_a_gang_lies_in_one_rack() -> None:
    spared = np.array([8, 8, 0, 0])
    assert lie(job(1, gpus=4, nodes=2), FOUR, "abcc", Loss(spared, NONE)) == {"n1": 2, "n2": 2}
    assert lie(job(1, gpus=4, nodes=2), FOUR, "abba", Loss(NONE, NONE)) == {"n1": 2, "n4": 2}
    # Two must come from somebody: the one owed least, n2, and of the free ones that of its rack.
    some = Loss(np.array([8, 0, 0, 8]), np.array([0, 3, 1, 0]))
    assert lie(job(1, gpus=6, nodes=3), FOUR, "abcb", some) == {"n1": 2, "n2": 2, "n4": 2}


def test_who_could_lose_counts_for_nothing_where_nobody_does() -> None:
    rank = Loss(np.array([8, 8, 8, 8]), np.array([4, 1, 3, 2]))
    assert lie(job(1, gpus=4, nodes=2), FOUR, "aaaa", rank) == {"n1": 2, "n3": 2}
    assert lie(job(1, gpus=4, nodes=2), FOUR, "abca", rank) == {"n1": 2, "n4": 2}


clusters = st.lists(
    st.tuples(st.sampled_from((2, 4, 8)), st.integers(0, 4), st.sampled_from("abcd")), min_size=2, max_size=7
)
gangs = st.one_of(
    st.builds(
        lambda nodes, each: job(1, gpus=nodes * each, nodes=nodes), st.integers(2, 5), st.integers(1, 4)
    ),
    st.builds(lambda gpus: job(1, gpus=gpus), st.integers(9, 40)),
)


def drawn(sizes: list[tuple[int, int, str]]) -> tuple[dict[str, int | NodeSpec], str]:
    """Nodes of which others have some GPUs, and their racks."""
    nodes: dict[str, int | NodeSpec] = {
        f"n{at}": node(size, gpus_others=min(others, size)) for at, (size, others, _) in enumerate(sizes)
    }
    return nodes, "".join(rack for _, _, rack in sizes)


@settings(max_examples=400, deadline=None)
@given(sizes=clusters, asked=gangs)
def test_no_choice_of_as_many_nodes_has_fewer_racks(
    sizes: list[tuple[int, int, str]], asked: JobSpec
) -> None:
    nodes, racks = drawn(sizes)
    room, gang, sites = laid(seen(asked, nodes, racks))
    plain = laid(seen(asked, nodes, None))[2]
    assert (sites is None) is (plain is None)
    if sites is None or plain is None:
        return
    assert len(sites) == len(plain)
    assert sum(gpus for _, gpus in sites) == gang.gpus
    assert all(room.gpus[at] >= gpus for at, gpus in sites)
    fits = np.flatnonzero(room.fitting(gang)).tolist()
    fewest = min(
        len({racks[at] for at in others})
        for others in combinations(fits, len(sites))
        if not gang.whole or sum(int(room.gpus[at]) for at in others) >= gang.gpus
    )
    assert len({racks[at] for at, _ in sites}) == fewest


@settings(max_examples=200, deadline=None)
@given(sizes=clusters, asked=gangs)
def test_one_rack_is_as_none(sizes: list[tuple[int, int, str]], asked: JobSpec) -> None:
    nodes, racks = drawn(sizes)
    none = laid(seen(asked, nodes, None))
    one = laid(seen(asked, nodes, "a" * len(racks)))
    assert (none[2], none[0].pools.racks, one[0].pools.racks) == (one[2], None, None)
