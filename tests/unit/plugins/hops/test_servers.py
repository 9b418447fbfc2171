"""Servers of one type that differ by how fast jobs run on them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.model import JobState, NodeSpeeds, Speeds, Verdict
from slurm_fair.policy import View, load
from slurm_fair.policy.check import objections
from tests.support.accounts import places, verdicts
from tests.support.builders import NodeSpec, job
from tests.support.hops_views import NOW, plan, sight


def on_unlike_servers(seen: View, **ratio: float) -> View:
    """The same where jobs of the one class are known to be so fast on these servers."""
    rows, names = len(seen.snapshot.jobs), list(seen.snapshot.nodes.names)
    known = NodeSpeeds(
        np.zeros(len(ratio), dtype=np.int64),
        np.array([names.index(name) for name in ratio]),
        np.array([*ratio.values()]),
    )
    table = np.full((1, len(seen.snapshot.gpu_types), 1, 2), 100.0)
    speeds = Speeds(np.zeros(rows, dtype=np.int64), np.array([4]), table, table / 100, ("a: x",), known)
    return replace(seen, snapshot=replace(seen.snapshot, speeds=speeds))


@pytest.mark.parametrize(("ratio", "where"), [({"n1": 0.5}, "n2"), ({"n2": 0.5}, "n1"), ({"n2": 1.5}, "n2")])
def test_a_job_goes_to_the_server_of_its_type_on_which_it_is_faster(
    ratio: dict[str, float], where: str
) -> None:
    seen = on_unlike_servers(sight([job(1, gpus=8)]), **ratio)
    assert plan(seen) == {"1": {where: 8}}


def test_all_servers_are_used_however_slow_they_are() -> None:
    seen = on_unlike_servers(sight([job(1, gpus=8), job(2, gpus=8)]), n1=0.3)
    assert sorted(map(repr, plan(seen).values())) == ["{'n1': 8}", "{'n2': 8}"]


@pytest.mark.parametrize(("slow", "where"), [(0.5, {"n2": 4}), (0.97, None)])
def test_who_runs_on_a_slow_server_moves_only_where_that_is_worth_more_than_to_stay(
    slow: float, where: dict[str, int] | None
) -> None:
    runs = job(1, gpus=4, state=JobState.RUNNING, start=NOW - 400, on={"n1": 4})
    seen = on_unlike_servers(sight([runs], over={1: {"n1": 4}}), n1=slow)
    made = load("hops", {}).plan(seen)
    assert objections(made, seen) == ""
    assert verdicts(seen.snapshot, made)["1"] is (Verdict.REVOKE if where else Verdict.RENEW)
    assert [on for _, on in made.memory.get("moves", [])] == ([[["n2", 4]]] if where else [])


def test_a_gang_that_needs_several_servers_lies_on_unlike_ones_too() -> None:
    seen = on_unlike_servers(sight([job(1, gpus=16), job(2, gpus=2)], waited={"1": 900.0}), n1=0.5)
    assert plan(seen) == {"1": {"n1": 8, "n2": 8}}


def test_a_gang_that_runs_on_unlike_servers_stays_there() -> None:
    runs = job(1, gpus=6, state=JobState.RUNNING, start=NOW - 400, on={"n1": 3, "n2": 3})
    seen = on_unlike_servers(sight([runs], {"n1": 4, "n2": 4}, over={1: {"n1": 3, "n2": 3}}), n1=0.5)
    assert verdicts(seen.snapshot, load("hops", {}).plan(seen))["1"] is Verdict.RENEW


FOUR: dict[str, int | NodeSpec] = {"n1": 8, "n2": 8, "n3": 8, "n4": 8}


def test_beside_a_gang_that_one_class_can_hold_servers_are_told_apart() -> None:
    seen = on_unlike_servers(sight([job(1, gpus=16), job(2, gpus=8)], FOUR), n1=0.4)
    placed = plan(seen)
    assert len(placed["1"]) == 2
    assert "n1" not in placed["1"] | placed["2"], "three servers are faster, and two jobs need three"


def test_a_class_that_holds_a_gang_only_with_drained_servers_holds_none() -> None:
    nodes = FOUR | {"n3": NodeSpec(gpus=8, usable=False), "n4": NodeSpec(gpus=8, usable=False)}
    seen = on_unlike_servers(sight([job(1, gpus=16)], nodes), n1=0.4)
    assert plan(seen) == {"1": {"n1": 8, "n2": 8}}


def test_a_region_with_a_gang_on_unlike_servers_leaves_the_others_divided() -> None:
    nodes = FOUR | {name: NodeSpec(gpu_type="v100") for name in ("n3", "n4")}
    torn = job(1, gpus=16, gpu_type="a100", state=JobState.RUNNING, start=NOW - 400, on={"n1": 8, "n2": 8})
    jobs = [torn, job(2, gpus=8, gpu_type="v100")]
    seen = on_unlike_servers(sight(jobs, nodes, over={1: {"n1": 8, "n2": 8}}), n1=0.5, n3=0.5)
    made = load("hops", {}).plan(seen)
    assert objections(made, seen) == ""
    assert verdicts(seen.snapshot, made)["1"] is Verdict.RENEW
    assert places(seen.snapshot, made) == {"2": {"n4": 8}}
