"""Findings about nodes and jobs."""

from __future__ import annotations

import pytest

from slurm_fair.config.sections import ScopeSection
from slurm_fair.doctor import Level
from slurm_fair.doctor.hook import HOOK_ANEW
from slurm_fair.doctor.machines import floods, nodes
from slurm_fair.model import LeftAlone
from slurm_fair.slurm.reading.nodes import NodeListing, RawNode
from slurm_fair.slurm.scope import HETEROGENEOUS, INTERACTIVE, SEVERAL_TYPES
from tests.support.builders import job, snapshot
from tests.support.site_facts import ERROR, FACTS, OK, WARNING, worst


def node(name: str, gpus: int = 8, kind: str = "a100", state: str = "idle") -> RawNode:
    """A node with quiet defaults."""
    return RawNode(name, gpus, kind, 0, 64, 0, 512_000, 0, state)


@pytest.mark.parametrize(
    ("listed", "level", "words"),
    [
        ([node("n1"), node("n2", kind="v100")], OK, "2 nodes with GPUs in gpu: 8 a100, 8 v100"),
        ([node("n1", kind="")], OK, "8 untyped"),
        ([node("n1"), node("n2", kind="+")], WARNING, "several GPU types on one node"),
        ([node("n1", state="drained"), node("n2")], WARNING, "1 of 2 nodes take no work: n1 (drained)"),
        ([node("n1", gpus=0, kind="")], ERROR, "no managed partition has a GPU"),
    ],
)
def test_the_nodes(listed: list[RawNode], level: Level, words: str) -> None:
    by_name = {each.name: each for each in listed}
    found = list(nodes(NodeListing(by_name, {"gpu": tuple(by_name)}, {"gpu": True}), FACTS))
    assert worst(found) is level
    assert any(words in f.what for f in found), found


@pytest.mark.parametrize(
    ("reason", "scope", "words"),
    [
        (INTERACTIVE, ScopeSection(), 'interactive = "gate"'),
        (HETEROGENEOUS, ScopeSection(), 'unplanned = "refuse"'),
        (SEVERAL_TYPES, ScopeSection(interactive="gate"), 'unplanned = "refuse"'),
        (SEVERAL_TYPES, ScopeSection(unplanned="refuse"), None),  # of root, or of before the site said so
        ("runs in a reservation", ScopeSection(), None),
    ],
)
def test_jobs_that_no_gate_keeps_back_are_warned_of(
    reason: str, scope: ScopeSection, words: str | None
) -> None:
    seen = snapshot(nodes={"n1": 8}, jobs=[job(1)], left_alone=[LeftAlone("7", reason, "ann")])
    found = list(floods(seen, scope))
    assert [finding.level for finding in found] == ([WARNING] if words else [])
    assert all(words is not None and words in finding.cure for finding in found)
    assert all(HOOK_ANEW in finding.cure for finding in found)
