"""Nodes on which Slurm did not start a job are left to others while another node could take it, and no longer."""

from __future__ import annotations

from typing import Any

import pytest

from slurm_fair.model import Standing
from slurm_fair.reconcile.retries import overlaid
from tests.support.builders import job, node, snapshot

NODES = {"n1": node(4), "n2": node(4), "n3": node(4, gpu_type="v100")}

# what: (how the job asks, the node on which it did not start, whether that is barred now)
CASES: dict[str, tuple[dict[str, Any], str, bool]] = {
    "another node has room": ({}, "n1", True),
    "the others have another type": ({"gpu_type": "v100"}, "n3", False),
    "its user named this node": ({"wanted": ("n1",)}, "n1", False),
    "its user excluded the others": ({"barred": ("n2", "n3")}, "n1", False),
}


@pytest.mark.parametrize(("asked", "shunned", "barred"), CASES.values(), ids=CASES)
def test_a_node_is_shunned_only_while_another_could_take_the_job(
    asked: dict[str, Any], shunned: str, barred: bool
) -> None:
    seen = snapshot(time=100.0, nodes=NODES, jobs=[job(1, gpus=2, **asked)])
    key = int(seen.jobs.key[0])
    shown = overlaid(seen, Standing.new(100.0)._replace(shunned={key: (shunned,)}))
    names = {seen.nodes.names[number] for number in shown.barred.nodes_of(0).tolist()}
    assert (shunned in names) is barred
