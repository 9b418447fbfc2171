"""HiveD: what is guaranteed is there when its owner wants it, whole nodes included."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.model import LeaseTerms
from slurm_fair.model.reservation import reservations
from slurm_fair_plugins.hived import Hived, cells
from slurm_fair_plugins.yarn_cs import YarnCs
from tests.support.accounts import places, view
from tests.support.builders import JobSpec, job, node, snapshot
from tests.support.fake_cluster import Site
from tests.support.fake_slurm import Work
from tests.support.rounds import Play

TWO_NODES = {"n1": 8, "n2": 8}


def small(first: int, count: int, tenant: str, **columns: float) -> list[JobSpec]:
    """Jobs of one GPU."""
    return [job(base, tenant=tenant, **columns) for base in range(first, first + count)]


def test_the_sharing_anomaly_does_not_happen() -> None:
    """The paper's motivation: a owns 8 GPUs, but others' fragments leave it no node that is free.

    b fills its own node and borrows a's; a's 8-GPU job gets a whole node as soon as the loans are over.
    """
    play = Play(
        [*small(1, 14, "b"), job(90, gpus=8, tenant="a", submit=1000)],
        TWO_NODES,
        weights={"a": 1.0, "b": 1.0},
    )
    assert len(play.round(Hived())) == 14
    assert "90" in play.round(Hived())
    assert len(play.rounds[-1]) == 9
    assert play.on["90"] in ({"n1": 8}, {"n2": 8})


def test_guaranteed_jobs_are_packed_as_if_loans_were_not_there() -> None:
    """b's second own job goes beside its first and ends a loan, rather than break the other node."""
    weights = {"a": 1.0, "b": 1.0, "c": 0.0}
    play = Play([job(1, tenant="b")], TWO_NODES, weights=weights)
    play.round(Hived())
    play.jobs = [*play.jobs, *small(10, 7, "c"), job(2, tenant="b", submit=1500)]
    play.round(Hived())
    (home,) = play.on["1"]
    play.jobs = [*play.jobs, job(3, gpus=4, tenant="b", submit=2000)]
    play.round(Hived())
    assert [list(play.on[own]) for own in ("2", "3")] == [[home], [home]]


def test_own_cells_are_never_taken_and_loans_only_by_owners() -> None:
    """All of b's jobs in its own cells stay; c has no cells and cannot take a loan over from b."""
    weights = {"a": 1.0, "b": 1.0, "c": 0.0}
    play = Play([*small(1, 16, "b"), job(80, gpus=8, tenant="c", submit=900)], TWO_NODES, weights=weights)
    play.play(Hived(), 3)
    assert play.rounds == [{str(base) for base in range(1, 17)}] * 3


def test_idle_cells_are_lent_where_a_static_quota_leaves_them_idle() -> None:
    jobs, weights = small(1, 16, "b"), {"a": 1.0, "b": 1.0}
    assert len(Play(jobs, TWO_NODES, weights=weights).round(Hived())) == 16
    assert len(Play(jobs, TWO_NODES, weights=weights).round(YarnCs())) == 8


@pytest.mark.parametrize(
    ("gpus", "cell"), [(1, 1), (2, 2), (3, 4), (5, 8), (8, 8), (9, 16), (16, 16)], ids=str
)
def test_a_cell_is_a_power_of_two_and_then_whole_nodes(gpus: int, cell: int) -> None:
    assert cells(np.array([gpus]), 8).tolist() == [cell]


def test_nobody_waits_beside_nodes_that_are_set_aside_for_the_end_of_a_guaranteed_job() -> None:
    """A gang of two whole nodes can only borrow, and jobs in their own cells have the others for good."""
    terms = LeaseTerms(
        term=60.0,
        interval=10.0,
        grace=4.0,
        start_timeout=10.0,
        aligned=False,
        reserve_after=60.0,
        renewal=15.0,
    )
    weights = dict.fromkeys("abc", 1.0)
    site = Site.build({"n1": 4, "n2": 4, "n3": 4}, terms=terms, policy=Hived(), weights=weights)
    for gpus, tenant in ((4, "a"), (2, "c")):
        site.world.submit(gpus, tenant, gate_seconds=600.0)
        site.run(20)
    site.world.submit(8, "b", nodes=2, gpus_per_node=4, gate_seconds=600.0)
    site.run(150)
    assert reservations(site.standing.memory) == ()
    late = site.world.submit(3, "c", gate_seconds=600.0, work=Work(seconds=30.0))
    site.run(10)
    assert site.world.records[late].state == "RUNNING"


def test_a_gang_over_two_nodes_counts_there_as_slurm_splits_it() -> None:
    """The first node gives all that it has and no even part: what is gone there is not lent."""
    jobs = [job(1, gpus=3, nodes=2), job(2, gpus=4, nodes=2), job(3, gpus=3), *small(4, 2, "a")]
    seen = view(snapshot(nodes={"n1": node(8, gpus_others=1), "n2": node(8)}, jobs=jobs))
    assert set(places(seen.snapshot, Hived().plan(seen))) == {"1", "2", "3", "4", "5"}


def test_a_gang_of_whole_nodes_leaves_nothing_of_them_for_which_another_would_wait() -> None:
    seen = view(snapshot(nodes=dict.fromkeys(("n1", "n2", "n3"), 8), jobs=[job(1, gpus=12), job(2, gpus=3)]))
    assert set(places(seen.snapshot, Hived().plan(seen))) == {"1", "2"}
