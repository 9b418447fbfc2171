"""In simulations, too, work that cannot be taken back stays within its tenant's own share, under every policy."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.model import LeaseTerms, Standing
from slurm_fair.policy import load
from slurm_fair.sim import Submission
from slurm_fair.tick import Rules, Stopwatch, tick
from tests.support.every_policy import EVERY
from tests.support.outlook_play import Kept
from tests.support.virtual_scene import T0, Scene

TERMS = LeaseTerms(term=600.0, interval=60.0, grace=10.0)


def most_held(policy: str, *, checkpoints: bool, time_limit: float = np.inf) -> dict[str, int]:
    """The most GPUs that each of two equal tenants held in an hour and a half; b's jobs may not be stoppable."""
    scene, kept, standing = Scene(), Kept(), Standing.new(T0)
    for tenant, saves, limit in (("b", checkpoints, time_limit), ("a", True, np.inf)):
        for _ in range(6):
            job = Submission(
                gpus=4, seconds=50_000.0, tenant=tenant, checkpoints=saves, time_limit=limit, declared=9_000.0
            )
            scene.hands.submit(job)
    rules, most = Rules(policy, load(policy, {}), {}, TERMS), {"a": 0, "b": 0}
    for at in range(0, 5400, 60):
        scene.at(at)
        standing = tick(scene.cluster, scene.clock, kept, rules, standing, Stopwatch(lambda: 0.0)).standing
        seen = scene.look()
        gpus = np.bincount(seen.jobs.tenant[seen.held.row], seen.held.gpus, len(seen.tenants))
        for name, held in zip(seen.tenants.names, gpus.tolist(), strict=True):
            most[name] = max(most[name], int(held))
    return most


@pytest.mark.parametrize("policy", EVERY)
def test_plain_jobs_hold_no_more_than_their_tenants_share(policy: str) -> None:
    most = most_held(policy, checkpoints=False)
    assert 0 < most["b"] <= 8
    assert most["a"] > 0


def test_jobs_that_save_or_end_within_a_term_may_use_more() -> None:
    assert most_held("fifo", checkpoints=True)["b"] > 8
    assert most_held("fifo", checkpoints=False, time_limit=300.0)["b"] > 8
