"""Relaxed placement on a real Slurm: who left the nodes to Slurm is spread over what is free, and nobody else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from slurm_fair.lab import Lab, LabSpec, available
from tests.slurm.harness import Site, playing

pytestmark = pytest.mark.slurm
RELAXED = '[policy]\nname = "astraea"\n[policy.astraea]\nswap_after = 1\n\nplacement = "relaxed"\n'


@pytest.fixture(scope="module")
def two_nodes() -> Iterator[Lab]:
    """Two nodes of four GPUs."""
    if (reason := available()) is not None:
        pytest.skip(reason)
    with Lab(spec=LabSpec(nodes=2, gpus_per_node=4)) as lab:
        yield lab


@pytest.fixture
def site(two_nodes: Lab) -> Iterator[Site]:
    """A daemon with relaxed placement and leases that outlast the test."""
    lease = {"term": 60, "interval": 1, "grace": 3, "align": "rolling"}
    with playing(Site(two_nodes, "begin", lease, extra=RELAXED)) as site:
        yield site


def test_a_gang_is_spread_where_its_user_left_that_open_and_comes_together_again(site: Site) -> None:
    first, second = site.submit(3).runs(), site.submit(2).runs()
    assert first.now().nodes != second.now().nodes
    fixed = site.submit(3, "-N1")
    loose = site.submit(3).runs()
    assert len(loose.now().nodes) == 2
    assert fixed.waits().state == "PENDING"
    second.cancel()
    first.cancel()
    fixed.runs(20)
    assert len(fixed.now().nodes) == 1
    # Requeued, it wants no more nodes than its user asked for.
    loose.scontrol("requeue")
    loose.runs(30)
    assert len(loose.now().nodes) == 1
