"""For any text in any field that a user controls, the other rows of a snapshot are as without that job."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_fair.config.tree import from_tree
from slurm_fair.model import Blind, Blocked, Snapshot
from slurm_fair.model.ids import TASK_BITS
from slurm_fair.slurm.cluster import SlurmCluster
from slurm_fair.slurm.fail_open import NoIntents
from slurm_fair.slurm.ownership.marks import MarksInHand
from slurm_fair.slurm.reading.queue import STATES
from tests.support.fake_commands import FakeCommands
from tests.support.fake_slurm import PushedClock, World
from tests.support.hostile import HUGE, forged_comments, forged_lines, forged_rows
from tests.support.mutation import TOKENS

NODES = {"n1": 4, "n2": 4, "n3": 4}
WAITS, GANG, ARRAY = 1, 2, 3  # ids of the honest jobs
FORGED = [
    text
    for victim in (WAITS, GANG, ARRAY)
    for some in (
        forged_rows(victim, "a", "root"),
        forged_lines(victim, ("n1", "n2")),
        forged_comments(victim),
    )
    for text in some
]
TEXTS = st.one_of(
    st.sampled_from(FORGED),
    st.lists(st.sampled_from([token for token in TOKENS if token.isascii() and len(token) < 99])).map(
        "".join
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    st.sampled_from([f"gpu:{huge}" for huge in HUGE]),
)
ODD_NODES = st.sampled_from(["n[", "n[9-1]", "n[1-99999999]", "n1,,n2", "n1\n"])
# Kept raw by Slurm: GRES texts, account (not enforced), name, features, excluded nodes, directory, comment; and
# numbers of Slurm's own that absurd demands make.
FIELDS: dict[str, st.SearchStrategy[str]] = {
    "tres-per-node": TEXTS, "tres-per-job": TEXTS, "tres-per-task": TEXTS, "Account": TEXTS, "%j": TEXTS,
    "%f": TEXTS, "%x": TEXTS, "%Z": TEXTS, "%k": TEXTS, "ReqNodes": TEXTS | ODD_NODES,
    "tres-alloc": st.sampled_from([f"cpu=1,mem=1G,node=1,gres/gpu={huge}" for huge in HUGE[:4]]),
    "NumTasks": st.sampled_from(HUGE), "NumNodes": st.sampled_from(HUGE), "Deadline": st.sampled_from(HUGE),
    "MinTime": st.sampled_from(HUGE), "State": st.sampled_from([*sorted(STATES), "NEW_WORD", ""]),
}  # fmt: skip
RAW = st.lists(
    st.one_of([st.tuples(st.just(name), texts) for name, texts in FIELDS.items()]), min_size=1, max_size=3
).map(dict)
_BY_NAME = ("tenant", "user", "partition", "gpu_type")


@dataclass(frozen=True)
class Told:
    """A snapshot's account of the honest jobs, and of everybody at once."""

    rows: dict[int, dict[str, object]]
    rest: dict[str, object]


def honest(world: World) -> None:
    """One waits, a gang runs on two nodes unevenly, an array waits."""
    assert world.submit(2, "a", begin=world.clock.now() + 900, node_list=("n2",)) == WAITS
    assert world.submit(5, "b", nodes=2) == GANG
    assert world.submit(1, "a", tasks=range(3), array_limit=2, gate_seconds=600) == ARRAY
    world.clock.advance(5)
    world.catch_up()


def cluster_of(world: World) -> SlurmCluster:
    """The adapter over a fake that lists texts as raw as Slurm does."""
    config = from_tree({"scope": {"partitions": ["gpu"]}, "policy": {"name": "tiresias"}}, "t")
    return SlurmCluster(FakeCommands(world), config.cluster, world.clock.now, MarksInHand(), NoIntents())


def told(seen: Snapshot | Blind) -> Told:
    """The columns of the honest jobs by key; names in place of numbers."""
    assert not isinstance(seen, Blind), seen.reason
    jobs, rows = seen.jobs, {}
    for row, key in enumerate(jobs.key.tolist()):
        if key >> TASK_BITS > ARRAY:
            continue
        columns = {
            name: getattr(jobs, name)[row].item()
            for name in jobs.__dataclass_fields__
            if name not in _BY_NAME and isinstance(getattr(jobs, name), np.ndarray)
        }
        places = {
            name: [(at.node[i].item(), at.gpus[i].item()) for i in range(len(at)) if at.row[i] == row]
            for name, at in (("held", seen.held), ("wanted", seen.wanted), ("barred", seen.barred))
        }
        rows[key] = columns | places | {
            "tenant": seen.tenants.names[jobs.tenant[row]], "user": seen.users[jobs.user[row]],
            "partition": seen.partitions.names[jobs.partition[row]], "reason": seen.reasons[row],
            "grace": seen.graces.get(key, 0),
            "gpu_type": (*seen.gpu_types, "any")[jobs.gpu_type[row]],
        }  # fmt: skip
    nodes = seen.nodes
    assert len(rows) == 5
    told_of_nodes = {"names": nodes.names, "gpus": nodes.gpus.tolist(), "usable": nodes.usable.tolist()}
    return Told(rows, told_of_nodes | {"types": seen.gpu_types})


@pytest.mark.parametrize("runs", [False, True], ids=["waits", "runs as a gang"])
@settings(max_examples=150)
@given(raw=RAW, later=RAW)
def test_the_other_rows_are_what_they_are_without_that_job(
    runs: bool, raw: dict[str, str], later: dict[str, str]
) -> None:
    worlds = [World(PushedClock(), NODES, seed=1) for _ in range(2)]
    looks: list[list[Told]] = []
    for world, hostile in zip(worlds, (False, True), strict=True):
        honest(world)
        number = world.submit(3, "c", nodes=2, begin=0 if runs else world.clock.now() + 900) if hostile else 0
        world.clock.advance(5)
        world.catch_up()
        cluster, seen = cluster_of(world), []
        for texts in (raw, {}, later):
            if hostile:
                world.records[number].raw = texts
            found = cluster.observe({})
            seen.append(told(found))
            if hostile:
                assert isinstance(found, Snapshot)
                assert (found.held.per_node(3) + found.nodes.gpus_others <= found.nodes.gpus).all()
                assert (found.held.gpus >= 0).all()
        looks.append(seen)
    assert looks[1] == looks[0]


def test_two_hundred_hostile_jobs_cost_a_look_no_command_more() -> None:
    calls = []
    for hostile in (False, True):
        world = World(PushedClock(), NODES, seed=1)
        honest(world)
        for number in range(200):
            job = world.submit(1, "c", begin=world.clock.now() + 900)
            text = FORGED[number % len(FORGED)]
            if hostile:
                world.records[job].raw = {"%k": text, "%j": text, "%Z": text, "tres-per-node": text}
        cluster = cluster_of(world)
        for _ in range(3):
            told(cluster.observe({}))
        calls.append(cluster._commands.calls)
    assert calls[0] == calls[1]


@pytest.mark.parametrize("state", ["FAILED", "PENDING"])
def test_types_that_users_make_up_are_no_types_of_the_cluster_and_fill_no_memory(state: str) -> None:
    world = World(PushedClock(), NODES, seed=1)
    honest(world)
    cluster = cluster_of(world)
    before = cluster.observe({})
    assert isinstance(before, Snapshot)
    job = world.submit(1, "c", begin=world.clock.now() + 900)
    for number in range(50):
        texts = {"tres-per-node": f"gpu:made{number}:1", "State": state}
        world.records[job].raw = texts
        seen = cluster.observe({})
        assert isinstance(seen, Snapshot)
        assert seen.gpu_types == before.gpu_types
        row = [key >> TASK_BITS for key in seen.jobs.key.tolist()].index(job)
        assert (seen.jobs.blocked[row] == Blocked.IMPOSSIBLE) == (state == "PENDING")
    assert state == "PENDING" or len(cluster._queue.gpu_types.texts) <= 1
