"""Weights reach the look at the cluster, also of a tenant that Slurm's shares do not name."""

from __future__ import annotations

import pytest

from slurm_fair.model import Snapshot
from tests.support.fake_cluster import Site


def test_a_tenant_without_shares_weighs_as_the_others_do_on_average() -> None:
    site = Site.build({"n1": 8}, weights={"a": 1.0, "b": 3.0})
    site.world.submit(1, "stranger")
    seen = site.cluster.observe({})
    assert isinstance(seen, Snapshot)
    weights = dict(zip(seen.tenants.names, seen.tenants.weight.tolist(), strict=True))
    assert weights == pytest.approx({"a": 0.25, "b": 0.75, "stranger": 0.5})


def test_an_account_that_gets_its_first_job_weighs_what_its_shares_say_at_the_next_look() -> None:
    site = Site.build({"n1": 8}, weights={"a": 1.0})
    site.world.submit(1, "a")
    site.tick()
    site.world.weights = {"a": 1.0, "new": 3.0}
    site.world.submit(1, "new")
    site.world.clock.advance(1.0)
    seen = site.cluster.observe({})
    assert isinstance(seen, Snapshot)
    assert dict(zip(seen.tenants.names, seen.tenants.weight.tolist(), strict=True)) == {
        "a": 0.25,
        "new": 0.75,
    }
