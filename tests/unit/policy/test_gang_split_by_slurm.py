"""Gangs on several nodes whose users left to Slurm how their GPUs lie there: it fills one after the other."""

from __future__ import annotations

import pytest

from slurm_fair.model import JobState, Verdict
from slurm_fair.policy import load
from tests.support.accounts import view
from tests.support.builders import job, lease, leases, snapshot


@pytest.mark.parametrize("name", ["astraea", "las", "gandiva-fair", "fifo", "slurm"])
@pytest.mark.parametrize(
    ("gpus", "nodes", "place"),
    [(6, 2, [4, 2]), (4, 2, [3, 1]), (5, 3, [3, 1, 1])],
    ids=["the first is filled", "one is left for the second", "one is left for each of the others"],
)
def test_a_gang_that_slurm_splits_is_promised_what_it_will_have(
    name: str, gpus: int, nodes: int, place: list[int]
) -> None:
    free = {f"n{number}": 4 for number in range(nodes)}
    left = 4 * nodes - gpus
    jobs = [job(1, gpus=gpus, nodes=nodes), *(job(number + 2, submit=1) for number in range(left))]
    plan = load(name, {}).plan(view(snapshot(time=100.0, nodes=free, jobs=jobs), leases()))
    assert plan.verdict.tolist() == [Verdict.GRANT] * (left + 1), "what it leaves is given to others"
    assert plan.places.gpus[plan.places.row == 0].tolist() == place


def test_nobody_stops_for_a_gang_that_slurm_splits_so_that_it_fits() -> None:
    # Half of it does not fit on n1, but what is free there and on n2 is enough.
    running = job(2, gpus=2, state=JobState.RUNNING, start=1, on={"n1": 2})
    seen = snapshot(time=100.0, nodes={"n1": 4, "n2": 4}, jobs=[job(1, gpus=6, nodes=2), running])
    plan = load("astraea", {}).plan(view(seen, leases(lease(2, {"n1": 2}, end=90.0))))
    assert plan.verdict.tolist() == [Verdict.GRANT, Verdict.RENEW]
    assert plan.places.gpus.tolist() == [2, 4]


@pytest.mark.parametrize("name", ["astraea", "las", "gandiva-fair"])
@pytest.mark.parametrize(("full", "shared"), [("n1", "n2"), ("n2", "n1")])
def test_nobody_stops_for_a_part_that_another_node_has(name: str, full: str, shared: str) -> None:
    # Its even parts are 4 + 4; with what comes free on the full node it needs 3 of the other's 4, which are free.
    large = job(2, gpus=8, state=JobState.RUNNING, start=1, on={full: 8})
    small = job(3, gpus=1, state=JobState.RUNNING, start=1, on={shared: 1})
    seen = snapshot(time=100.0, nodes={full: 8, shared: 4}, jobs=[job(1, gpus=8, nodes=2), large, small])
    held = leases(lease(2, {full: 8}, end=90.0), lease(3, {shared: 1}, end=90.0))
    plan = load(name, {}).plan(view(seen, held))
    assert [Verdict(each).name for each in plan.verdict] == ["GRANT", "REVOKE", "RENEW"]
