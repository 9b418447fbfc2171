"""A look at a virtual cluster is a value: nothing that happens later shows in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from slurm_fair.model import Placement, Snapshot, Told, Verb
from slurm_fair.sim import Costs
from tests.support.virtual_scene import T0, Scene


def test_what_was_seen_stays_as_it_was_whatever_happens_later() -> None:
    scene = Scene(costs=Costs(checkpoint=10, restart=5))
    seen: list[tuple[Snapshot, dict[str, Any]]] = []

    def look() -> None:  # one that nobody reads before the end, and one that is read at once
        seen.append((scene.look(), whole(scene.look())))

    first = scene.runs(seconds=100, tenant="m", declared=90.0)
    second = scene.submit(gpus=4, seconds=50, tenant="m", time_limit=400.0)
    look()
    scene.at(20).act(Verb.ASK, first)
    third = scene.runs(gpus=4, node="n2", tenant="a", user="z", weight=2.0)  # tenants are numbered anew
    look()
    scene.at(40).act(Verb.REQUEUE, first)
    scene.act(Verb.OPEN, second, "n1")
    look()
    scene.hands.fail("n2")
    scene.hands.lend("n1", 2)
    scene.submit(tasks=(1, 2), checkpoints=False, requeueable=False)
    look()
    scene.at(500).look()
    for again in (first, third):
        scene.act(Verb.OPEN, again, "n1")
    scene.at(1000).look()
    assert [whole(snapshot) for snapshot, _ in seen] == [then for _, then in seen]


def test_what_a_look_counts_on_each_node_is_what_its_jobs_hold_there() -> None:
    scene = Scene(costs=Costs(checkpoint=10, restart=5))
    counts = []

    def count() -> None:
        snapshot = scene.look()
        held, nodes = snapshot.held, len(snapshot.nodes)
        counts.append(held.per_node(nodes).tolist())
        assert counts[-1] == Placement(held.row, held.node, held.gpus).per_node(nodes).tolist()

    count()
    first = scene.runs(gpus=2, seconds=100)
    scene.hands.lend("n1", 2)
    count()
    scene.runs(gpus=4, node="n2", seconds=300)
    count()
    scene.hands.fail("n2")
    scene.hands.lend("n1", -1)
    count()
    scene.at(20).act(Verb.REQUEUE, first)
    scene.at(500)
    count()
    assert [sum(each) for each in counts] == [0, 2, 6, 2, 0]


def test_claims_are_a_plain_table_that_has_the_columns_of_jobs_that_came_later() -> None:
    scene = Scene()
    scene.submit(gpus=2)
    first = scene.look().told
    scene.submit(gpus=2, deadline=T0 + 900)
    second = scene.look().told
    assert first is not None
    assert type(second) is Told
    assert (first.deadline.tolist(), second.deadline.tolist()) == ([np.inf], [np.inf, T0 + 900])
    assert np.isnan(second.scaling).all()
    assert second.rate.tolist() == [[1.0], [1.0]]


def whole(snapshot: Snapshot) -> dict[str, Any]:
    """Everything that a look showed, read now."""
    assert snapshot.told is not None
    tables = {"jobs": snapshot.jobs, "held": snapshot.held, "nodes": snapshot.nodes, "told": snapshot.told}
    columns = {
        (table, name): np.nan_to_num(column, nan=-1.0).tolist()
        for table, of in tables.items()
        for name, column in of._arrays().items()
    }
    plain = (snapshot.time, snapshot.tenants.names, snapshot.users, snapshot.reasons, snapshot.resized)
    return {"columns": columns, "plain": plain, "why": snapshot.nodes.why}
