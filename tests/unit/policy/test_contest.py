"""GPUs are taken from what is free first, then from likely losers, then from jobs that are owed less."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_fair.model import JobState
from slurm_fair.model.sizes import with_gangs
from slurm_fair.policy import Contest, Gang, Pools, consolidated
from tests.support.accounts import view
from tests.support.builders import NodeSpec, job, lease, leases, snapshot
from tests.support.tight_views import tight

# What runs under a lease that is over, in the order of deservingness: node -> GPUs.
Holdings = list[dict[str, int]]


def contest(holdings: Holdings, losers: set[int], nodes: int = 2) -> Contest:
    """Nodes of 8 GPUs on which these jobs run; job 0 is owed most."""
    running = [
        job(i + 1, gpus=sum(on.values()), on=on, state=JobState.RUNNING, cpus=len(on))
        for i, on in enumerate(holdings)
    ]
    seen = snapshot(nodes={f"n{i}": 8 for i in range(nodes)}, jobs=running)
    table = leases(*(lease(i + 1, on, end=-1.0) for i, on in enumerate(holdings)))
    rows = np.arange(len(holdings))
    loser = np.isin(rows, list(losers))
    return Contest(view(seen, table), Pools.of(seen), consolidated, rows, rows, loser)


def gang(gpus: int) -> list[Gang]:
    """A gang on one node."""
    return [Gang(gpus, pool=0, nodes=1, share=gpus, whole=False, cpus=1, memory_mb=1)]


CASES: list[tuple[str, Holdings, set[int], int, set[int]]] = [
    ("free GPUs are taken before anybody stops", [{"n0": 4}, {"n1": 6}], {0, 1}, 4, set()),
    ("a likely loser stops before a likely winner", [{"n0": 8}, {"n1": 8}], {0}, 8, {0}),
    ("the node of the one owed least is taken", [{"n0": 4}, {"n0": 4}, {"n1": 8}], set(), 4, {2}),
    ("and there the one owed least stops", [{"n1": 8}, {"n0": 4}, {"n0": 4}], set(), 4, {2}),
    ("on one node likely losers stop first", [{"n0": 4}, {"n0": 4}, {"n1": 8}], {0}, 4, {0}),
    ("nobody stops who need not", [{"n0": 7}, {"n0": 1}, {"n1": 8}], {0, 1}, 7, {0}),
    ("as many as needed stop", [{"n0": 3}, {"n0": 3}, {"n0": 2}, {"n1": 8}], {0, 1, 2}, 5, {1, 2}),
    ("the loss of winners is kept small", [{"n0": 6}, {"n1": 3}, {"n1": 5}, {"n0": 2}], {2}, 8, {1, 2}),
]


@pytest.mark.parametrize(
    ("holdings", "losers", "gpus", "evicted"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_place(holdings: Holdings, losers: set[int], gpus: int, evicted: set[int]) -> None:
    arena = contest(holdings, losers)
    assert arena.place(gang(gpus)) is not None
    assert set(arena.evicted) == evicted


def test_a_renewed_job_is_not_evicted() -> None:
    arena = contest([{"n0": 8}], set(), nodes=1)
    arena.protect(0)
    assert arena.place(gang(1)) is None
    assert arena.evicted == []


def test_an_evicted_jobs_other_node_is_free_for_the_next() -> None:
    arena = contest([{"n0": 8, "n1": 8}, {"n1": 0}], {0})
    assert arena.place(gang(8)) == [(0, 8)]
    assert arena.place(gang(8), evict=False) == [(1, 8)]


def test_what_evicting_could_place_is_not_given_up_for_good() -> None:
    arena = contest([{"n0": 8}], set(), nodes=1)
    assert arena.place(gang(8), evict=False) is None
    assert arena.place(gang(8)) == [(0, 8)]


def test_an_elastic_job_gives_back_what_its_size_takes_though_it_is_asked_to_have_another() -> None:
    nodes = {"n0": NodeSpec(gpus=4, cpus=8, memory_mb=16)}
    runs = job(1, gpus=1, cpus=2, memory_mb=3, on={"n0": 1}, state=JobState.RUNNING)
    seen = tight([runs], [lease(1, {"n0": 1}, end=0.0)], 1, nodes)
    assert seen.snapshot.sizes is not None
    larger = with_gangs(seen.snapshot.jobs, seen.snapshot.sizes, np.array([4]))
    asked = replace(seen, snapshot=replace(seen.snapshot, jobs=larger))
    row = np.zeros(1, dtype=np.int64)
    arena = Contest(asked, Pools.of(asked.snapshot), consolidated, row, row, np.array([True]))
    assert (arena.all.cpus.tolist(), arena.all.memory_mb.tolist()) == ([8], [16])


on_nodes = st.dictionaries(st.sampled_from(["n0", "n1", "n2"]), st.integers(1, 2), min_size=1, max_size=2)


@given(
    holdings=st.lists(on_nodes, min_size=1, max_size=4),
    losers=st.sets(st.integers(0, 3)),
    acts=st.lists(st.integers(0, 12), max_size=12),
)
@settings(max_examples=200, deadline=None)
def test_every_room_has_what_its_name_says(holdings: Holdings, losers: set[int], acts: list[int]) -> None:
    """free + the open jobs' holdings, whatever was placed, renewed or evicted before."""
    arena = contest(holdings, losers, nodes=3)
    placed = np.zeros(3, dtype=np.int64)
    renewed: set[int] = set()
    for act in acts:
        if act < len(holdings):
            if arena.is_open(act):
                arena.protect(act)
                renewed.add(act)
        else:
            for node, gpus in arena.place(gang(max(act - 4, 1))) or []:
                placed[node] += gpus
    unopened = {*renewed, *arena.evicted}
    rest = {i for i in range(len(holdings)) if i not in unopened}
    free = 8 - placed - _held(holdings, renewed | rest)
    assert arena.free.gpus.tolist() == free.tolist()
    assert arena.likely.gpus.tolist() == (free + _held(holdings, rest & losers)).tolist()
    assert arena.all.gpus.tolist() == (free + _held(holdings, rest)).tolist()
    assert arena.left == int((free + _held(holdings, rest)).sum())


def _held(holdings: Holdings, which: set[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    held = np.zeros(3, dtype=np.int64)
    for i in which:
        for name, gpus in holdings[i].items():
            held[int(name[1])] += gpus
    return held
