"""A gang of all nodes against a flood of small jobs, under rolling leases, on a real Slurm and with both gates."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from slurm_fair.lab import Lab, LabSpec, available
from tests.slurm.harness import Site, wait_until

pytestmark = pytest.mark.slurm
TERM, RESERVE_AFTER, GRACE = 12.0, 4.0, 3.0
ROLLING = {"term": TERM, "interval": 1, "grace": GRACE, "align": "rolling", "reserve_after": RESERVE_AFTER}
SWITCH_SECONDS = 8.0  # looks, requeues and Slurm's own start


@pytest.fixture(scope="module")
def two_nodes() -> Iterator[Lab]:
    """Two nodes of four GPUs."""
    if (reason := available()) is not None:
        pytest.skip(reason)
    with Lab(spec=LabSpec(nodes=2, gpus_per_node=4)) as lab:
        yield lab


def _running(site: Site) -> int:
    return sum(row.state == "RUNNING" for row in site.rows().values())


@pytest.mark.parametrize("gate", ["begin", "hold"])
def test_nodes_are_set_aside_for_a_gang_that_then_starts_within_a_term_and_a_grace(
    two_nodes: Lab, gate: str
) -> None:
    site = Site(two_nodes, gate, ROLLING)
    try:
        site.start()
        for number in range(16):
            site.submit(1)
            time.sleep(0.4 if number < 8 else 0.0)  # their leases end one by one
        wait_until(lambda: _running(site) == 8, 30, "eight jobs run")
        began = time.time()
        gang = site.submit(8, "-N2", tenant="nlp")
        told = ""
        kept: dict[str, Any] = {}
        while gang.now().state != "RUNNING" and time.time() - began < 120:
            queue = json.loads(site.cli("queue", "--json").stdout)
            told = told or next((job["why"] for job in queue["jobs"] if "set aside for it" in job["why"]), "")
            kept = kept or next((job["set_aside"] for job in queue["jobs"] if job["set_aside"]), {})
            time.sleep(0.5)
        started = time.time()
        assert gang.now().state == "RUNNING", site.said()
        assert "n1, n2 are set aside for it" in told
        assert kept["nodes"] == ["n1", "n2"]
        # At the first end of a lease after it has waited: all of them are at most a term away.
        assert RESERVE_AFTER - 1 <= kept["since"] - began <= RESERVE_AFTER + TERM + SWITCH_SECONDS, (
            site.said()
        )
        assert started - kept["since"] <= TERM + GRACE + SWITCH_SECONDS, site.said()
        assert kept["since"] < kept["expected"] <= kept["since"] + TERM + GRACE
        site.assert_clean()
    finally:
        site.close()
