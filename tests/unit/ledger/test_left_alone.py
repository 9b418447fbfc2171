"""Jobs that are left alone stand among the others where the ledger takes a snapshot in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slurm_fair.ledger.charging.left_alone import with_those_left_alone
from slurm_fair.model import Aside, JobState, Snapshot, Told
from tests.support.builders import job, snapshot

RUNNING = JobState.RUNNING
NODES = {"n1": 4, "n2": 4}


def shown(*, told: bool = False) -> Snapshot:
    """Job 2 is managed, jobs 1 and 3 are left alone."""
    managed = snapshot(nodes=NODES, jobs=[job(2, gpus=2, state=RUNNING, on={"n2": 2}, reason="ours")])
    others = [job(1, gpus=1, state=RUNNING, on={"n1": 1}), job(3, gpus=3, state=RUNNING, on={"n1": 3})]
    away = snapshot(nodes=NODES, jobs=others)
    said = Told.nothing(1, 1).with_columns(left_seconds=np.array([60.0])) if told else None
    return replace(managed, told=said, aside=Aside(away.jobs, away.held, ("one", "three")))


def test_all_jobs_stand_in_the_order_of_their_keys_with_their_gpus_and_reasons() -> None:
    whole = with_those_left_alone(shown())
    assert whole.jobs.gpus.tolist() == [1, 2, 3]
    assert whole.reasons == ("one", "ours", "three")
    held = sorted(
        zip(whole.held.row.tolist(), whole.held.node.tolist(), whole.held.gpus.tolist(), strict=True)
    )
    assert held == [(0, 0, 1), (1, 1, 2), (2, 0, 3)]


def test_nothing_is_told_of_them() -> None:
    whole = with_those_left_alone(shown(told=True))
    assert whole.told is not None
    np.testing.assert_array_equal(whole.told.left_seconds, [np.nan, 60.0, np.nan])
    assert whole.told.rate.shape == (3, 1)
    assert with_those_left_alone(shown()).told is None


def test_a_snapshot_without_such_jobs_stays_as_it_is() -> None:
    alone = replace(shown(), aside=None)
    assert with_those_left_alone(alone) is alone
    aside = shown().aside
    assert aside is not None
    nobody = replace(alone, aside=Aside(aside.jobs.take(np.zeros(0, dtype=np.int64)), aside.held, ()))
    assert with_those_left_alone(nobody) is nobody
