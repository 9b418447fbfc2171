"""Fair shares through the whole controller: weights, latecomers, idle quota, large gangs, on a fake Slurm."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from slurm_fair.model import LeaseTerms
from slurm_fair.model.ids import pack
from slurm_fair_plugins.astraea import Astraea
from tests.support.fake_cluster import Site
from tests.support.fake_slurm import Work

TERMS = LeaseTerms(term=60.0, interval=10.0, grace=10.0, start_timeout=20.0)
QUICK = Work(answers_in=0.2, leaves_in=0.05)


def site(nodes: Mapping[str, int], weights: Mapping[str, float] | None = None) -> Site:
    """A site with leases of a minute."""
    return Site.build(nodes, terms=TERMS, weights=weights or {})


def had(where: Site) -> dict[str, float]:
    """GPU-seconds that each tenant had."""
    tenants = where.standing.ledger.tenants
    return dict(zip(tenants.names, tenants.had.tolist(), strict=True))


def gpus_of(where: Site, tenant: str) -> int:
    """GPUs that a tenant's jobs hold now."""
    return sum(sum(r.on.values()) for r in where.world.living() if r.tenant == tenant)


@pytest.mark.parametrize("gpus", [1, 2, 4])
def test_always_hungry_tenants_get_what_their_weights_say(gpus: int) -> None:
    """Weights 1:1:2 over twenty leases: every tenant's rho is within five per cent of 1."""
    where = site({"n1": 8, "n2": 8}, {"a": 1, "b": 1, "c": 2})
    for tenant in "abc":
        for _ in range(16 // gpus):
            where.world.submit(gpus, tenant, work=QUICK, gate_seconds=600)
    where.run(20 * TERMS.term)
    tenants = where.standing.ledger.tenants
    rho = tenants.had / tenants.owed_demand
    assert rho.tolist() == pytest.approx([1.0, 1.0, 1.0], abs=0.05)


def test_what_switching_leases_costs_stays_small() -> None:
    where = site({"n1": 8, "n2": 8})
    for tenant in "ab":
        for _ in range(4):
            where.world.submit(4, tenant, work=QUICK, gate_seconds=600)
    where.run(20 * TERMS.term)
    assert sum(had(where).values()) > 0.95 * 16 * 20 * TERMS.term


def test_a_latecomer_has_its_share_from_the_next_lease_on() -> None:
    where = site({"n1": 8})
    for _ in range(8):
        where.world.submit(2, "early", work=QUICK, gate_seconds=600)
    where.run(3.5 * TERMS.term)
    assert gpus_of(where, "early") == 8
    for _ in range(4):
        where.world.submit(2, "late", work=QUICK, gate_seconds=600)
    where.run_until(where.now + 0.5 * TERMS.term + 5)
    assert gpus_of(where, "late") >= 4
    before = had(where)
    where.run(10 * TERMS.term)
    got = {tenant: seconds - before[tenant] for tenant, seconds in had(where).items()}
    assert got["late"] >= 0.45 * 8 * 10 * TERMS.term


def test_an_idle_quota_is_lent_and_taken_back_at_the_next_lease() -> None:
    where = site({"n1": 8}, {"owner": 3, "guest": 1})
    for _ in range(4):
        where.world.submit(2, "guest", work=QUICK, gate_seconds=600)
    where.run(2.5 * TERMS.term)
    assert gpus_of(where, "guest") == 8, "idle GPUs are lent"
    for _ in range(4):
        where.world.submit(2, "owner", work=QUICK, gate_seconds=600)
    where.run_until(where.now + 0.5 * TERMS.term + 5)
    assert gpus_of(where, "owner") >= 4, "and taken back"
    before = had(where)
    where.run(12 * TERMS.term)
    got = {tenant: seconds - before[tenant] for tenant, seconds in had(where).items()}
    assert got["owner"] / sum(got.values()) == pytest.approx(0.75, abs=0.05)


def test_a_short_job_that_ends_gives_its_gpus_to_the_next_at_once() -> None:
    where = site({"n1": 4})
    first = where.world.submit(4, "a", work=Work(seconds=20), gate_seconds=600)
    second = where.world.submit(4, "b", work=QUICK, gate_seconds=600)
    where.run(20 + TERMS.interval + 5)
    assert where.world.record(first).state == "COMPLETED"
    assert where.running() == {second}


def test_a_job_of_the_whole_cluster_is_not_starved() -> None:
    where = site({"n1": 4, "n2": 4})
    large = where.world.submit(8, "large", nodes=2, gpus_per_node=4, work=QUICK, gate_seconds=600)
    for _ in range(8):
        where.world.submit(1, "small", work=QUICK, gate_seconds=600)
    where.run(20 * TERMS.term)
    accounts = where.standing.ledger.jobs
    mine = accounts.had[accounts.key == pack(large)]
    assert mine[0] >= 0.4 * 8 * 20 * TERMS.term


def test_three_gangs_of_six_three_and_three_share_six_gpus_alike() -> None:
    """Figure 6c of Astraea, with leases, gates and requeues: no job is ever a whole lease ahead or behind."""
    where = Site.build({"n1": 6}, terms=TERMS, policy=Astraea(swap_after=0))
    for gpus in (6, 3, 3):
        where.world.submit(gpus, "a", work=QUICK, gate_seconds=600)
    for lease in range(1, 25):
        where.run(TERMS.term)
        accounts = where.standing.ledger.jobs
        fair = lease * 6 * TERMS.term / 3
        assert np.abs(accounts.had - fair).max() <= 6 * TERMS.term + 1
    assert accounts.had.tolist() == pytest.approx([fair] * 3, rel=0.1)


def test_tasks_of_an_array_and_jobs_alone_are_treated_alike() -> None:
    where = site({"n1": 8})
    where.world.submit(1, "array", tasks=range(16), work=QUICK, gate_seconds=600)
    for _ in range(16):
        where.world.submit(1, "alone", work=QUICK, gate_seconds=600)
    where.run(12 * TERMS.term)
    got = np.array(list(had(where).values()))
    assert got.max() / got.min() < 1.05


def test_the_arrays_own_limit_is_kept() -> None:
    where = site({"n1": 8})
    array = where.world.submit(1, "a", tasks=range(6), array_limit=2, work=QUICK, gate_seconds=600)
    most = 0
    for _ in range(12):
        where.run(TERMS.term / 4)
        most = max(most, sum(r.base == array and r.state == "RUNNING" for r in where.world.living()))
    assert most == 2


def test_a_job_that_cannot_checkpoint_is_never_stopped() -> None:
    where = site({"n1": 4})
    keeps = where.world.submit(4, "a", work=Work(checkpoints=False), gate_seconds=600)
    where.run(5)
    where.world.submit(4, "b", work=QUICK, gate_seconds=600)
    where.run(5 * TERMS.term)
    assert where.running() == {keeps}
    assert where.world.record(keeps).restarts == 0


def test_a_running_job_is_not_stopped_for_nothing() -> None:
    """Nobody else fits what it would leave: it is renewed."""
    where = site({"n1": 4, "n2": 2})
    runs = where.world.submit(2, "a", work=QUICK, gate_seconds=600)
    where.run(5)
    where.world.submit(8, "b", work=QUICK, gate_seconds=600)
    where.run(5 * TERMS.term)
    assert where.running() == {runs}
    assert where.world.record(runs).restarts == 0
